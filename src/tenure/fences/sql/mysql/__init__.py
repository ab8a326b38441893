"""The SQL fence's statements and migrations for MySQL and MariaDB."""
