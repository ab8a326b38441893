"""`PostgresStore`: the address opened, its connections shared, its schema looked after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

from tenure.errors import BadSettings
from tenure.store.contract import Execute, Verbs
from tenure.store.driver import AsyncDriver, JoinedDriver, SyncDriver
from tenure.store.postgres import schema
from tenure.store.postgres.admission import NotPrimary
from tenure.store.postgres.bell import NotifyBell
from tenure.store.postgres.callers import CallersTransaction, is_known
from tenure.store.postgres.join import Joined, ajoined, aunwrap, refuse_stranger, unwrap
from tenure.store.postgres.sessions import AsyncSessions, Lender, Sessions
from tenure.store.postgres.target import Target
from tenure.store.rows import from_ms
from tenure.store.sql import SqlVerbs
from tenure.store.statements import Batch, Call

LIMIT = 10
"""Connections that a store opens for the calls of a process; workers have theirs on top."""

_PATIENCE = 5.0  # seconds for what no caller gave a timeout to
_MIGRATION = 600.0


class PostgresStore:
    """A store in the PostgreSQL database at `url`, a libpq URI or connection string.

    Raises BadSettings for an address that cannot be read; the database is not asked before it is needed.
    """

    durability = "durable: every commit is flushed to the server's disk; after a failover claims start above the floor"
    capabilities = frozenset({"caller_transaction", "bell", "processes", "parallel_writes"})

    def __init__(self, url: str) -> None:
        self._target = Target.parse(url)
        self.name = self._target.name
        self.verbs: Verbs = SqlVerbs(self.name)
        self._lender = Lender(self._target, self.verbs)
        self._sessions: dict[float, Sessions] = {}
        self._async_sessions: dict[float, AsyncSessions] = {}

    # -- the contract's drivers

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> SyncDriver:
        """Open a driver; threads may share it, and all drivers of one timeout share connections."""
        return SyncDriver(self._shared(timeout).session, timeout=timeout, repeat_unknown=repeat_unknown)

    def dedicated(self, *, timeout: float) -> SyncDriver:
        """Open a driver with a single connection of its own, opened anew by itself when it is lost."""
        own = Sessions(self._lender, timeout=timeout, limit=1)
        return SyncDriver(own.session, timeout=timeout, close=own.close)

    def aconnect(self, *, timeout: float, repeat_unknown: bool = False) -> AsyncDriver:
        """Open an asynchronous driver; each event loop has connections of its own."""
        sessions = self._ashared(timeout)
        return AsyncDriver(sessions.session, timeout=timeout, repeat_unknown=repeat_unknown, close=sessions.aclose)

    def join(self, connection: object) -> JoinedDriver:
        """Drive verbs inside the open transaction of a psycopg connection, or of SQLAlchemy or Django over one."""
        unwrap(connection)
        return JoinedDriver(lambda: self._joined(unwrap(connection)))

    def ajoin(self, connection: object) -> AsyncDriver:
        """Drive verbs inside the open transaction of an asynchronous connection, of psycopg, asyncpg or SQLAlchemy."""
        refuse_stranger(connection)

        @asynccontextmanager
        async def session() -> AsyncIterator[Callable[[Any], Any]]:
            raw = await aunwrap(connection)
            identity = self._lender.identity
            if not is_known(raw, identity):
                async with self._ashared(_PATIENCE).connection() as own:
                    identity = own.identity
            yield ajoined(raw, CallersTransaction(raw, self._target, identity, self._lender.shift_ms))

        return AsyncDriver(session, timeout=0.0)

    def _joined(self, raw: Any) -> Joined:
        identity = self._lender.identity
        if not is_known(raw, identity):
            with self._shared(_PATIENCE).connection() as own:
                identity = own.identity
        return Joined(raw, CallersTransaction(raw, self._target, identity, self._lender.shift_ms))

    def session(self) -> AbstractContextManager[Execute]:
        """Lend a connection for one session."""
        return self._shared(_PATIENCE).session()

    def _shared(self, timeout: float) -> Sessions:
        return self._sessions.setdefault(timeout, Sessions(self._lender, timeout=timeout, limit=LIMIT))

    def _ashared(self, timeout: float) -> AsyncSessions:
        return self._async_sessions.setdefault(timeout, AsyncSessions(self._lender, timeout=timeout, limit=LIMIT))

    # -- the database and its schema

    @property
    def pooled(self) -> bool:
        """Tell whether a pooler that lends a server for one transaction stands in between; then there is no bell."""
        with self._shared(_PATIENCE).connection() as connection:
            return connection.pooled

    def bell(self) -> NotifyBell | None:
        """Open a bell; None through a pooler, where nobody can listen."""
        connection = self._lender.open(_PATIENCE)
        if connection.pooled:
            connection.close()
            return None
        return NotifyBell(connection)

    def check(self) -> None:
        """Raise BadSettings for a server where an acknowledged generation could be lost (R11, R42)."""
        try:
            self._lender.open(_PATIENCE).close()
        except NotPrimary as error:
            raise BadSettings(str(error)) from error

    def migrate(self) -> list[str]:
        """Apply what is missing and return the names; raises Unavailable where a lock is not free within a second."""
        return schema.migrate(self._target, _MIGRATION)

    def pending_migrations(self) -> list[tuple[str, str]]:
        """Return (name, SQL) of what is missing."""
        return schema.pending_migrations(self._target, _PATIENCE)

    def close(self) -> None:
        """Close the idle connections, those of event loops included."""
        for sessions in self._sessions.values():
            sessions.close()
        for async_sessions in self._async_sessions.values():
            async_sessions.close()

    # -- for tests

    def shift_clock(self, seconds: float) -> None:
        """Move the clock that this store's statements read forward."""
        self._lender.shift_ms += round(seconds * 1000)

    def now(self) -> datetime:
        """Read the store's clock."""
        with self.session() as execute:
            (((milliseconds,),),) = execute(Batch((Call("clock"),)))
        return from_ms(milliseconds)
