"""The questions: what is measured, of whom, and with how many jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import alone
from bench.entrant import Entrant, Handler
from bench.entrants import LIMITS, PEERS, TENURE
from bench.measure import Measure, drain, enqueue, pickup


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything: `seconds` is what one measurement of a rate should take, within `most` jobs."""

    rounds: int
    seconds: float
    most: int
    pickups: int
    idle: int
    held: int
    many_held: int
    drained: int
    effects: int


FULL = Scale(
    rounds=5,
    seconds=4.0,
    most=100_000,
    pickups=200,
    idle=20,
    held=1_000,
    many_held=10_000,
    drained=100_000,
    effects=2_000,
)
QUICK = Scale(
    rounds=1, seconds=0.5, most=2_000, pickups=30, idle=4, held=200, many_held=1_000, drained=20_000, effects=300
)


@dataclass(frozen=True, slots=True)
class Question:
    """One measurement, of a fixed `size` or of as many jobs as fill the time, which `pilot` jobs show.

    `handler` is what an entrant must have, `limits` are the names of the limits that are asked too.
    """

    name: str
    measure: Measure
    size: Callable[[Scale], int] | None = None
    pilot: int = 0
    handler: Handler | None = None
    in_bulk: bool = False
    limits: tuple[str, ...] = ()
    once: bool = False
    """Whether Tenure alone is asked, and once, by a measurement that has its own rounds."""

    def asked(self, store: str) -> list[Entrant]:
        """Return who is asked on a store, Tenure first."""
        rivals = [] if self.once else [*PEERS, *(limit for limit in LIMITS if limit.name in self.limits)]
        return [entrant for entrant in (*TENURE.values(), *rivals) if entrant.store == store]

    def refusal(self, entrant: Entrant) -> str | None:
        """Say why an entrant cannot be asked; None where it can."""
        if entrant.version() is None:
            return f"{entrant.distribution} is not installed" + (f": {entrant.needs}" if entrant.needs else "")
        if self.handler is not None and self.handler not in entrant.handlers:
            return f"has no {self.handler} handlers"
        if self.in_bulk and not entrant.in_bulk:
            return "has no call that stores many jobs"
        return None


BARE = ("bare psycopg", "bare sqlite3")
BELL = ("bare insert, notify, claim",)

QUESTIONS = (
    Question("enqueue, one at a time", enqueue("singles"), pilot=100, limits=BARE),
    Question("enqueue, 1,000 a call", enqueue("bulk"), pilot=1_000, in_bulk=True, limits=BARE),
    Question("drain, async", drain("async"), pilot=500, handler="async", limits=BARE),
    Question("drain, threads", drain("thread"), pilot=500, handler="thread"),
    Question("drain, two processes", drain("async", 2), pilot=500, handler="async", limits=BARE),
    Question("pick-up, idle", pickup, size=lambda scale: scale.pickups, limits=BELL),
    Question("idle worker", alone.measure("idle"), size=lambda scale: scale.idle, once=True),
    Question("jobs held, 1,000", alone.measure("holding"), size=lambda scale: scale.held, once=True),
    Question("jobs held, 10,000", alone.measure("holding"), size=lambda scale: scale.many_held, once=True),
    Question("memory of a drain", alone.measure("draining"), size=lambda scale: scale.drained, once=True),
    Question("effects", alone.measure("guarding"), size=lambda scale: scale.effects, once=True),
)
