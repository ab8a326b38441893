"""The pages of the destinations that keep them in a SQL database: SQLite, or a schema of its own in PostgreSQL."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

from tenure.demo.destinations.place import TIMEOUT
from tenure.errors import BadSettings
from tenure.fences.sql.operations import Dialect

_SCHEMA = "CREATE TABLE IF NOT EXISTS pages (page VARCHAR(200) PRIMARY KEY, text TEXT NOT NULL)"
_WRITE = """
INSERT INTO pages (page, text) VALUES ({0}, {0})
ON CONFLICT (page) DO UPDATE SET text = excluded.text
"""
_READ = "SELECT text FROM pages WHERE page = {0}"


class Table:
    """One table of pages; `where` is a file, or the address of a PostgreSQL database, and then `schema` names where."""

    def __init__(self, where: str, schema: str | None = None) -> None:
        self._where = where
        self._schema = schema
        self.dialect: Dialect = "sqlite" if schema is None else "postgresql"
        self._mark = "?" if schema is None else "%s"

    def transaction(self) -> AbstractContextManager[Any]:
        """Open a connection for one transaction, which is committed unless the block raises."""
        return self._in_sqlite() if self._schema is None else self._in_postgresql(self._schema)

    def create(self, connection: Any) -> None:
        """Make the table."""
        connection.execute(_SCHEMA)

    def write(self, connection: Any, page: str, text: str) -> None:
        """Write a page."""
        connection.execute(_WRITE.format(self._mark), (page, text))

    def read(self, connection: Any, page: str) -> str:
        """Read a page, empty where there is none."""
        found = connection.execute(_READ.format(self._mark), (page,)).fetchone()
        return str(found[0]) if found else ""

    @contextmanager
    def _in_sqlite(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._where, timeout=TIMEOUT, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # commits, or rolls back and raises
                yield connection

    @contextmanager
    def _in_postgresql(self, schema: str) -> Iterator[Any]:
        import psycopg  # noqa: PLC0415 -- only who plays on PostgreSQL has it

        with psycopg.connect(self._where) as connection:  # commits, or rolls back and raises
            # For this transaction only: a pooler may lend the session to others.
            connection.execute("SELECT set_config('search_path', %s, true)", (schema,))
            yield connection


@contextmanager
def own_schema(address: str) -> Iterator[str]:
    """Make a schema in a PostgreSQL database for the length of a block; raises BadSettings where it is not allowed."""
    import psycopg  # noqa: PLC0415 -- as above
    from psycopg import sql  # noqa: PLC0415 -- as above

    schema = f"tenure_demo_{secrets.token_hex(4)}"
    name = sql.Identifier(schema)
    with psycopg.connect(address, autocommit=True) as connection:
        try:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        except psycopg.errors.InsufficientPrivilege as error:
            raise BadSettings(
                "the destination keeps its pages in a schema of its own beside the store, and this user may not make"
                " one: GRANT CREATE ON DATABASE, or play with --destination file"
            ) from error
    try:
        yield schema
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))
