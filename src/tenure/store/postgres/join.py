"""Verbs inside a transaction of the caller's own: on psycopg, on asyncpg, or on what SQLAlchemy or Django holds.

Nothing here begins more than psycopg itself would, and nothing commits or rolls back. No savepoint is needed: a failing
statement bars the whole transaction until its owner rolls back, and that undoes our part too.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from tenure.errors import Misuse
from tenure.protocol.op import Request, arun, run
from tenure.store.caller import unwrapped
from tenure.store.postgres.asyncpg import AsyncpgJoined, in_asyncpg_transaction, is_asyncpg
from tenure.store.postgres.callers import CallersTransaction
from tenure.store.postgres.requests import lay_out
from tenure.store.postgres.translate import translate
from tenure.store.statements import Batch, Call, Row

R = TypeVar("R", psycopg.Connection[Any], psycopg.AsyncConnection[Any])

_KINDS = (
    "psycopg.Connection, psycopg.AsyncConnection, an asyncpg connection, a connection or session of SQLAlchemy over one"
    " of them, or Django's connection over psycopg"
)


def unwrap(connection: Any) -> psycopg.Connection[Any]:
    """Find the psycopg connection behind a blocking connection or session of SQLAlchemy; raises Misuse."""
    if _waits_to_begin(connection):
        connection.begin()
    raw = unwrapped(connection)
    if not isinstance(raw, psycopg.Connection):
        raise _other_kind(connection)
    return _in_transaction(raw)


async def aunwrap(connection: Any) -> Any:
    """Find the connection of psycopg or asyncpg behind an asynchronous one of SQLAlchemy; raises Misuse."""
    if hasattr(connection, "sync_session"):
        connection = await connection.connection()
    if hasattr(connection, "sync_connection") and _waits_to_begin(connection):
        await connection.begin()
    raw: Any = unwrapped(connection)
    if isinstance(raw, psycopg.AsyncConnection):
        return _in_transaction(raw)
    if not is_asyncpg(raw):
        raise _other_kind(connection)
    if raw is not connection and not raw.is_in_transaction():
        await connection.exec_driver_sql("SELECT 1")  # only with its first statement does SQLAlchemy begin here
    return in_asyncpg_transaction(raw)


def _waits_to_begin(connection: Any) -> bool:
    # SQLAlchemy begins with the first statement that passes through it, and ours do not: it would not commit them.
    return callable(getattr(connection, "in_transaction", None)) and not connection.in_transaction()


def refuse_stranger(connection: object) -> None:
    """Raise Misuse for what cannot be an asynchronous connection, as soon as that can be told without waiting."""
    wrapped = hasattr(connection, "sync_session") or hasattr(connection, "sync_connection")
    if not wrapped and not isinstance(connection, psycopg.AsyncConnection) and not is_asyncpg(connection):
        raise _other_kind(connection)


def _other_kind(connection: object) -> Misuse:
    kind = f"{type(connection).__module__}.{type(connection).__name__}"
    return Misuse(
        f"connection= got {kind}, which a store in PostgreSQL cannot join here: pass a {_KINDS}; the blocking kinds"
        " with blocking calls, the asynchronous kinds with `await`"
    )


def _in_transaction(raw: R) -> R:
    if raw.closed:
        raise Misuse("connection= is closed: open it, or leave connection= out")
    if raw.autocommit and raw.pgconn.transaction_status == TransactionStatus.IDLE:
        raise Misuse("connection= is in autocommit and not in a transaction: begin one first, or leave connection= out")
    return raw


class Joined:
    """Answers the requests of verbs inside the caller's transaction."""

    def __init__(self, raw: psycopg.Connection[Any], caller: CallersTransaction) -> None:
        self._cursor = psycopg.RawCursor(raw, row_factory=tuple_row)
        self._caller = caller

    def __call__(self, request: Request[Any]) -> list[list[Row]]:
        """Execute a batch, call by call; what fails is not committed, so that its outcome is known."""
        try:
            return run(self._caller.answer(cast("Batch", request)), self._execute)
        except psycopg.Error as error:
            raise translate(error, self._caller.target, changing=False) from error

    def _execute(self, request: Request[Any]) -> list[list[Row]]:
        return [self._call(call) for call in cast("Batch", request).calls]

    def _call(self, call: Call) -> list[Row]:
        self._cursor.execute(*lay_out(call, self._caller.common), binary=True)
        return self._cursor.fetchall()


class AsyncJoined:
    """The asynchronous twin of `Joined`."""

    def __init__(self, raw: psycopg.AsyncConnection[Any], caller: CallersTransaction) -> None:
        self._cursor = psycopg.AsyncRawCursor(raw, row_factory=tuple_row)
        self._caller = caller

    async def __call__(self, request: Request[Any]) -> list[list[Row]]:
        """Execute a batch, call by call; what fails is not committed, so that its outcome is known."""
        try:
            return await arun(self._caller.answer(cast("Batch", request)), self._execute)
        except psycopg.Error as error:
            raise translate(error, self._caller.target, changing=False) from error

    async def _execute(self, request: Request[Any]) -> list[list[Row]]:
        return [await self._call(call) for call in cast("Batch", request).calls]

    async def _call(self, call: Call) -> list[Row]:
        await self._cursor.execute(*lay_out(call, self._caller.common), binary=True)
        return await self._cursor.fetchall()


def ajoined(raw: Any, caller: CallersTransaction) -> AsyncJoined | AsyncpgJoined:
    """Make what answers the requests of verbs on an asynchronous connection of either kind."""
    return AsyncpgJoined(raw, caller) if is_asyncpg(raw) else AsyncJoined(raw, caller)
