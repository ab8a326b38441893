"""Connections lent to sessions: opened when asked for, kept while they are whole, never carried over a fork."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Generic, TypeVar

from tenure.errors import Unavailable
from tenure.protocol.op import arun, run
from tenure.store.contract import Execute, Verbs
from tenure.store.postgres.admission import Greeting, greet
from tenure.store.postgres.connect import (
    AsyncConnection,
    AsyncExecutor,
    Connection,
    Executor,
    aconnect,
    connect,
    is_quiet,
)
from tenure.store.postgres.target import Target

T = TypeVar("T")

_abandoned: list[object] = []
"""Connections inherited through a fork: they belong to the parent, who would notice if they were closed here (B22)."""


class Lender:
    """What sessions need to know of their store: where it is, and which it was when a connection was last admitted.

    `shift_ms` moves the clock in tests.
    """

    def __init__(self, target: Target, verbs: Verbs) -> None:
        self.target = target
        self.verbs = verbs
        self.identity = ""
        self.shift_ms = 0

    def open(self, seconds: float) -> Connection:
        """Open and admit a connection; raises Unavailable or BadSettings."""
        connection = connect(self.target, seconds)
        try:
            greeting = run(
                greet(
                    self.verbs,
                    self.target,
                    backend=connection.pgconn.backend_pid,
                    version=connection.info.server_version,
                ),
                Executor(connection, self.shift_ms),
            )
        except BaseException:
            connection.close()
            raise
        self._admitted(connection, greeting)
        return connection

    async def aopen(self, seconds: float) -> AsyncConnection:
        """Open and admit an asynchronous connection; raises Unavailable or BadSettings."""
        connection = await aconnect(self.target, seconds)
        try:
            greeting = await arun(
                greet(
                    self.verbs,
                    self.target,
                    backend=connection.pgconn.backend_pid,
                    version=connection.info.server_version,
                ),
                AsyncExecutor(connection, self.shift_ms),
            )
        except BaseException:
            await connection.close()
            raise
        self._admitted(connection, greeting)
        return connection

    def _admitted(self, connection: Connection | AsyncConnection, greeting: Greeting) -> None:
        connection.pooled, connection.identity = greeting.pooled, greeting.identity
        connection.prepare_threshold = None if greeting.pooled else 0
        self.identity = greeting.identity


class _Pool:
    """The connections of one process."""

    def __init__(self, limit: int) -> None:
        self.idle: list[Connection] = []
        self._left = limit
        self._waiting = 0
        self._changed = threading.Condition(threading.Lock())

    def reserve(self, seconds: float) -> bool:
        """Wait until one may be lent, for `seconds` at most; False when that was too short."""
        with self._changed:
            if self._left == 0:
                self._waiting += 1
                try:
                    self._changed.wait_for(lambda: self._left > 0, seconds)
                finally:
                    self._waiting -= 1
            if self._left == 0:
                return False
            self._left -= 1
            return True

    def release(self) -> None:
        """Let another one be lent."""
        with self._changed:
            self._left += 1
            if self._waiting:
                self._changed.notify()

    def whole(self) -> Connection | None:
        """Take an idle connection that is still whole."""
        while connection := self.pop():
            if is_quiet(connection):
                return connection
            connection.close()
        return None

    def pop(self) -> Connection | None:
        """Take an idle connection."""
        try:
            return self.idle.pop()
        except IndexError:
            return None


class _Loan(Generic[T]):
    """A connection lent for the time of a `with` block, as what `lend` makes of it."""

    __slots__ = ("_connection", "_lend", "_pool", "_sessions")

    def __init__(self, sessions: Sessions, lend: Callable[[Connection], T]) -> None:
        self._sessions = sessions
        self._lend = lend

    def __enter__(self) -> T:
        self._connection, self._pool = self._sessions.take()
        return self._lend(self._connection)

    def __exit__(self, *_: object) -> None:
        if not self._connection.closed:
            self._pool.idle.append(self._connection)
        self._pool.release()


class Sessions:
    """At most `limit` connections for blocking sessions whose requests take at most `timeout` seconds each."""

    def __init__(self, lender: Lender, *, timeout: float, limit: int) -> None:
        self._lender = lender
        self._timeout = timeout
        self._limit = limit
        self._pid = os.getpid()
        self._pool = _Pool(limit)

    def session(self) -> AbstractContextManager[Execute]:
        """Lend a connection; every request made on it is a transaction of its own."""
        return _Loan(self, self._executor)

    def connection(self) -> AbstractContextManager[Connection]:
        """Lend an admitted connection. Raises Unavailable when all are in use for too long."""
        return _Loan(self, _itself)

    def take(self) -> tuple[Connection, _Pool]:
        """Take a connection out of the pool, or open one for it."""
        self._notice_fork()
        pool = self._pool
        if not pool.reserve(self._timeout):
            raise Unavailable(
                f"{self._lender.target.label}: all {self._limit} connections are in use; nothing was done"
            )
        try:
            return pool.whole() or self._lender.open(self._timeout), pool
        except BaseException:
            pool.release()
            raise

    def _executor(self, connection: Connection) -> Executor:
        return Executor(connection, self._lender.shift_ms)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            _abandoned.extend(self._pool.idle)
            self._pid, self._pool = os.getpid(), _Pool(self._limit)

    def close(self) -> None:
        """Close the idle connections."""
        self._notice_fork()
        while connection := self._pool.pop():
            connection.close()


def _itself(connection: Connection) -> Connection:
    return connection


class _Shelf:
    """The connections of one event loop."""

    def __init__(self, limit: int) -> None:
        self.idle: list[AsyncConnection] = []
        self.free = asyncio.BoundedSemaphore(limit)

    def clear(self) -> None:
        """Close what is idle without its event loop, which may have ended."""
        while self.idle:
            connection = self.idle.pop()
            connection.pgconn.finish()  # while it is still referred to: it warns when it goes unclosed


class AsyncSessions:
    """The asynchronous twin of `Sessions`; each event loop has connections of its own."""

    def __init__(self, lender: Lender, *, timeout: float, limit: int) -> None:
        self._lender = lender
        self._timeout = timeout
        self._limit = limit
        self._pid = os.getpid()
        self._shelves: dict[asyncio.AbstractEventLoop, _Shelf] = {}

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Callable[[Any], Any]]:
        """Lend a connection; every request made on it is a transaction of its own."""
        async with self.connection() as connection:
            yield AsyncExecutor(connection, self._lender.shift_ms)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """Lend an admitted connection. Raises Unavailable when all are in use for too long."""
        shelf = self._shelf()
        try:
            async with asyncio.timeout(self._timeout):
                await shelf.free.acquire()
        except TimeoutError:
            label = self._lender.target.label
            raise Unavailable(f"{label}: all {self._limit} connections are in use; nothing was done") from None
        try:
            connection = await self._whole(shelf) or await self._lender.aopen(self._timeout)
            try:
                yield connection
            finally:
                if not connection.closed:
                    shelf.idle.append(connection)
        finally:
            shelf.free.release()

    def _shelf(self) -> _Shelf:
        self._notice_fork()
        loop = asyncio.get_running_loop()
        if loop not in self._shelves:
            self._forget_ended_loops()
            self._shelves[loop] = _Shelf(self._limit)
        return self._shelves[loop]

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            _abandoned.append(self._shelves)
            self._pid, self._shelves = os.getpid(), {}

    def _forget_ended_loops(self) -> None:
        for loop in [loop for loop in self._shelves if loop.is_closed()]:
            self._shelves.pop(loop).clear()

    async def _whole(self, shelf: _Shelf) -> AsyncConnection | None:
        while shelf.idle:
            connection = shelf.idle.pop()
            if is_quiet(connection):
                return connection
            await connection.close()
        return None

    async def aclose(self) -> None:
        """Close the idle connections of the running event loop."""
        shelf = self._shelf()
        while shelf.idle:
            await shelf.idle.pop().close()

    def close(self) -> None:
        """Close the idle connections of every event loop, also of those that have ended."""
        self._notice_fork()
        while self._shelves:
            self._shelves.popitem()[1].clear()
