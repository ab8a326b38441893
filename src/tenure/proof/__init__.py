"""The proof: histories of what processes asked and were answered, and a judge that says whether the promises held."""
