"""Connections to one SQLite file, their transactions, and what SQLite's errors mean; the only user of `sqlite3`."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

from tenure.errors import BadSettings, OutcomeUnknown, TenureError, Unavailable
from tenure.protocol.op import Request
from tenure.store.driver import Again
from tenure.store.sqlite import forks
from tenure.store.sqlite.clocks import Clocks
from tenure.store.sqlite.layout import FEW, STATEMENTS, Form
from tenure.store.sqlite.turnstile import Place, Turnstile
from tenure.store.statements import Batch, Call, Row

OLDEST = (3, 37, 0)
OPENING = 10.0
"""Seconds that opening may wait for other processes which make or open the same file."""

_ASK_AGAIN = 0.01
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_OURS = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
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


class Transaction:
    """One session on one connection: begins when something is to be changed, ends with the session.

    What is read before the first change is read outside and only advises: the statement that changes checks again.
    It begins in its turn behind `turnstile`, within `timeout` seconds; without one it is the caller's and has begun.
    `known_by` is what statements may compare the file with: its identity, and in a caller's transaction more.
    """

    _turnstile: Turnstile | None = None
    _timeout = 0.0
    _place: Place | None = None
    _begun_at: float | None = None

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
        if turnstile is not None:
            self._turnstile, self._timeout = turnstile, timeout

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

    def _call(self, call: Call, common: Mapping[str, Any]) -> list[Row]:
        layout = STATEMENTS[call.name].layout(call.columns)
        form, shared = layout.bind(call.parameters, common)
        if call.rows is None and not layout.echo:
            return self._cursor.execute(form.one, shared).fetchall()
        if call.rows is None:
            matched = self._cursor.execute(form.uncounted, shared).rowcount
            return [tuple([call.parameters[name] for name in layout.echo])] if matched else []
        rows = layout.rows(call.rows)
        if len(rows) >= FEW and form.many and self._together(form, shared, rows):
            return [row[: layout.echoes] for row in rows]
        found: list[Row] = []
        for row in rows:
            if not layout.echoes:
                found += self._cursor.execute(form.one, (*shared, *row))
            elif self._cursor.execute(form.uncounted, (*shared, *row)).rowcount:
                found.append(row[: layout.echoes])
        return found

    def _together(self, form: Form, shared: list[Any], rows: Sequence[Row]) -> bool:
        """Execute for many rows at a time; False, with nothing done, where one of them has found nothing."""
        cursor, whole = self._cursor, False
        cursor.execute("SAVEPOINT tenure_rows")
        try:
            whole = all(
                cursor.execute(sql, (*shared, *chain.from_iterable(part))).rowcount == len(part)
                for sql, part in form.parts(rows)
            )
        finally:
            if self._connection.in_transaction:  # which some errors end
                if not whole:
                    cursor.execute("ROLLBACK TO tenure_rows")
                cursor.execute("RELEASE tenure_rows")
        return whole

    def __enter__(self) -> Self:
        """Have what is done inside committed, or undone altogether."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Commit, or undo it all after an error."""
        try:
            if kind is None:
                self.commit()
        finally:
            try:
                self.rollback()  # nothing, once it is committed
            finally:
                self.leave()

    def commit(self) -> None:
        """End the session's transaction, if one began."""
        if self._begun_at is not None:
            try:
                self._cursor.execute("COMMIT")
            except sqlite3.Error as error:
                raise translate(error, self._path, committing=True) from error

    def rollback(self) -> None:
        """Undo the session's transaction, if one began."""
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")

    def leave(self) -> None:
        """Let the next in line take the write lock."""
        if self._turnstile is not None and self._place is not None:
            held = 0.0 if self._begun_at is None else time.monotonic() - self._begun_at
            self._turnstile.leave(self._place, held=held)
