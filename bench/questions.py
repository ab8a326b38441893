"""The questions: what is measured, of whom, and with how many jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import alone
from bench.entrant import Entrant, Handler, Store
from bench.entrants import LIMITS, PEERS, TENURE
from bench.growth import growth
from bench.measure import Measure, drain, enqueue
from bench.snapshot import held_snapshot
from bench.waits import pickup, takeover, under_load


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
    takeover: int
    snapshot: int
    growth: int
    """The part of a million rows that a table holds is one in so many."""


FULL = Scale(
    rounds=5,
    seconds=1.0,
    most=100_000,
    pickups=100,
    idle=20,
    held=1_000,
    many_held=10_000,
    drained=1_000_000,
    effects=2_000,
    takeover=160,
    snapshot=60,
    growth=1,
)
QUICK = Scale(
    rounds=1,
    seconds=0.5,
    most=2_000,
    pickups=30,
    idle=4,
    held=200,
    many_held=1_000,
    drained=20_000,
    effects=300,
    takeover=40,
    snapshot=12,
    growth=20,
)

_LEAST = 200  # jobs


def filling(rate: float, scale: Scale) -> int:
    """Return how many jobs fill the time at so many a second."""
    return round(min(max(rate * scale.seconds, _LEAST), scale.most))


def half(rate: float, _scale: Scale) -> int:
    """Return half of a rate."""
    return max(1, round(rate / 2))


@dataclass(frozen=True, slots=True)
class Question:
    """One measurement, of a fixed `size`, or of one that `sized` makes of a rate, which `pilot` jobs show.

    `handler` is what an entrant must have, `limits` are the names of the limits that are asked too.
    """

    name: str
    measure: Measure
    size: Callable[[Scale], int] | None = None
    pilot: int = 0
    pilots: tuple[Measure, ...] = ()
    """What shows the rate instead of the measurement itself, one after the other, each of as many as fill the time."""
    sized: Callable[[float, Scale], int] = filling
    sizes: str = "jobs a round"
    handler: Handler | None = None
    in_bulk: bool = False
    limits: tuple[str, ...] = ()
    alone: bool = False
    """Whether no peer is asked."""
    once: bool = False
    """Whether there is one round: the measurement is long, or has its own rounds."""
    at_once: bool = False
    """Whether everybody is measured at the same time, because they only wait."""
    store: Store | None = None
    """The one store that is asked; None for all."""

    def asked(self, store: Store) -> list[Entrant]:
        """Return who is asked on a store, Tenure first."""
        if self.store not in {None, store}:
            return []
        peers = [] if self.alone else PEERS
        limits = [limit for limit in LIMITS if limit.name in self.limits]
        return [entrant for entrant in (*TENURE.values(), *peers, *limits) if entrant.store == store]

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
PGBENCH = ("pgbench",)
TAKEOVER = "takeover after kill -9"
NOTIFY = "bare insert, notify, claim"
BELL = (NOTIFY, "bare insert, watch, claim")

QUESTIONS = (
    Question(
        "enqueue, one at a time",
        enqueue("singles"),
        pilot=100,
        limits=(*BARE, NOTIFY, *PGBENCH, "pgbench, 8 connections"),
    ),
    Question("enqueue, 1,000 a call", enqueue("bulk"), pilot=1_000, in_bulk=True, limits=(*BARE, *PGBENCH)),
    Question("drain, async", drain("async"), pilot=500, handler="async", limits=BARE),
    Question("drain, threads", drain("thread"), pilot=500, handler="thread"),
    Question("drain, handlers in processes", drain("process"), pilot=200, handler="process"),
    Question("drain, two processes", drain("async", 2), pilot=500, handler="async", limits=BARE),
    Question("pick-up, idle", pickup, size=lambda scale: scale.pickups, limits=BELL),
    Question(
        "pick-up, half load",
        under_load,
        pilot=500,
        pilots=(drain(), drain()),
        sized=half,
        sizes="arrivals/s, asked for",
    ),
    Question(
        TAKEOVER,
        takeover,
        size=lambda scale: scale.takeover,
        sizes="s, waited",
        at_once=True,
        store="postgresql",
    ),
    # Nobody there but Tenure has leases, so there is nothing to wait for any longer.
    Question(TAKEOVER, takeover, size=lambda _: 40, sizes="s, waited", at_once=True, store="sqlite"),
    Question("growth", growth, size=lambda scale: scale.growth, sizes="", alone=True, limits=BARE),
    Question(
        "old snapshot",
        held_snapshot,
        size=lambda scale: scale.snapshot,
        sizes="s, held",
        in_bulk=True,
        once=True,
        store="postgresql",
    ),
    Question(
        "idle worker", alone.measure("idle"), size=lambda scale: scale.idle, sizes="seconds", alone=True, once=True
    ),
    Question(
        "jobs held, 1,000", alone.measure("holding"), size=lambda scale: scale.held, sizes="jobs", alone=True, once=True
    ),
    Question(
        "jobs held, 10,000",
        alone.measure("holding"),
        size=lambda scale: scale.many_held,
        sizes="jobs",
        alone=True,
        once=True,
    ),
    Question(
        "memory of a drain",
        alone.measure("draining", patience=1200.0),
        size=lambda scale: scale.drained,
        sizes="jobs",
        alone=True,
        once=True,
    ),
    Question(
        "effects", alone.measure("guarding"), size=lambda scale: scale.effects, sizes="jobs", alone=True, once=True
    ),
)
