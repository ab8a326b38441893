"""The embedded store: one SQLite file on one host, shared by any number of its processes and threads."""

from tenure.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
