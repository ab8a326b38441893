"""What is particular to the store in a SQLite file."""
