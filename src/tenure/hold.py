"""`Lease`: a claimed right as its holder sees it in this process; and `Hold`, one job owned by id without a worker.

A `Lease` answers from this process's own clock, at the moment of asking, whatever thread or loop is blocked and however
late a renewal's answer comes (R19, R21). It ends by itself; `renewed` only ever moves its end by a renewal that the
store confirmed, counted from before that request was sent (R13, R20).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from typing import TYPE_CHECKING, NoReturn

from tenure.clock import Clock, boot_clock
from tenure.errors import LeaseLost, Misuse, StaleToken
from tenure.protocol.codec import check_json
from tenure.protocol.ending import kept_reason
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Verdict
from tenure.protocol.lease import Effect, Token, trusted_until
from tenure.protocol.lifecycle import Verb

if TYPE_CHECKING:
    from tenure.client import Client

SUSPECT = 2.0
"""A jump between wall and boot clock of this many seconds means that the host was frozen or stepped (R14)."""

Renew = Callable[["Lease", float | None], None]


class Gate:
    """The gate before an effect, as a block: it is passed where the block begins, and nothing happens at its end."""

    __slots__ = ("_passed", "_seconds")

    def __init__(self, passed: Callable[[float], Effect], seconds: float) -> None:
        self._passed = passed
        self._seconds = seconds

    def __enter__(self) -> Effect:
        return self._passed(self._seconds)

    def __exit__(self, *_: object) -> None:
        pass


class Lease:
    """The holder's belief in one lease: usable from any thread of this process, and from no other process (R24)."""

    __slots__ = (
        "_clock",
        "_lost",
        "_numbers",
        "_observer",
        "_pid",
        "_renew",
        "_until",
        "_wall",
        "_wall_offset",
        "duration",
        "owner",
        "token",
    )

    def __init__(
        self,
        token: Token,
        owner: str,
        duration: float,
        sent_at: float,
        *,
        renew: Renew,
        clock: Clock = boot_clock,
        wall: Clock = time.time,
    ) -> None:
        self.token = token
        self.owner = owner
        self.duration = duration
        self._renew = renew
        self._clock = clock
        self._wall = wall
        self._pid = os.getpid()
        self._lost: str | None = None
        self._observer: Callable[[Lease], None] | None = None
        self._numbers = count(1)
        self._until = trusted_until(sent_at, duration)
        self._wall_offset = wall() - clock()

    @property
    def generation(self) -> int:
        """The generation of this claim: the number in the fencing token."""
        return self.token.generation

    def now(self) -> float:
        """Read the clock on which this lease's end is counted."""
        return self._clock()

    @property
    def ends_at(self) -> float:
        """When the trust in this lease ends, on its clock, without looking at it; long ago once the lease is lost."""
        return self._until if self._lost is None else -math.inf

    def remaining(self) -> float:
        """Tell for how many seconds the lease can still be trusted; 0.0 when it cannot."""
        if os.getpid() != self._pid:
            raise Misuse(
                f"the lease on job {self.token.job} belongs to process {self._pid}; a forked child does not own it"
            )
        if self._lost is not None:
            return 0.0
        left = self._until - self._clock()
        return left if left > 0.0 else 0.0

    @property
    def lost(self) -> bool:
        """Whether the lease can no longer be trusted."""
        return self.remaining() <= 0.0

    @property
    def lost_reason(self) -> str | None:
        """Why the lease is lost, None while it is not."""
        if self._lost is None and self._clock() >= self._until:
            return f"its time ran out {self._clock() - self._until:.1f} s ago without a renewal"
        return self._lost

    def check(self) -> None:
        """Raise LeaseLost unless the lease can be trusted now; after a jump of clocks, ask the store first (R14)."""
        lost = self.remaining() <= 0.0
        if not lost and abs(self._wall() - self._clock() - self._wall_offset) > SUSPECT:
            self.verify()
            lost = self.lost
        reason = self.lost_reason if lost else None
        if reason is not None:
            raise LeaseLost(self.token.job, self.generation, reason)

    def effect(self, seconds: float = 0.0) -> AbstractContextManager[Effect]:
        """Pass the gate before an effect that may take `seconds`; yields the token to send along, numbered (R33).

        The numbers rise with each call, so that a destination tells repeats and swaps. Raises LeaseLost when the lease
        cannot be trusted, or has less time left than the effect may take.
        """
        return Gate(self.passed, seconds)

    def passed(self, seconds: float) -> Effect:
        """Pass the gate at once, and return the token to send along; see `effect`."""
        self.check()
        left = self.remaining()
        if left < seconds:
            reason = f"{left:.1f} s are left and the effect may take {seconds:g} s"
            raise LeaseLost(self.token.job, self.generation, reason)
        return Effect(self.token.job, self.generation, next(self._numbers))

    def extend(self, duration: float) -> None:
        """Make the lease last at least `duration` seconds from now; raises LeaseLost, Unavailable or OutcomeUnknown."""
        self.check()
        self._renew(self, duration)
        self.check()

    def verify(self) -> None:
        """Ask the store whether the lease still stands, and note what it says; raises Unavailable or OutcomeUnknown."""
        self._renew(self, None)

    def renewed(self, sent_at: float, duration: float | None = None) -> None:
        """Note a renewal that the store confirmed, sent at `sent_at` on this clock."""
        until = trusted_until(sent_at, self.duration if duration is None else duration)
        if self._lost is None and self._clock() < self._until:
            self._until = until if until > self._until else self._until
            self._wall_offset = self._wall() - self._clock()
            self._tell()

    def lose(self, reason: str) -> bool:
        """Note that the lease is gone, for good; False when that was known."""
        if self._lost is not None:
            return False
        self._lost = reason
        self._tell()
        return True

    def observe(self, observer: Callable[[Lease], None] | None) -> None:
        """Call `observer` now and whenever the end of this lease's trust moves; None stops it."""
        self._observer = observer
        self._tell()

    def _tell(self) -> None:
        if self._observer is not None:
            self._observer(self)

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied into another process (R24)."""
        raise Misuse("a lease belongs to the process that claimed it and cannot be copied: pass its token instead")


def lost_reason(answer: Answer) -> str:
    """Say in words what the store met instead of the caller's token."""
    if answer.state is None:
        return "the job is gone from the store"
    if answer.generation == answer.token.generation and answer.state == "running":
        return "its lease ended before it was renewed"
    if answer.state == "running":
        return f"generation {answer.generation} took over" + (f" ({answer.worker})" if answer.worker else "")
    return f"the job is {answer.state} under generation {answer.generation}"


def stale(answer: Answer) -> StaleToken:
    """Turn a stale answer into the error that a caller of the bare protocol gets."""
    return StaleToken(
        answer.token.job,
        answer.token.generation,
        current=answer.generation,
        holder=answer.worker,
        reason=lost_reason(answer),
    )


def renewing(client: Client) -> Renew:
    """Make the function with which a lease renews itself through `client`."""

    def renew(lease: Lease, duration: float | None) -> None:
        sent_at = lease.now()
        answers = client.renew(lease.owner, [lease.token], duration)
        if not answers:
            lease.renewed(sent_at, duration)
        elif answers[0].verdict is Verdict.STALE:
            lease.lose(lost_reason(answers[0]))

    return renew


class Hold:
    """One job owned by id, without a worker: the bare protocol. Nothing renews it but its holder.

    `renew`, `complete`, `fail` and `release` raise StaleToken when another generation has taken over.
    """

    def __init__(self, client: Client, claimer: Claimer, claimed: Claimed, sent_at: float) -> None:
        self._client = client
        self._claimer = claimer
        self.claimed = claimed
        token = Token(claimed.id, claimed.generation)
        self.lease = Lease(token, claimer.owner, claimed.lease, sent_at, renew=renewing(client))

    @property
    def token(self) -> Token:
        """The fencing token to be passed on with every effect."""
        return self.lease.token

    @property
    def generation(self) -> int:
        """The generation of this claim."""
        return self.token.generation

    def remaining(self) -> float:
        """Tell for how many seconds the lease can still be trusted."""
        return self.lease.remaining()

    def check(self) -> None:
        """Raise LeaseLost unless the lease can be trusted now."""
        self.lease.check()

    def effect(self, seconds: float = 0.0) -> AbstractContextManager[Effect]:
        """Pass the gate before an effect; see `Lease.effect`."""
        return self.lease.effect(seconds)

    def renew(self, duration: float | None = None) -> None:
        """Keep the lease: for its own length, or `duration` seconds from now; raises StaleToken when it has ended."""
        sent_at = boot_clock()
        answers = self._client.renew(self._claimer.owner, [self.token], duration)
        if answers and answers[0].verdict is Verdict.STALE:
            self.lease.lose(lost_reason(answers[0]))
            raise stale(answers[0])
        self.lease.renewed(sent_at, duration)

    extend = renew

    def complete(self, result: str | None = None) -> str | None:
        """End the run; `result` is JSON text, Misuse for another. Completing twice returns the stored result (R7)."""
        if result is not None:
            check_json(result, "the result")
        answer = self._end(Ending(self.token, Verb.COMPLETE, result=result))
        return answer.result if answer.verdict is Verdict.ALREADY else result

    def fail(self, reason: str, *, delay: float = 0.0) -> None:
        """End the run as a failed attempt; the job is due again after `delay` seconds while attempts are left."""
        self._end(Ending(self.token, Verb.FAIL, delay=delay, reason=kept_reason(reason)))

    def release(self) -> None:
        """Give the job back; no attempt is spent."""
        self._end(Ending(self.token, Verb.RELEASE))

    def _end(self, ending: Ending) -> Answer:
        (answer,) = self._client.settle(self._claimer.owner, [ending])
        if answer.verdict is Verdict.STALE:
            self.lease.lose(lost_reason(answer))
            raise stale(answer)
        self.lease.lose(f"the run ended ({ending.verb})")
        return answer
