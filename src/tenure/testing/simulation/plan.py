"""What a history will be like, drawn from its seed: the jobs and their programs, the clocks, the weather, the faults.

Each seed switches kinds of trouble on and off as a whole, so that histories with few kinds are as common as histories
with many, and what one kind would hide is seen in others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from tenure.protocol.job import NewJob
from tenure.testing.simulation.cast import LEASE, Program
from tenure.testing.simulation.network import Weather

WORKERS: Final = 3
JOBS: Final = 10

Moment = Literal["before", "sent", "executed"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: at a moment, or at the `nth` request of a worker; `seconds` is how long it lasts."""

    what: str
    whom: int = 0
    at: float | None = None
    nth: int = 0
    moment: Moment = "before"
    seconds: float = 0.0


@dataclass(slots=True)
class Plan:
    """Everything that chance decides before a history begins."""

    seed: int
    jobs: list[NewJob] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    weather: Weather = field(default_factory=Weather)
    clocks: list[tuple[float, float]] = field(default_factory=list)  # offset and rate of each worker's host
    store_rate: float = 1.0
    steady: bool = True  # whether every clock keeps its rate well enough and none is stepped
    fenced: bool = True
    threads: int = 2
    patience: float = LEASE * 0.5  # seconds that one request may take
    calm_at: float = 2.4 * LEASE
    workers: int = WORKERS


def draw(seed: int) -> Plan:
    """Draw the plan of a history."""
    chance = Random(seed)
    plan = Plan(seed, workers=WORKERS)
    plan.threads = 2 if _happens(chance, 0.7) else 1
    plan.fenced = not _happens(chance, 0.04)
    _draw_jobs(plan, chance)
    _draw_clocks(plan, chance)
    _draw_weather(plan, chance)
    _draw_faults(plan, chance)
    return plan


def _happens(chance: Random, part: float) -> bool:
    return chance.random() < part


# -- jobs

_PROGRAMS: Final = (
    # weight, task, program
    (22, "plain", ()),
    (26, "fenced", ("update",)),
    (8, "fenced", ("update", "update")),
    (7, "plain", ("step",)),
    (9, "fenced", ("work", "update")),
    (4, "fenced", ("late update",)),
    (5, "plain", ("stubborn",)),
    (4, "plain", ("work", "progress", "work")),
    (3, "plain", ("extend", "work")),
    (3, "fenced", ("update", "fail", "update")),
    (3, "plain", ("retry",)),
    (3, "plain", ("snooze",)),
    (1, "plain", ("cancel",)),
    (1, "plain", ("discard",)),
    (1, "plain", ("kill",)),
)
_WEIGHTS: Final = [weight for weight, _, _ in _PROGRAMS]


def _draw_jobs(plan: Plan, chance: Random) -> None:
    for n, (_, task, deeds) in enumerate(chance.choices(_PROGRAMS, _WEIGHTS, k=JOBS)):
        plan.programs.append(tuple(_deed(name, chance) for name in deeds))
        late = _happens(chance, 0.2)
        plan.jobs.append(
            NewJob(
                f"j{n}",
                task,
                f'{{"n":{n}}}',
                priority=int(_happens(chance, 0.1)),
                delay=chance.random() * LEASE if late else 0.0,
                max_attempts=3,
                max_takeovers=2 if "kill" in deeds else 8,
                lease=LEASE,
                named=True,
                timeout=0.4 * LEASE if "work" in deeds and _happens(chance, 0.15) else None,
            )
        )


def _deed(name: str, chance: Random) -> tuple[str, float]:
    if name == "late update":
        return "update", chance.uniform(0.5, 1.4) * LEASE
    if name == "update":
        return name, 0.0
    return name, {
        "work": chance.uniform(0.05, 1.1) * LEASE,
        "stubborn": chance.uniform(0.1, 1.4) * LEASE,
        "extend": chance.uniform(1.0, 2.0) * LEASE,
        "fail": chance.choice((1, 1, 1, 9)),
        "retry": chance.choice((1, 2, 9)),
        "snooze": chance.uniform(0.0, 0.5) * LEASE,
    }.get(name, 0.0)


# -- clocks and weather


def _draw_clocks(plan: Plan, chance: Random) -> None:
    wild = _happens(chance, 0.08)
    plan.steady = not wild
    for _ in range(plan.workers):
        rate = chance.uniform(0.5, 2.0) if wild else 1.0 + chance.uniform(-0.0009, 0.0009)
        plan.clocks.append((chance.uniform(0.0, 1e5), rate))
    plan.store_rate = chance.uniform(0.7, 1.4) if wild else 1.0 + chance.uniform(-0.0009, 0.0009)


def _draw_weather(plan: Plan, chance: Random) -> None:
    def often(part: float, most: float) -> float:
        return chance.random() * most if _happens(chance, part) else 0.0

    plan.weather = Weather(
        slow=often(0.5, 0.15),
        lost=often(0.3, 0.06),
        mute=often(0.4, 0.08),
        twice=often(0.3, 0.1),
        longest=LEASE * chance.choice((0.3, 0.6, 1.4)),
    )


# -- faults


def _draw_faults(plan: Plan, chance: Random) -> None:
    def when() -> float:
        return chance.random() * plan.calm_at * 0.8

    for what, part, longest in _KINDS:
        if not _happens(chance, part):
            continue
        for _ in range(2 if _happens(chance, 0.4) else 1):
            whom, seconds = chance.randrange(plan.workers), longest * chance.random()
            if what in _AT_REQUESTS and _happens(chance, 0.6):
                nth, moment = 1 + int(25 * chance.random()), chance.choice(_MOMENTS)
                plan.faults.append(Fault(what, whom, nth=nth, moment=moment, seconds=seconds))
            else:
                plan.faults.append(Fault(what, whom, at=when(), seconds=seconds))
    if any(fault.what in _UNSTEADY for fault in plan.faults):
        plan.steady = False


_KINDS: Final = (
    # kind, how many histories have it, its longest time in seconds
    ("crash", 0.3, 0.5),
    ("pause", 0.4, 1.8 * LEASE),
    ("clone", 0.05, 0.0),
    ("stop", 0.2, 0.5),
    ("cut store", 0.2, 1.5 * LEASE),
    ("cut destination", 0.15, 1.5 * LEASE),
    ("cut answers", 0.15, LEASE),
    ("operator", 0.35, 0.0),
    ("prune", 0.06, 0.0),
    ("step wall clock", 0.06, 60.0),
    ("step store clock", 0.04, 2.0 * LEASE),
    ("failover", 0.08, 0.5 * LEASE),
    ("outsider", 0.05, 0.0),
)
_AT_REQUESTS: Final = frozenset({"crash", "pause", "clone"})
_UNSTEADY: Final = frozenset({"step store clock"})
_MOMENTS: Final[tuple[Moment, ...]] = ("before", "sent", "executed")
