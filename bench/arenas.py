"""Fresh databases, one for each measurement, and what is asked of them from outside."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import psycopg

from bench.children import ask
from bench.entrant import Entrant, Store
from tenure.testing.servers import Postgres

Left = Callable[[], int]


class Arena(ABC):
    """Where one store's entrants are measured."""

    durability: str

    @abstractmethod
    def fresh(self, entrant: Entrant) -> AbstractContextManager[str]:
        """Make a database with the entrant's schema and lend its address."""

    @abstractmethod
    def settle(self, address: str) -> None:
        """Bring what was loaded to its place, so that every entrant begins alike."""

    @abstractmethod
    def left(self, entrant: Entrant, address: str) -> AbstractContextManager[Left]:
        """Lend a function that counts the jobs that are not done, over a connection of its own."""

    @abstractmethod
    def version(self) -> str:
        """Name the database and its version."""


class PostgresArena(Arena):
    """A server of one's own with the settings that it comes with."""

    durability = "fsync, full_page_writes and synchronous_commit on; shared_buffers and autovacuum as they come"

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self._prepared: dict[str, str] = {}

    @contextmanager
    def fresh(self, entrant: Entrant) -> Iterator[str]:
        """Copy the entrant's prepared database."""
        if entrant.key not in self._prepared:
            address = self.server.create_database()
            ask("prepare", entrant, address)
            self._prepared[entrant.key] = address
        address = self.server.create_database(template=self._prepared[entrant.key])
        try:
            yield address
        finally:
            name = address.rpartition("/")[2]
            self.server.run("psql", "-Xqc", f'DROP DATABASE "{name}" WITH (FORCE)')

    def settle(self, address: str) -> None:
        """Vacuum, analyze, and write a checkpoint."""
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    @contextmanager
    def left(self, entrant: Entrant, address: str) -> Iterator[Left]:
        """Ask over a connection of its own."""
        with psycopg.connect(address, autocommit=True) as connection:
            yield lambda: int(connection.execute(entrant.left).fetchone()[0])  # type: ignore[index]  # a count has a row

    def version(self) -> str:
        """Name the server's version."""
        return self.server.run("psql", "-XAtc", "SELECT version()").split(" on ")[0].strip()


class SqliteArena(Arena):
    """Files in a folder on the disk that temporary files are on."""

    durability = "WAL and synchronous=FULL, unless a peer's row says otherwise"

    @contextmanager
    def fresh(self, entrant: Entrant) -> Iterator[str]:
        """Make a file in a folder of its own."""
        folder = Path(tempfile.mkdtemp(prefix="tenure-bench-"))
        address = str(folder / "queue.db")
        try:
            ask("prepare", entrant, address)
            yield address
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def settle(self, address: str) -> None:
        """Bring the write-ahead log into the file."""
        with closing(sqlite3.connect(address, timeout=10.0)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def left(self, entrant: Entrant, address: str) -> Iterator[Left]:
        """Ask over a connection of its own."""
        with closing(sqlite3.connect(address, timeout=10.0)) as connection:
            yield lambda: int(connection.execute(entrant.left).fetchone()[0])

    def version(self) -> str:
        """Name the library's version."""
        return f"SQLite {sqlite3.sqlite_version}"


@contextmanager
def _postgres() -> Iterator[Arena]:
    with Postgres.start() as server:
        yield PostgresArena(server)


@contextmanager
def _sqlite() -> Iterator[Arena]:
    yield SqliteArena()


ARENAS: dict[Store, Callable[[], AbstractContextManager[Arena]]] = {"postgresql": _postgres, "sqlite": _sqlite}
