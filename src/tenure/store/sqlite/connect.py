"""Connections to one SQLite file, their transactions, and what SQLite's errors mean; the only user of `sqlite3`."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tenure.errors import BadSettings, OutcomeUnknown, TenureError, Unavailable
from tenure.protocol.op import Request
from tenure.store.driver import Again
from tenure.store.sqlite import forks
from tenure.store.sqlite.clocks import Clocks
from tenure.store.sqlite.turnstile import Place, Turnstile
from tenure.store.statements import Batch, Call, Row, Statement, load_statements, rewrite_parameters

OLDEST = (3, 37, 0)
OPENING = 10.0
"""Seconds that opening may wait for other processes which make or open the same file."""

_ASK_AGAIN = 0.01
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_OURS = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_CHANGES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")
_LIST = re.compile(r"\bjson_each\(:(\w+)\)")
_FIRST_PAUSE = 0.0003  # seconds between two questions for the lock
_LONGEST_PAUSE = 0.001  # with what chance adds, shorter than the gap that a busy process leaves


def open_connection(path: Path, patience: float = OPENING) -> sqlite3.Connection:
    """Open `path` durably: write-ahead log, every commit synced to disk (R42). Raises BadSettings or Unavailable.

    A process that makes the same file just then is waited for, for at most `patience` seconds.
    """
    until = time.monotonic() + patience
    while True:
        try:
            return _connect(path)
        except Again:
            if time.monotonic() >= until:
                raise
            time.sleep(_ASK_AGAIN)


def _connect(path: Path) -> sqlite3.Connection:
    connection = None
    try:
        # Waiting for the lock is the transaction's: SQLite's own waits grow to 100 ms and let late comers pass.
        connection = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise translate(error, str(path)) from error
    if mode != "wal":
        connection.close()
        raise BadSettings(f"{path} cannot use a write-ahead log (journal mode {mode}): put it on a local file system")
    return connection


def translate(error: sqlite3.Error, path: str, *, committing: bool = False) -> TenureError:
    """Say what an error of SQLite means for the caller: nothing done, or not known."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if code == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return Again(
            f"{path}: the transaction began by reading and another writer was faster; roll it back, begin it with"
            " BEGIN IMMEDIATE, and run it again"
        )
    if primary in _BUSY:
        return _locked(path)
    if primary in _NOT_OURS:
        return BadSettings(f"{path} is not a healthy SQLite file ({error}): restore it, or name another one")
    if committing:
        return OutcomeUnknown(f"{path}: the commit failed ({error}); it may or may not have reached the disk")
    return Unavailable(f"{path}: {error}; nothing was done")


def _locked(path: str) -> Again:
    return Again(f"{path} is locked by another writer that does not let go; nothing was done, try again")


class Compiled:
    """A statement with numbered parameters, and how to lay values out for it."""

    def __init__(self, statement: Statement) -> None:
        places = {name: i for i, name in enumerate(statement.parameters)}
        self.sql = rewrite_parameters(statement.sql, "?{}")
        for name, place in sorted(places.items(), key=lambda item: -len(item[0])):
            self.sql = self.sql.replace(f"?{name}", f"?{place + 1}")
        self.places = places
        self.lists = {places[name] for name in _LIST.findall(statement.sql)}
        # Returning the names that were asked for only tells that a row matched; its count tells that quicker.
        self.uncounted, _, returned = self.sql.partition("RETURNING ")
        self.echoes = {"id": 1, "id, generation": 2}.get(returned, 0)
        self.reads = not _CHANGES.search(statement.sql)
        self.looks = "boot" in places

    def values(self, parameters: Mapping[str, Any]) -> list[Any]:
        """Lay out `parameters` in order; a name that is missing there is a column of the rows, or is not looked at."""
        values = [parameters.get(name) for name in self.places]
        for place in self.lists:
            if values[place] is not None:
                values[place] = msgspec.json.encode(values[place]).decode()
        return values


STATEMENTS = {name: Compiled(statement) for name, statement in load_statements("tenure.store.sqlite").items()}


class Transaction:
    """One session on one connection: begins when something is to be changed, ends with the session.

    What is read before the first change is read outside and only advises: the statement that changes checks again.
    It begins in its turn behind `turnstile`, within `timeout` seconds; without one it is the caller's and has begun.
    `known_by` is what statements may compare the file with: its identity, and in a caller's transaction more.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clocks: Clocks,
        path: str,
        known_by: Mapping[str, Any],
        *,
        turnstile: Turnstile | None = None,
        timeout: float = 0.0,
    ) -> None:
        self._connection = connection
        self._cursor = sqlite3.Cursor(connection)  # whose rows are tuples, whatever a caller's are
        self._clocks = clocks
        self._path = path
        self._known_by = known_by
        self._turnstile = turnstile
        self._timeout = timeout
        self._place: Place | None = None
        self._begun_at: float | None = None

    def __call__(self, batch: Request[Any]) -> list[list[Row]]:
        """Execute the calls of `batch`, beginning the transaction first if one of them changes anything."""
        if not isinstance(batch, Batch):
            raise TypeError(f"a SQL store answers batches of statements, not {type(batch).__name__}")
        try:
            if not all(STATEMENTS[call.name].reads for call in batch.calls):
                self.begin()
            return self._execute(batch)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    def _execute(self, batch: Batch) -> list[list[Row]]:
        # After the lock, so that a wait for it cannot shorten a lease (R12).
        now_ms, boot_ms = self._clocks.read()
        common = {"now_ms": now_ms, "boot_ms": boot_ms, **self._known_by}
        return [self._call(call, common) for call in batch.calls]

    def begin(self) -> None:
        """Take the write lock, in turn; raises Again when it is not free in time."""
        if self._turnstile is None or self._begun_at is not None:
            return
        until = time.monotonic() + self._timeout
        self._place = self._place or self._turnstile.enter(self._timeout)
        if self._place is None:
            raise _locked(self._path)
        pause = _FIRST_PAUSE
        while not self._got_lock():
            if forks.under_way() or time.monotonic() >= until:
                raise _locked(self._path)
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        self._begun_at = time.monotonic()

    def _got_lock(self) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if isinstance(translate(error, self._path), Again):
                return False
            raise
        return True

    def _call(self, call: Call, common: dict[str, Any]) -> list[Row]:
        compiled = STATEMENTS[call.name]
        values = compiled.values({**common, **call.parameters})
        if call.rows is None:
            return self._cursor.execute(compiled.sql, values).fetchall()
        # A column that the statement does not use has no place in it.
        slots = [(compiled.places[name], i) for i, name in enumerate(call.columns) if name in compiled.places]
        found: list[Row] = []
        for row in call.rows:
            for place, i in slots:
                values[place] = row[i]
            if not compiled.echoes:
                found += self._cursor.execute(compiled.sql, values)
            elif self._cursor.execute(compiled.uncounted, values).rowcount:
                found.append(row[: compiled.echoes])
        return found

    def commit(self) -> None:
        """End the session's transaction, if one began."""
        if self._begun_at is not None:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise translate(error, self._path, committing=True) from error

    def rollback(self) -> None:
        """Undo the session's transaction, if one began."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def leave(self) -> None:
        """Let the next in line take the write lock."""
        if self._turnstile is not None and self._place is not None:
            held = 0.0 if self._begun_at is None else time.monotonic() - self._begun_at
            self._turnstile.leave(self._place, held=held)


@contextmanager
def own_transaction(transaction: Transaction) -> Iterator[Transaction]:
    """Commit what is done inside, or undo it all."""
    try:
        yield transaction
        transaction.commit()
    except BaseException:
        transaction.rollback()
        raise
    finally:
        transaction.leave()
