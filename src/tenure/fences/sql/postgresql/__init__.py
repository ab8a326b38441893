"""The SQL fence's statements and migrations for PostgreSQL."""
