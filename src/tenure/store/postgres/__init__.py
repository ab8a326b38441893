"""The distributed store: one PostgreSQL database (14 or newer), shared by any number of hosts."""

from tenure.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
