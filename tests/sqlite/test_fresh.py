"""A fresh file that several open at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tenure.store.sqlite import SqliteStore, schema
from tenure.store.sqlite.clocks import Clocks


class Overtaken:
    """A connection to a fresh file, which another store makes ready right after its first question."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._made = False

    def execute(self, *asked: Any) -> Any:
        rows = self._connection.execute(*asked).fetchall()
        if not self._made:
            self._made = True
            SqliteStore(str(self._path)).migrate()
        return _Rows(rows)


class _Rows(list[Any]):
    def fetchone(self) -> Any:
        return self[0] if self else None


def test_a_file_that_another_makes_ready_meanwhile_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        overtaken: Any = Overtaken(connection, path)
        assert not schema.is_ready(overtaken, Clocks(), path, "the store")
