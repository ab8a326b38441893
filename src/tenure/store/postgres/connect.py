"""Connections that never wait longer than they may, and how a batch goes over them in one round trip.

psycopg's waits have no end of their own: a server that is frozen, or behind a network that swallows packets, holds the
caller for ever (B07). Both connection classes therefore wait by themselves and look up every tenth of a second, to see
whether the deadline is over. Nor do they ask the server to cancel what was interrupted, as psycopg would: a cancel that
hits the commit makes it look good where it is not (R29).
"""

from __future__ import annotations

import select
import time
from collections.abc import Generator, Sequence
from typing import Any, Generic, TypeVar, cast

import psycopg
from psycopg import waiting
from psycopg.pq import TransactionStatus

from tenure.errors import OutcomeUnknown, TenureError, Unavailable
from tenure.protocol.op import Request
from tenure.store.postgres.requests import Step, lay_out, only_reads
from tenure.store.postgres.target import Target
from tenure.store.postgres.translate import ConnectionLost, translate, unreachable
from tenure.store.statements import Batch, Call, Row

T = TypeVar("T")
Waiting = Generator[Any, Any, T]

_GRACE = 0.25  # seconds that the server's own timeout, which tells the outcome, may come late
_LOOK_UP = 0.1
_UNFIT = {"0A000", "25006", "26000", "42P05", "TN001"}
"""Errors that will come again on the same connection: its server is not the primary, or has lost what was prepared."""


class Link:
    """What both kinds of connection know besides psycopg: their deadline, and what their admission found."""

    target: Target
    timeout: float
    deadline: float = 0.0
    pooled: bool = True  # until the greeting has shown otherwise, nothing is left behind in the session
    identity: str = ""  # empty until it is admitted
    unreplicated: bool = False

    def begin(self) -> None:
        """Start the clock of one request."""
        self.deadline = time.monotonic() + self.timeout + _GRACE
        self.unreplicated = False

    def notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Note that a commit came back without its synchronous standby: it may yet be lost (R29)."""
        if diagnostic.source_file == "syncrep.c":
            self.unreplicated = True


class _Watched(Generic[T]):
    """What psycopg waits for, broken off when the deadline of its link is over."""

    def __init__(self, gen: Waiting[T], link: Link) -> None:
        self._gen = gen
        self._link = link

    def __next__(self) -> Any:
        return next(self._gen)

    def send(self, ready: Any) -> Any:
        """Go on with what has become ready; nothing, when psycopg only looks up."""
        if not ready and time.monotonic() > self._link.deadline:
            raise ConnectionLost("the server did not answer in time")
        return self._gen.send(ready)


class Connection(Link, psycopg.Connection[Row]):
    """A blocking connection of ours, in autocommit."""

    def wait(self, gen: Waiting[T], *_: Any, **__: Any) -> T:
        """Wait for the server until the deadline; every request of psycopg passes here."""
        try:
            return waiting.wait(cast("Waiting[T]", _Watched(gen, self)), self.pgconn.socket, _LOOK_UP)
        except ConnectionLost:
            self.pgconn.finish()
            raise


class AsyncConnection(Link, psycopg.AsyncConnection[Row]):
    """An asynchronous connection of ours, in autocommit."""

    async def wait(self, gen: Waiting[T], *_: Any, **__: Any) -> T:
        """Wait for the server until the deadline; every request of psycopg passes here."""
        try:
            return await waiting.wait_async(cast("Waiting[T]", _Watched(gen, self)), self.pgconn.socket, _LOOK_UP)
        except ConnectionLost:
            self.pgconn.finish()
            raise


def connect(target: Target, seconds: float) -> Connection:
    """Open a connection whose requests take at most `seconds`, like the opening itself; raises Unavailable."""
    try:
        connection = Connection.connect(**target.parameters(seconds), autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise unreachable(error, target) from error
    return _own(connection, target, seconds)


async def aconnect(target: Target, seconds: float) -> AsyncConnection:
    """Open an asynchronous connection; the twin of `connect`."""
    try:
        connection = await AsyncConnection.connect(
            **target.parameters(seconds), autocommit=True, prepare_threshold=None
        )
    except psycopg.Error as error:
        raise unreachable(error, target) from error
    return _own(connection, target, seconds)


L = TypeVar("L", Connection, AsyncConnection)


def _own(connection: L, target: Target, seconds: float) -> L:
    connection.target, connection.timeout = target, seconds
    connection.add_notice_handler(connection.notice)
    return connection


def is_quiet(connection: Connection | AsyncConnection) -> bool:
    """Tell whether an idle connection is still whole: what arrives unasked is the end of it."""
    if connection.closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


# -- one batch, one round trip


class _Plan:
    """The steps that carry a batch over a connection, and which of their answers are the batch's."""

    def __init__(self, request: Request[Any], link: Link, shift_ms: int) -> None:
        batch = cast("Batch", request)  # the only request that verbs of SQL stores make
        common = {
            "shift_ms": shift_ms,
            "identity": link.identity,
            "timeout_ms": round(link.timeout * 1000),
            "table": None,  # this connection is ours
        }
        self.changing = not only_reads(batch)
        self.steps: list[Step] = [lay_out(call, common) for call in batch.calls]
        # Through a pooler the session is not ours, so what a session would hold goes with each transaction (R43).
        self._wrapped = link.pooled and bool(link.identity)
        if self._wrapped:
            head: list[Step] = [("BEGIN ISOLATION LEVEL READ COMMITTED", ()), lay_out(Call("expect"), common)]
            self.steps = [*head, *self.steps, ("COMMIT", ())]

    def answers(self, answers: list[list[Row]], link: Link) -> list[list[Row]]:
        """Pick the batch's own answers; raises ConnectionLost where the commit cannot be relied on (R29)."""
        if link.unreplicated:
            raise ConnectionLost("the commit was made here but may not have reached the synchronous standby")
        return answers[2:-1] if self._wrapped else answers


class _Execution(Generic[L]):
    """One session on a connection: every batch is a transaction and a round trip of its own."""

    def __init__(self, connection: L, shift_ms: int) -> None:
        self._connection: L = connection
        self._shift_ms = shift_ms
        self._changed = False

    def _begin(self, request: Request[Any]) -> _Plan:
        self._connection.begin()
        return _Plan(request, self._connection, self._shift_ms)

    def _end(self, plan: _Plan, answers: list[list[Row]]) -> list[list[Row]]:
        answers = plan.answers(answers, self._connection)
        self._changed |= plan.changing
        return answers

    def _fail(self, error: psycopg.Error, plan: _Plan) -> TenureError:
        """Translate an error, and give the connection up unless it is plainly good for the next request."""
        code = error.sqlstate
        if code is None or code in _UNFIT or self._connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self._connection.pgconn.finish()
        meaning = translate(error, self._connection.target, changing=plan.changing)
        if self._changed and isinstance(meaning, Unavailable):
            return OutcomeUnknown(f"the change was made, but not all of the answer could be had: {meaning}")
        return meaning


class Executor(_Execution[Connection]):
    """Answers the requests of verbs on one blocking connection of ours."""

    def __call__(self, request: Request[Any]) -> list[list[Row]]:
        """Execute a batch; raises Unavailable, OutcomeUnknown or BadSettings."""
        plan = self._begin(request)
        try:
            return self._end(plan, _send(self._connection, plan.steps))
        except psycopg.Error as error:
            raise self._fail(error, plan) from error
        except BaseException:
            self._connection.pgconn.finish()
            raise


class AsyncExecutor(_Execution[AsyncConnection]):
    """The asynchronous twin of `Executor`."""

    async def __call__(self, request: Request[Any]) -> list[list[Row]]:
        """Execute a batch; raises Unavailable, OutcomeUnknown or BadSettings."""
        plan = self._begin(request)
        try:
            return self._end(plan, await _asend(self._connection, plan.steps))
        except psycopg.Error as error:
            raise self._fail(error, plan) from error
        except BaseException:
            self._connection.pgconn.finish()
            raise


def _send(connection: Connection, steps: Sequence[Step]) -> list[list[Row]]:
    # Several statements between two syncs of a pipeline are one transaction, committed by the second sync.
    cursors = [psycopg.RawCursor(connection) for _ in steps]
    if len(steps) == 1:
        cursors[0].execute(*steps[0], binary=True)
    else:
        with connection.pipeline():
            for cursor, step in zip(cursors, steps, strict=True):
                cursor.execute(*step, binary=True)
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def _asend(connection: AsyncConnection, steps: Sequence[Step]) -> list[list[Row]]:
    cursors = [psycopg.AsyncRawCursor(connection) for _ in steps]
    if len(steps) == 1:
        await cursors[0].execute(*steps[0], binary=True)
    else:
        async with connection.pipeline():
            for cursor, step in zip(cursors, steps, strict=True):
                await cursor.execute(*step, binary=True)
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]
