"""`FencedService`: the server's side of a fence over HTTP, in the transaction of the effect (D5).

    service = FencedService("postgresql")

    with transaction() as connection, service.request(connection, facts, scope="account/7") as call:
        if call.repeat:
            return call.response
        connection.execute("INSERT INTO charges ...")
        return call.answer(201, {"charge": 1})

What holds: the fence's mark, the effect and the answer are committed together or not at all (R31). A stale request is
refused however late it comes. A request that comes again, from the same owner or from a later one, gets the answer that
it got before. Of two messages of one request, one waits for the other, or is told to ask again.

What does not: effects outside the transaction, on another connection or passed on to a third party; work that is put
off until after the answer (202), unless it carries the token on; addresses that do not ask for a token. A stored answer
must outlive the longest delay of a request: `forget_older_than`.

What must be configured: one database for the fence, the answers and the effects of a scope, shared by all servers;
`scope`, so that a request cannot choose its fence; `client` in the facts where several clients share the service; who
may send a token at all. No proxy in between may drop the header fields or cache answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from tenure.errors import BadToken, Misuse, OutOfSequence
from tenure.fences.http import responses
from tenure.fences.http.bodies import too_large
from tenure.fences.http.execute import Executor
from tenure.fences.http.headers import KEY, SEQUENCE, MissingHeader, read_headers
from tenure.fences.http.messages import Answer, RequestFacts, make_answer
from tenure.fences.http.responses import Asked
from tenure.fences.rule import LEAP, Mark
from tenure.fences.sql import SQLFence
from tenure.fences.sql.operations import Dialect
from tenure.protocol.lease import Effect, Token
from tenure.protocol.names import check_name
from tenure.protocol.op import Op

LARGEST = 1 << 20
"""The largest request, and the largest answer to be kept, in bytes."""

_FAILED = 500


@dataclass(frozen=True, slots=True)
class _Bid:
    token: Token
    asked: Asked
    ordered: bool


class Call:
    """One request on its way through its endpoint, inside the transaction of its effect."""

    def __init__(self, connection: Any, token: Token, asked: Asked, found: Answer | None, largest: int) -> None:
        self.connection = connection
        self.token = token
        self.asked = asked
        self.scope = asked.scope
        self.key = asked.key
        self.repeat = found is not None
        self._response = found
        self._largest = largest

    @property
    def response(self) -> Answer:
        """The answer: the stored one of a repeat, else the one that was given. Misuse when there is none yet."""
        if self._response is None:
            raise Misuse("a fenced request was not answered: call.answer(status, body) before its block ends")
        return self._response

    def answer(
        self, status: int, body: Any = b"", headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    ) -> Answer:
        """Give the answer, to be kept and given again; bytes, text, or anything that JSON can say. Raises Misuse."""
        if self.repeat:
            raise Misuse("this request was answered before: when call.repeat is true, do nothing and return the answer")
        made = make_answer(status, body, headers)
        if made.status >= _FAILED:
            raise Misuse(
                f"status {status} says that the work failed, and its answer would be kept: raise an exception, so that"
                " the transaction is rolled back and the request can be sent again"
            )
        if len(made.body) > self._largest:
            raise Misuse(f"an answer of {len(made.body)} bytes is too large to be kept: at most {self._largest}")
        self._response = made
        return made


class FencedService:
    """Fence and stored answers of a service, in its own database; every method works in the caller's transaction.

    `wait` is how many seconds a message waits for another one of the same scope or request before it is told to ask
    again (PostgreSQL; elsewhere the connection's own limit counts). `largest` bounds, in bytes, the requests that are
    taken and the answers that are kept.
    """

    def __init__(self, dialect: Dialect, *, leap: int = LEAP, wait: float = 2.0, largest: int = LARGEST) -> None:
        if not wait > 0:
            raise Misuse(f"wait is {wait!r}: more than 0 seconds")
        self.fence = SQLFence(dialect, leap=leap)
        self.largest = largest
        self._executor = Executor(dialect)
        self._wait = wait

    # -- the tables

    def create(self, connection: Any) -> None:
        """Make the tables of fences and answers where they are missing."""
        self.fence.create(connection)
        self._executor.run(connection, self._executor.create())

    async def create_async(self, connection: Any) -> None:
        """Make the tables where they are missing; the twin of `create`."""
        await self.fence.create_async(connection)
        await self._executor.arun(connection, self._executor.create())

    def forget_older_than(self, connection: Any, seconds: float) -> int:
        """Forget the answers to requests that came more than `seconds` ago; returns how many.

        A request that comes again later than that is carried out again by a new owner. So keep them for longer than a
        request can be on its way and a job can take, retries and outages included: days, rather than hours. Tell your
        clients for how long.
        """
        return self._executor.run(connection, responses.forget(_whole_seconds(seconds)))

    async def forget_older_than_async(self, connection: Any, seconds: float) -> int:
        """Forget the answers to old requests; the twin of `forget_older_than`."""
        return await self._executor.arun(connection, responses.forget(_whole_seconds(seconds)))

    # -- one request

    @contextmanager
    def request(
        self, connection: Any, facts: RequestFacts, *, scope: str | None = None, ordered: bool = True
    ) -> Iterator[Call]:
        """Let one request through, for the length of a `with` block inside the transaction of its effect.

        `scope` is what this endpoint protects; a request that names another one is refused. Left out, the request
        chooses, and may choose wrongly. `ordered` endpoints let a run's requests through in the order of their numbers
        ("the latest wins"); for effects that only must happen once each, and may be sent at once, say False: then the
        key alone tells repeats.

        Raises what `tenure.fences.http.problems.REFUSALS` lists, or what the block raises; the transaction must then
        be rolled back. At the end of the block the answer is kept; without one Misuse is raised.
        """
        call = self.check(connection, facts, scope=scope, ordered=ordered)
        yield call
        self.keep(connection, call)

    @asynccontextmanager
    async def request_async(
        self, connection: Any, facts: RequestFacts, *, scope: str | None = None, ordered: bool = True
    ) -> AsyncIterator[Call]:
        """Let one request through; the twin of `request`."""
        call = await self.check_async(connection, facts, scope=scope, ordered=ordered)
        yield call
        await self.keep_async(connection, call)

    # -- its parts, for what cannot be one transaction

    def check(self, connection: Any, facts: RequestFacts, *, scope: str | None = None, ordered: bool = True) -> Call:
        """Pass the fence and begin the request: the first half of `request`, which is what to use instead.

        In a transaction of its own this is check-then-act: what follows may come too late. Until `keep` or `give_up`
        the request counts as being carried out, and others of its kind are told to ask again.
        """
        bid = self._read(facts, scope, ordered=ordered)
        self._executor.check_held(connection)
        with self._executor.bounded(connection, self._wait):
            found = self._executor.run(connection, _open(bid.asked, self._pass(connection, bid)))
        return Call(connection, bid.token, bid.asked, found, self.largest)

    async def check_async(
        self, connection: Any, facts: RequestFacts, *, scope: str | None = None, ordered: bool = True
    ) -> Call:
        """Pass the fence and begin the request; the twin of `check`."""
        bid = self._read(facts, scope, ordered=ordered)
        await self._executor.check_held_async(connection)
        async with self._executor.bounded_async(connection, self._wait):
            refused = await self._pass_async(connection, bid)
            found = await self._executor.arun(connection, _open(bid.asked, refused))
        return Call(connection, bid.token, bid.asked, found, self.largest)

    def keep(self, connection: Any, call: Call) -> None:
        """Keep the answer that was given to a call; Misuse when none was."""
        answer = call.response
        if not answer.repeat:
            self._executor.run(connection, responses.finish(call.asked, answer))

    async def keep_async(self, connection: Any, call: Call) -> None:
        """Keep the answer that was given to a call; the twin of `keep`."""
        answer = call.response
        if not answer.repeat:
            await self._executor.arun(connection, responses.finish(call.asked, answer))

    def give_up(self, connection: Any, call: Call) -> None:
        """Let a request that failed be carried out anew when it comes again; only after `check`."""
        self._executor.run(connection, responses.give_up(call.asked))

    async def give_up_async(self, connection: Any, call: Call) -> None:
        """Let a request that failed be carried out anew; the twin of `give_up`."""
        await self._executor.arun(connection, responses.give_up(call.asked))

    def _read(self, facts: RequestFacts, scope: str | None, *, ordered: bool) -> _Bid:
        if len(facts.body) > self.largest:
            raise too_large(self.largest)
        token, named, key = read_headers(facts.headers)
        if key is None:
            raise MissingHeader(KEY)
        if ordered and not isinstance(token, Effect):
            raise MissingHeader(SEQUENCE)
        check_scope(named, scope)
        if facts.client:
            check_name("a client", facts.client)
        return _Bid(token, responses.asked_for(facts, named, key), ordered)

    def _pass(self, connection: Any, bid: _Bid) -> OutOfSequence | None:
        """Pass the fence; a write that was applied before or overtaken is refused later, unless its answer is kept."""
        try:
            if bid.ordered:
                self.fence.apply(connection, bid.token, scope=bid.asked.scope)
            else:
                self.fence.raise_to(connection, bid.token, scope=bid.asked.scope)
        except OutOfSequence as refused:
            return refused
        return None

    async def _pass_async(self, connection: Any, bid: _Bid) -> OutOfSequence | None:
        try:
            if bid.ordered:
                await self.fence.apply_async(connection, bid.token, scope=bid.asked.scope)
            else:
                await self.fence.raise_to_async(connection, bid.token, scope=bid.asked.scope)
        except OutOfSequence as refused:
            return refused
        return None

    # -- the fence itself

    def raise_to(self, connection: Any, facts: RequestFacts, scope: str) -> Mark:
        """Raise the fence of `scope` as a request asks; returns the mark in force. Commit before answering."""
        token, named, _ = read_headers(facts.headers)
        check_scope(named, scope)
        with self._executor.bounded(connection, self._wait):
            self.fence.raise_to(connection, token, scope=scope)
            return _there(self.fence.current(connection, scope))

    async def raise_to_async(self, connection: Any, facts: RequestFacts, scope: str) -> Mark:
        """Raise the fence of `scope` as a request asks; the twin of `raise_to`."""
        token, named, _ = read_headers(facts.headers)
        check_scope(named, scope)
        async with self._executor.bounded_async(connection, self._wait):
            await self.fence.raise_to_async(connection, token, scope=scope)
            return _there(await self.fence.current_async(connection, scope))


def check_scope(named: str, scope: str | None) -> None:
    """Refuse a request that names another scope than its endpoint protects; raises BadToken."""
    if scope is not None and named != scope:
        raise BadToken(f"this address is under the fence {scope!r}, and the request names {named!r}")


def _open(asked: Asked, refused: OutOfSequence | None) -> Op[Answer | None]:
    if refused is None:
        return (yield from responses.begin(asked))
    found = yield from responses.find(asked)
    if found is None:
        raise refused
    return found


def _there(mark: Mark | None) -> Mark:
    if mark is None:
        raise LookupError("the fence that was just raised is not there")
    return mark


def _whole_seconds(seconds: float) -> int:
    if not seconds >= 1:
        raise Misuse(f"{seconds!r} seconds: answers are kept for at least 1, and for longer than any request can take")
    return int(seconds)
