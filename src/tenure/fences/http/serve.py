"""From the facts of a request to its answer: one transaction around fence, handler and stored answer.

What the wrappers for frameworks share. `begin` is the service's own way to a transaction: called without arguments it
gives a context manager that yields a connection with an open transaction, commits it at the end of its block and rolls
it back when an exception leaves the block. SQLAlchemy's ``engine.begin`` is one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tenure.errors import Misuse
from tenure.fences.http.execute import told_to_wait
from tenure.fences.http.messages import Answer, RequestFacts
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.service import Call, FencedService

Begin = Callable[[], AbstractContextManager[Any]]
BeginAsync = Callable[[], AbstractAsyncContextManager[Any]]

_FAILED = 500


class NotDone(Exception):
    """Rolls a transaction back and brings the answer of a failed handler out of it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(f"the handler answered with status {answer.status}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a fenced endpoint is made of: its service, its transactions, and whether the order of requests counts."""

    service: FencedService
    begin: Callable[[], Any]
    ordered: bool = True

    def serve(self, facts: RequestFacts, scope: str | None, handler: Callable[[Call], Answer]) -> Answer:
        """Answer one request; what the handler raises goes on after the transaction was rolled back.

        A handler whose answer says that it failed (5xx) is rolled back too, and nothing is kept. When the database
        gave way to another transaction, the client is told to ask again: nothing was done. Misuse where `begin` opens
        asynchronous transactions.
        """
        transaction = _fitting(self.begin(), "__enter__")
        try:
            with (
                told_to_wait(),
                transaction as connection,
                self.service.request(connection, facts, scope=scope, ordered=self.ordered) as call,
            ):
                if not call.repeat:
                    _keep(call, handler(call))
        except NotDone as not_done:
            return not_done.answer
        except REFUSALS as refused:
            return problem(refused)
        return call.response

    async def serve_async(
        self, facts: RequestFacts, scope: str | None, handler: Callable[[Call], Awaitable[Answer]]
    ) -> Answer:
        """Answer one request; the twin of `serve`, with a `begin` of asynchronous transactions."""
        transaction = _fitting(self.begin(), "__aenter__")
        try:
            with told_to_wait():
                async with (
                    transaction as connection,
                    self.service.request_async(connection, facts, scope=scope, ordered=self.ordered) as call,
                ):
                    if not call.repeat:
                        _keep(call, await handler(call))
        except NotDone as not_done:
            return not_done.answer
        except REFUSALS as refused:
            return problem(refused)
        return call.response


def _fitting(transaction: Any, entered: str) -> Any:
    """Return a transaction that a handler of one colour can enter; raises Misuse for one of the other."""
    if hasattr(transaction, entered):
        return transaction
    if entered == "__aenter__":
        raise Misuse(
            f"an `async def` handler needs asynchronous transactions, and `begin` gave a {type(transaction).__name__}:"
            " write the handler with `def`, so that it runs in a thread, or pass a `begin` such as that of SQLAlchemy's"
            " create_async_engine"
        )
    raise Misuse(
        f"a `def` handler needs blocking transactions, and `begin` gave a {type(transaction).__name__}: write the"
        " handler with `async def`, where the framework takes one, or pass a `begin` such as that of SQLAlchemy's"
        " create_engine"
    )


def _keep(call: Call, answer: Answer) -> None:
    if answer.status >= _FAILED:
        raise NotDone(answer)
    call.answer(answer.status, answer.body, answer.headers)
