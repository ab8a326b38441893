"""Sessions that fail on purpose: before a request, after it, or once the commit is done and the answer is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tenure.errors import OutcomeUnknown, Unavailable
from tenure.protocol.op import Request
from tenure.store.contract import AsyncSession, Execute, Session


class Fault(StrEnum):
    """Where a session fails."""

    NONE = "none"
    BEFORE = "before a request"
    AFTER = "after a request"
    LOST = "after commit"


@dataclass
class Tampering:
    """Fail with `fault` at the request number `at`, counted from 0; `seen` counts the requests made."""

    fault: Fault
    at: int = 0
    seen: int = 0

    def before(self) -> None:
        """Note that a request is about to be made."""
        self.seen += 1
        self._fail(Fault.BEFORE)

    def after(self) -> None:
        """Note that a request was answered."""
        self._fail(Fault.AFTER)

    def committed(self) -> None:
        """Note that the transaction was committed."""
        if self.fault is Fault.LOST:
            raise OutcomeUnknown("the test lost the answer after the commit")

    def _fail(self, fault: Fault) -> None:
        if self.fault is fault and self.seen - 1 == self.at:
            raise Unavailable(f"the test failed {fault} ({self.at})")


def tampered(session: Session, tampering: Tampering) -> Session:
    """Wrap the sessions of a blocking driver."""

    @contextmanager
    def opened() -> Iterator[Execute]:
        with session() as execute:

            def tampering_execute(request: Request[Any]) -> Any:
                tampering.before()
                answer = execute(request)
                tampering.after()
                return answer

            yield tampering_execute
        tampering.committed()

    return opened


def atampered(session: AsyncSession, tampering: Tampering) -> AsyncSession:
    """Wrap the sessions of an asynchronous driver."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[Request[Any]], Awaitable[Any]]]:
        async with session() as execute:

            async def tampering_execute(request: Request[Any]) -> Any:
                tampering.before()
                answer = await execute(request)
                tampering.after()
                return answer

            yield tampering_execute
        tampering.committed()

    return opened
