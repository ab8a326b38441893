"""Verbs inside a transaction of the caller's own, on a connection that the caller opened to the store's file.

Each transaction is asked anew where its connection leads, which ATTACH may have changed, and whether the file there is
still the one that was met before, of this boot and whole. The verbs that guard an effect look at the latter in one step
with what they do (`@ours`); it is asked by itself only where one finds nothing, or does not look. What is remembered is
by what a file was known when it was made ready, for as long as the store's path leads there.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from tenure.errors import Misuse
from tenure.protocol.op import Request, run
from tenure.store.contract import Execute, Verbs
from tenure.store.sqlite import schema
from tenure.store.sqlite.clocks import Clocks, file_identity
from tenure.store.sqlite.connect import Transaction, translate
from tenure.store.sqlite.layout import STATEMENTS
from tenure.store.statements import Batch, Call, Row

Place = tuple[int, int]
"""Where a file lies: its device and its inode."""

_LOOK = Batch((Call("look"),))


@dataclass(frozen=True, slots=True)
class Met:
    """A file as it was when it was made ready: where it lay, and by what it is known again."""

    place: Place
    known_by: dict[str, Any]


class Callers:
    """The connections of callers to the file at `path`, whose store is named `name`."""

    def __init__(self, path: Path, name: str, clocks: Clocks, verbs: Verbs) -> None:
        self._path = path
        self._file = str(path)
        self._name = name
        self._clocks = clocks
        self._verbs = verbs
        self._met: Met | None = None

    def same_file(self, connection: object) -> tuple[sqlite3.Connection, Place]:
        """Return the connection, and where its file lies, if it is the store's that verbs would use; raises Misuse."""
        if not isinstance(connection, sqlite3.Connection):
            kind = f"{type(connection).__module__}.{type(connection).__name__}"
            raise Misuse(
                f"connection= got {kind}: a store in a SQLite file joins a transaction of a sqlite3 connection, or of"
                " SQLAlchemy over one, to the same file"
            )
        place = _place(self._file)
        if place is None or _used(sqlite3.Cursor(connection), self._file, place) != place:
            raise Misuse(
                f"connection= belongs to another file than the store {self._path}: they could not commit together"
            )
        return connection, place

    def join(self, raw: sqlite3.Connection, place: Place) -> Execute:
        """Make what answers the requests of verbs in the open transaction of a connection to the file at `place`."""
        try:
            _begin(raw)
            met = self._met
            if met is None or met.place != place or not _locked(raw):
                met = self.meet(raw, place)
        except sqlite3.Error as error:
            raise translate(error, self._file) from error
        # Not through the turnstile: who is inside may be waiting for the lock that this connection has.
        return Joined(raw, self._clocks, self._file, met.known_by, partial(self.meet, raw, place))

    def meet(self, raw: sqlite3.Connection, place: Place) -> Met:
        """Make the file ready for verbs, as a connection of the store's own would; raises BadSettings."""
        cursor = sqlite3.Cursor(raw)
        if not schema.is_ready(cursor, self._clocks, self._path, self._name):
            schema.make_ready(cursor, self._clocks)
        _locked(raw)
        known_by = {"identity": file_identity(self._path), "boot": self._clocks.boot_id(), "schema": schema.latest()}
        run(self._verbs.admit(), Transaction(raw, self._clocks, self._file, known_by))
        self._met = Met(place, known_by)
        return self._met


class Joined(Transaction):
    """The caller's transaction: looks whether the file is as it was met, and has it made ready `again` if it is not."""

    def __init__(
        self,
        raw: sqlite3.Connection,
        clocks: Clocks,
        path: str,
        known_by: Mapping[str, Any],
        again: Callable[[], Met],
    ) -> None:
        super().__init__(raw, clocks, path, known_by)
        self._again = again
        self._looked = False

    def __call__(self, batch: Request[Any]) -> list[list[Row]]:
        """Execute the calls of `batch`; what looks by itself needs another look only when it has found nothing."""
        try:
            return self._with_a_look(cast("Batch", batch))
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    def _with_a_look(self, batch: Batch) -> list[list[Row]]:
        if not self._looked and not (len(batch.calls) == 1 and STATEMENTS[batch.calls[0].name].looks):
            self._look()
        answers = self._execute(batch)
        if self._looked or all(answers) or self._look():
            return answers
        return self._execute(batch)

    def _look(self) -> bool:
        """Look, once in a session; False when the file had to be made ready again."""
        self._looked = True
        if self._execute(_LOOK) == [[(1,)]]:
            return True
        self._known_by = self._again().known_by
        return False


def _begin(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        return
    # Since Python 3.12 a connection may be opened with autocommit=True, and then no commit() of its own ends a BEGIN.
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        raise Misuse("connection= is not in a transaction: begin one first, or leave connection= out")
    connection.execute("BEGIN IMMEDIATE")


def _locked(connection: sqlite3.Connection) -> bool:
    """Take the write lock by a statement that changes nothing, so that the clock is read after it (R12).

    False where there are no tables, as after a rollback of the transaction that made the file ready.
    """
    try:
        connection.execute("DELETE FROM tenure_jobs WHERE 0")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return False
    return True


def _place(path: str) -> Place | None:
    try:
        file = os.stat(path)  # noqa: PTH116 -- in every transaction, where making a Path costs more than asking
    except OSError:
        return None
    return file.st_dev, file.st_ino


def _used(cursor: sqlite3.Cursor, path: str, place: Place) -> Place | None:
    """Find the file whose tables a statement on this connection means: SQLite looks in temp, in main, in the others."""
    attached = cursor.execute("PRAGMA database_list").fetchall()
    if len(attached) == 1 and attached[0][2] == path:
        return place  # as nearly always
    files = {name: file for _, name, file in attached}
    holders = {schema for schema, *_ in cursor.execute("PRAGMA table_list(tenure_jobs)")}
    # A fresh file gets its tables in main.
    return _place(files[next((name for name in ("temp", "main", *files) if name in holders), "main")])
