"""Fresh databases, one for each measurement, and what is asked of them from outside."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import psycopg

from bench.children import ask
from bench.entrant import Entrant, Store
from tenure.testing.servers import Postgres, Settings

Left = Callable[[], int]


class Arena(ABC):
    """Where one store's entrants are measured."""

    durability: str

    @abstractmethod
    def fresh(self, entrant: Entrant) -> AbstractContextManager[str]:
        """Make a database with the entrant's schema and lend its address."""

    @abstractmethod
    def filled(self, entrant: Entrant, what: str, sql: str, rows: int) -> AbstractContextManager[str]:
        """Make a database that `sql` has filled with so many rows; what the entrant calls `what` is filled once."""

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
    settings: ClassVar[Settings] = {"shared_buffers": "128MB", "max_connections": 1000}

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self._prepared: dict[tuple[str, str], str] = {}
        self._preparing = threading.Lock()

    @contextmanager
    def fresh(self, entrant: Entrant) -> Iterator[str]:
        """Copy the entrant's prepared database."""
        with self._copy(self._prepare(entrant)) as address:
            yield address

    @contextmanager
    def filled(self, entrant: Entrant, what: str, sql: str, rows: int) -> Iterator[str]:
        """Copy the entrant's filled database."""
        with self._copy(self._fill(entrant, what, sql, rows)) as address:
            yield address

    def _prepare(self, entrant: Entrant) -> str:
        with self._preparing:
            if (entrant.key, "") not in self._prepared:
                address = self.server.create_database()
                ask("prepare", entrant, address)
                self._prepared[entrant.key, ""] = address
            return self._prepared[entrant.key, ""]

    def _fill(self, entrant: Entrant, what: str, sql: str, rows: int) -> str:
        if (entrant.key, what) not in self._prepared:
            address = self.server.create_database(template=self._prepare(entrant))
            with psycopg.connect(address, autocommit=True) as connection:
                psycopg.RawCursor(connection).execute(sql, (rows,))
            self.settle(address)
            self._prepared[entrant.key, what] = address
        return self._prepared[entrant.key, what]

    @contextmanager
    def _copy(self, template: str) -> Iterator[str]:
        """Copy a database file by file, which for a big one is the quickest."""
        name = f"bench_{secrets.token_hex(6)}"
        base, _, source = template.rpartition("/")
        self.server.run("psql", "-Xqc", f'CREATE DATABASE "{name}" TEMPLATE "{source}" STRATEGY file_copy')
        try:
            yield f"{base}/{name}"
        finally:
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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._filled: dict[tuple[str, str], Path] = {}

    @contextmanager
    def fresh(self, entrant: Entrant) -> Iterator[str]:
        """Make a file in a folder of its own."""
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            address = str(Path(folder, "queue.db"))
            ask("prepare", entrant, address)
            yield address

    @contextmanager
    def filled(self, entrant: Entrant, what: str, sql: str, rows: int) -> Iterator[str]:
        """Copy the entrant's filled file."""
        if (entrant.key, what) not in self._filled:
            self._filled[entrant.key, what] = self._fill(entrant, sql, rows)
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            address = shutil.copyfile(self._filled[entrant.key, what], Path(folder, "queue.db"))
            with address.open("rb") as file:
                os.fsync(file.fileno())  # or the measurement would pay for writing the copy to the disk
            yield str(address)

    def _fill(self, entrant: Entrant, sql: str, rows: int) -> Path:
        path = self._folder / f"filled-{len(self._filled)}.db"
        ask("prepare", entrant, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(sql, (rows,))
            connection.execute("ANALYZE")
        self.settle(str(path))
        return path

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
    with Postgres.start(settings=PostgresArena.settings) as server:
        yield PostgresArena(server)


@contextmanager
def _sqlite() -> Iterator[Arena]:
    with TemporaryDirectory(prefix="tenure-bench-") as folder:
        yield SqliteArena(Path(folder))


ARENAS: dict[Store, Callable[[], AbstractContextManager[Arena]]] = {"postgresql": _postgres, "sqlite": _sqlite}
