"""`SqliteStore`: the file opened, and its connections shared."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tenure.errors import BadSettings
from tenure.protocol.op import Op, Request, run
from tenure.store.caller import unwrapped
from tenure.store.contract import Verbs
from tenure.store.driver import Again, AsyncDriver, JoinedDriver, SyncDriver
from tenure.store.migrate import load_migrations
from tenure.store.rows import from_ms
from tenure.store.sql import SqlVerbs
from tenure.store.sqlite import schema
from tenure.store.sqlite.asynchronous import is_asynchronous, reach
from tenure.store.sqlite.bell import FileBell
from tenure.store.sqlite.clocks import Clocks, file_identity, refuse_network
from tenure.store.sqlite.connect import OLDEST, OPENING, Transaction, open_connection, translate
from tenure.store.sqlite.forks import watch
from tenure.store.sqlite.join import Callers
from tenure.store.sqlite.reader import Reader, may_write, refuse_what_is_no_store
from tenure.store.sqlite.turnstile import Turnstile, turnstile_of

P = ParamSpec("P")
T = TypeVar("T")

_BYTE = re.compile("[\udc80-\udcff]")  # a byte in the name of a file that is no text
_QUIET = 5.0  # seconds that a fork waits for transactions under way in other threads


class SqliteStore:
    """A store in one file. `path` is created when it is missing; `clocks` are injected by tests."""

    durability = "durable: every commit is synced to the disk of this host"
    capabilities = frozenset({"caller_transaction", "bell", "processes"})

    def __init__(self, path: str, *, clocks: Clocks | None = None) -> None:
        self.path = Path(path).absolute()
        self.name = f"sqlite:///{_BYTE.sub(lambda byte: f'%{ord(byte[0]) & 0xFF:02X}', str(self.path))}"
        self.verbs: Verbs = SqlVerbs(self.name)
        self._clocks = clocks or Clocks()
        self._idle: list[sqlite3.Connection] = []
        self._lent = 0
        self._forking, self._forked_by = False, 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._callers = Callers(self.path, self.name, self._clocks, self.verbs)
        self._identity: str | None = None
        self._turnstile: Turnstile | None = None
        watch(self)

    # -- drivers

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> SyncDriver:
        """Open a driver; threads may share it."""
        return SyncDriver(partial(self.session, timeout), timeout=timeout, repeat_unknown=repeat_unknown)

    def dedicated(self, *, timeout: float) -> SyncDriver:
        """Open a driver for one thread: connections are lent one a transaction, so none is occupied by another."""
        return self.connect(timeout=timeout)

    def reader(self, *, timeout: float) -> SyncDriver:
        """Open a driver for who only looks: it makes nothing, and may do without the right to write."""
        only_reads = self.path.is_file() and not may_write(self.path)
        if not only_reads:
            self.check()
        refuse_what_is_no_store(self.path)
        if only_reads:
            return SyncDriver(Reader(self.path, self._clocks).session, timeout=timeout)
        return self.connect(timeout=timeout)

    def aconnect(self, *, timeout: float, repeat_unknown: bool = False) -> ThreadDriver:
        """Open an asynchronous driver: a whole verb runs in a thread, one hop a transaction."""
        return ThreadDriver(self.connect(timeout=timeout, repeat_unknown=repeat_unknown))

    def join(self, connection: object) -> JoinedDriver:
        """Drive verbs inside the open transaction of a `sqlite3` connection, or of SQLAlchemy or Django over one."""
        raw, place = self._callers.same_file(unwrapped(connection))
        return JoinedDriver(lambda: self._callers.join(raw, place))

    def ajoin(self, connection: object) -> AsyncDriver:
        """Drive verbs inside the caller's open transaction: in the calling thread, or in that of aiosqlite."""
        if not is_asynchronous(connection):
            self._callers.same_file(unwrapped(connection))

        @asynccontextmanager
        async def session() -> AsyncIterator[Callable[[Request[Any]], Any]]:
            raw, call = await reach(connection)
            execute = await call(lambda: self._callers.join(*self._callers.same_file(raw)))
            yield lambda request: call(lambda: execute(request))

        return AsyncDriver(session, timeout=0.0)

    def session(self, timeout: float = 0.0) -> Session:
        """Lend a connection for one transaction, which waits for the write lock for at most `timeout` seconds."""
        return Session(self, timeout)

    def transaction(self, connection: sqlite3.Connection, timeout: float) -> Transaction:
        """Make a transaction of the store's own on one of its connections."""
        turnstile = self._turnstile or turnstile_of(self.path)
        return Transaction(
            connection,
            self._clocks,
            str(self.path),
            {"identity": self._identity or ""},
            turnstile=turnstile,
            timeout=timeout,
        )

    # -- connections

    def take(self) -> sqlite3.Connection:
        """Lend a connection; raises Unavailable or BadSettings where one has to be opened and cannot."""
        with self._lock:
            while self._forking:
                self._changed.wait()
            self._lent += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._open()
        except BaseException:
            self.give_back(None)
            raise

    def give_back(self, connection: sqlite3.Connection | None) -> None:
        """Take a connection back; None where it is closed."""
        with self._lock:
            if connection is not None:
                self._idle.append(connection)
            self._lent -= 1
            if self._forking:
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Close every connection once the transactions under way have ended (B22)."""
        self._changed.acquire()
        self._forking, self._forked_by = True, os.getpid()
        self._changed.wait_for(lambda: not self._lent, _QUIET)
        while self._idle:
            self._idle.pop().close()

    def after_fork(self) -> None:
        """Let connections be opened again."""
        self._forking = False
        if os.getpid() != self._forked_by:
            self._lent = 0  # the threads that borrowed are no more
        self._changed.notify_all()
        self._changed.release()

    def _open(self) -> sqlite3.Connection:
        if self._identity is None:
            self.check()
        until = time.monotonic() + OPENING
        while True:
            try:
                return self._opened(until - time.monotonic())
            except Again:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.01)

    def _opened(self, timeout: float) -> sqlite3.Connection:
        connection = open_connection(self.path)
        try:
            self._turnstile = turnstile_of(self.path)
            self._prepare(connection, timeout)
            self._identity = file_identity(self.path)
            with self.transaction(connection, timeout) as execute:
                run(self.verbs.admit(), execute)
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, str(self.path)) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, timeout: float) -> None:
        """Bring a fresh file up to date and end the leases of another boot, taking the write lock only if needed."""
        if schema.is_ready(connection, self._clocks, self.path, self.name):
            return
        with self.transaction(connection, timeout) as transaction:
            transaction.begin()
            schema.make_ready(connection, self._clocks)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    # -- the file

    def check(self) -> None:
        """Raise BadSettings for an SQLite that is too old, or a file where its locks do not hold (R42, B09)."""
        if sqlite3.sqlite_version_info < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise BadSettings(f"this Python has SQLite {sqlite3.sqlite_version}; Tenure needs {needed} or newer")
        if not self.path.parent.is_dir():
            raise BadSettings(f"there is no folder {self.path.parent} for the store {self.path.name}: create it")
        self._refuse_unwritable()
        refuse_network(self.path)

    def _refuse_unwritable(self) -> None:
        if self.path.is_dir():
            raise BadSettings(f"{self.path} is a folder: name a file in it")
        for place in (self.path.parent, self.path):
            if place.exists() and not os.access(place, os.W_OK):
                raise BadSettings(f"{place} cannot be written by this user: a store writes to its file and beside it")

    def migrate(self) -> list[str]:
        """Apply what is missing and return the names."""
        self.check()
        connection = open_connection(self.path)
        try:
            with self.transaction(connection, OPENING) as transaction:
                transaction.begin()
                return schema.apply(connection, self._clocks)
        except sqlite3.Error as error:
            raise translate(error, str(self.path)) from error
        finally:
            connection.close()

    def pending_migrations(self) -> list[tuple[str, str]]:
        """Return (name, SQL) of what is missing; makes no file."""
        self.check()
        if not self.path.exists():
            return [(migration.name, migration.sql) for migration in load_migrations("tenure.store.sqlite")]
        connection = open_connection(self.path)
        try:
            return [(migration.name, migration.sql) for migration in schema.missing(connection)]
        finally:
            connection.close()

    def bell(self) -> FileBell:
        """Open a bell that watches the file for commits of other processes."""
        self.give_back(self.take())
        return FileBell(self.path)

    # -- for tests

    def shift_clock(self, seconds: float) -> None:
        """Move this store's clocks forward."""
        self._clocks.shift_ms += round(seconds * 1000)

    def now(self) -> datetime:
        """Read the store's wall clock."""
        return from_ms(self._clocks.read()[0])


class Session:
    """A connection of a store's, lent for one transaction."""

    __slots__ = ("_connection", "_store", "_timeout", "_transaction")

    def __init__(self, store: SqliteStore, timeout: float) -> None:
        self._store = store
        self._timeout = timeout

    def __enter__(self) -> Transaction:
        """Take a connection."""
        connection = self._connection = self._store.take()
        try:
            self._transaction = self._store.transaction(connection, self._timeout)
        except BaseException:
            self._store.give_back(connection)
            raise
        return self._transaction

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """End the transaction, and give the connection back."""
        connection = self._connection
        try:
            self._transaction.__exit__(kind, error, trace)
        finally:
            # A transaction that could not even be rolled back takes its connection with it.
            if connection.in_transaction:
                connection.close()
                self._store.give_back(None)
            else:
                self._store.give_back(connection)


class ThreadDriver:
    """Run each verb of a blocking driver in a thread."""

    def __init__(self, driver: SyncDriver) -> None:
        self._driver = driver

    async def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` as one transaction."""
        return await asyncio.to_thread(lambda: self._driver.do(verb, *args, **kwargs))

    async def close(self) -> None:
        """Nothing to give back: connections belong to the store."""
        self._driver.close()
