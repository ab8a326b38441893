"""The formal model, and what runs it."""
