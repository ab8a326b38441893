"""The two drivers that every store uses: they run a verb in a session, and repeat it while that is harmless.

A *session* is one connection for one verb, a context manager that yields `execute`; all its requests are one
transaction, or each is one. Its store maps the client library's errors to three: `Again` (nothing was done, and the
same may succeed now), `Unavailable` (nothing was done) and `OutcomeUnknown` (the answer was lost).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tenure.clock import Clock, boot_clock
from tenure.errors import OutcomeUnknown, TenureError, Unavailable
from tenure.protocol.op import Op, arun, run
from tenure.store.contract import AsyncSession, Execute, Session

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.003  # short: the winner of a conflict is soon done; SQLite's lock is waited for in the session


class Again(Unavailable):
    """Nothing was done: the store was busy or resolved a conflict against us; the same transaction may succeed now."""


class _Patience:
    """Decides after each failure whether to try again, and for how long to pause first.

    A lost answer is repeated only where the caller says that this is harmless for it; once an answer was lost, giving
    up means that the outcome is unknown, whatever the later attempts said.
    """

    def __init__(self, deadline: float, *, repeat_unknown: bool, clock: Clock) -> None:
        self._deadline = deadline
        self._repeat_unknown = repeat_unknown
        self._clock = clock
        self._unknown: OutcomeUnknown | None = None
        self._pause = _FIRST_PAUSE

    def after(self, error: TenureError) -> float:
        """Return the seconds to pause before the next attempt, or raise what the caller should hear."""
        if isinstance(error, OutcomeUnknown):
            self._unknown = error
        if not self._repeatable(error) or self._clock() >= self._deadline:
            raise (self._unknown or error)
        pause = self._pause * random.uniform(0.5, 1.5)
        self._pause = min(self._pause * 1.5, _LONGEST_PAUSE)
        return pause

    def _repeatable(self, error: TenureError) -> bool:
        if isinstance(error, Again):
            return True
        return self._repeat_unknown and (isinstance(error, OutcomeUnknown) or self._unknown is not None)


class SyncDriver:
    """Run verbs in blocking sessions; `timeout` seconds bound all attempts of one verb together."""

    def __init__(
        self,
        session: Session,
        *,
        timeout: float,
        repeat_unknown: bool = False,
        close: Callable[[], None] = lambda: None,
        clock: Clock = boot_clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._session = session
        self._timeout = timeout
        self._repeat_unknown = repeat_unknown
        self._close = close
        self._clock = clock
        self._sleep = sleep

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` in one session; raises what the verb refuses, Unavailable or OutcomeUnknown."""
        deadline, patience = self._clock() + self._timeout, None
        while True:
            try:
                with self._session() as execute:
                    return run(verb(*args, **kwargs), execute)
            except (Unavailable, OutcomeUnknown) as error:
                patience = patience or self._patience(deadline)
                self._sleep(patience.after(error))

    def _patience(self, deadline: float) -> _Patience:
        return _Patience(deadline, repeat_unknown=self._repeat_unknown, clock=self._clock)

    def close(self) -> None:
        """Give connections back."""
        self._close()


class JoinedDriver:
    """Run verbs inside a transaction that somebody else has begun, and will end; there nothing can be repeated.

    `join` makes what answers the requests of one verb.
    """

    def __init__(self, join: Callable[[], Execute]) -> None:
        self._join = join

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` as part of the transaction; raises what the verb refuses, Unavailable or OutcomeUnknown."""
        return run(verb(*args, **kwargs), self._join())

    def close(self) -> None:
        """Nothing to give back: the connection is the caller's."""


class AsyncDriver:
    """Run verbs in asynchronous sessions; the twin of `SyncDriver`."""

    def __init__(
        self,
        session: AsyncSession,
        *,
        timeout: float,
        repeat_unknown: bool = False,
        close: Callable[[], object] = lambda: None,
        clock: Clock = boot_clock,
    ) -> None:
        self._session = session
        self._timeout = timeout
        self._repeat_unknown = repeat_unknown
        self._close = close
        self._clock = clock

    async def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` in one session; raises what the verb refuses, Unavailable or OutcomeUnknown."""
        deadline, patience = self._clock() + self._timeout, None
        while True:
            try:
                async with self._session() as execute:
                    return await arun(verb(*args, **kwargs), execute)
            except (Unavailable, OutcomeUnknown) as error:
                patience = patience or self._patience(deadline)
                await asyncio.sleep(patience.after(error))

    def _patience(self, deadline: float) -> _Patience:
        return _Patience(deadline, repeat_unknown=self._repeat_unknown, clock=self._clock)

    async def close(self) -> None:
        """Give connections back."""
        closing = self._close()
        if asyncio.iscoroutine(closing):
            await closing
