"""The exhaustive search: two workers, one job, and every history that differs from the plain one in a few choices.

A choice is made for each request and each answer that matters: it gets there at once; it is held back for longer than a
lease; it is lost; the request comes twice; the process crashes, or stands still for longer than a lease, at this very
moment. And where several messages are under way, which one gets there first is a choice as well. Everything else is
fixed. A *deviation* is a choice other than the plain one. The search goes through every history with at most so many
deviations among its first choices, each of them once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tenure.errors import Misuse
from tenure.protocol.job import NewJob
from tenure.testing.simulation.cast import LEASE, Program
from tenure.testing.simulation.network import Answer, Message, Network, Weather
from tenure.testing.simulation.plan import Plan
from tenure.testing.simulation.process import Process
from tenure.testing.simulation.runner import Report
from tenure.testing.simulation.theatre import Played, Theatre
from tenure.testing.simulation.threads import TIMEOUT, Scheduler

PROGRAMS: Final[dict[str, tuple[str, Program]]] = {
    "update": ("fenced", (("update", 0.0),)),
    "work": ("fenced", (("work", 0.5 * LEASE), ("update", 0.0))),
    "fail": ("fenced", (("update", 0.0), ("fail", 1.0), ("update", 0.0))),
    "late": ("fenced", (("update", 1.2 * LEASE),)),
    "step": ("plain", (("step", 0.0),)),
}
"""The jobs that are searched, by name: a task and its program."""

DEPTH: Final = 24
DEVIATIONS: Final = 2

_HELD: Final = 1.2 * LEASE
_STEP: Final = 0.001
_PLAIN: Final = frozenset({"outlook"})
"""Requests that change nothing that matters; they always get there."""

_REQUEST: Final = ("there", "held back", "lost", "twice", "crash", "pause")
_ANSWER: Final = ("there", "held back", "lost", "crash", "pause")


class Choices:
    """The choices of one history: those of `prefix`, then the plain ones; `sizes` says between how many each was."""

    def __init__(self, prefix: Sequence[int], depth: int) -> None:
        self.sizes: list[int] = []
        self.wrong: str | None = None  # what was asked for and is not there
        self._prefix = prefix
        self._depth = depth

    def pick(self, options: int) -> int:
        """Choose one of so many options."""
        place = len(self.sizes)
        if place >= self._depth:
            return 0
        self.sizes.append(options)
        choice = self._prefix[place] if place < len(self._prefix) else 0
        if choice >= options:
            self.wrong = f"choice {place} is between {options} options, and {choice} was asked for"
            return 0
        return choice


class Chosen(Network):
    """A network in which nothing is left to chance."""

    def __init__(self, choices: Choices, scheduler: Scheduler, chance: Callable[[], float], weather: Weather) -> None:
        super().__init__(scheduler, chance, weather)
        self._choices = choices
        self._waiting: list[tuple[str, Callable[[], object]]] = []

    def send(self, message: Message) -> None:
        """Let a message begin its way."""
        self.under_way += 1
        self.scheduler.wake_at(message.deadline, message.task, message.ticket, TIMEOUT)
        self._begin(message, _REQUEST, "request", lambda: self.arrive(message))

    def answer(self, message: Message, answer: Answer, moment: float) -> None:
        """Let an answer begin its way."""
        self._begin(message, _ANSWER, "answer", lambda: Network.answer(self, message, answer, moment))

    def never_answered(self, message: Message) -> None:
        """Do nothing: its deadline was planned when it was sent."""

    def _begin(self, message: Message, fates: tuple[str, ...], kind: str, deliver: Callable[[], object]) -> None:
        process = message.task.group
        name = f"{kind} {message.what} of {message.link.name}"
        if message.what in _PLAIN or not isinstance(process, Process) or process.dead or process.world.calm:
            self.scheduler.at(self.scheduler.now + _STEP, deliver)
            return
        fate = fates[self._choices.pick(len(fates))]
        process.world.say("network", f"{name}: {fate}")
        _FATES[fate](self, message, process, name, deliver)

    # -- fates

    def _there(self, _message: Message, _process: Process, name: str, deliver: Callable[[], object]) -> None:
        """Put it among those that get there next."""
        if not self._waiting:
            self.scheduler.at(self.scheduler.now + _STEP, self._next)
        self._waiting.append((name, deliver))

    def _held(self, _message: Message, _process: Process, _name: str, deliver: Callable[[], object]) -> None:
        self.scheduler.at(self.scheduler.now + _HELD, deliver)

    def _lost(self, _message: Message, _process: Process, name: str, _deliver: Callable[[], object]) -> None:
        self.under_way -= name.startswith("request")

    def _twice(self, message: Message, process: Process, name: str, deliver: Callable[[], object]) -> None:
        self._there(message, process, name, deliver)
        self.repeat(message, _HELD)

    def _crash(self, message: Message, process: Process, name: str, deliver: Callable[[], object]) -> None:
        """Let the process crash while this is under way."""
        self._there(message, process, name, deliver)
        self.scheduler.at(self.scheduler.now, lambda: process.world.faults.crash(process, 0.0))

    def _pause(self, message: Message, process: Process, name: str, deliver: Callable[[], object]) -> None:
        """Let the process stand still while this is under way."""
        self._there(message, process, name, deliver)
        self.scheduler.at(self.scheduler.now, lambda: process.world.faults.pause(process, _HELD))

    def _next(self) -> None:
        """Let one of those that are under way get there."""
        options = len(self._waiting)
        _, deliver = self._waiting.pop(self._choices.pick(options) if options > 1 else 0)
        if self._waiting:
            self.scheduler.at(self.scheduler.now + _STEP, self._next)
        deliver()


_FATES: Final[dict[str, Callable[[Chosen, Message, Process, str, Callable[[], object]], None]]] = {
    "there": Chosen._there,  # noqa: SLF001 -- a table of the class's own methods
    "held back": Chosen._held,  # noqa: SLF001 -- the same
    "lost": Chosen._lost,  # noqa: SLF001 -- the same
    "twice": Chosen._twice,  # noqa: SLF001 -- the same
    "crash": Chosen._crash,  # noqa: SLF001 -- the same
    "pause": Chosen._pause,  # noqa: SLF001 -- the same
}


def plan_of(program: str) -> Plan:
    """Make the plan of two workers and one job."""
    task, deeds = PROGRAMS[program]
    job = NewJob("j0", task, '{"n":0}', max_attempts=3, max_takeovers=8, lease=LEASE)
    return Plan(0, jobs=[job], programs=[deeds], clocks=[(0.0, 1.0), (0.0, 1.0)], workers=2, calm_at=4.0 * LEASE)


def replay(theatre: Theatre, program: str, choices: Sequence[int], *, trace: bool) -> Played:
    """Play the one history with these choices; the theatre must be open."""
    return _play(theatre, program, Choices(choices, max(DEPTH, len(choices))), trace=trace)


def _play(theatre: Theatre, program: str, choices: Choices, **settings: Any) -> Played:
    played = theatre.perform(plan_of(program), make_network=partial(Chosen, choices), **settings)
    if choices.wrong is not None:
        raise Misuse(choices.wrong)
    return played


def search(
    theatre: Theatre,
    program: str,
    *,
    depth: int = DEPTH,
    deviations: int = DEVIATIONS,
    seconds: float | None = None,
    most_findings: int = 5,
    tell: Callable[[Report], object] = lambda _report: None,
) -> Report:
    """Go through every history of a program with at most so many deviations among its first `depth` choices.

    The theatre must be open. A search that takes longer than `seconds` ends, and its report says that it is not whole.
    """
    report = Report(theatre.store, most_findings, program)
    began, processor = time.monotonic(), time.process_time()
    prefixes: list[tuple[int, ...]] = [()]
    while prefixes:
        prefix = prefixes.pop()
        choices = Choices(prefix, depth)
        played = _play(theatre, program, choices)
        report.add(played, prefix)
        report.seconds, report.processor_seconds = time.monotonic() - began, time.process_time() - processor
        if sum(choice > 0 for choice in prefix) < deviations:
            prefixes += _deviating(prefix, choices.sizes)
        tell(report)
        if report.ends_early(seconds):
            report.whole = not prefixes
            break
    return report


def _deviating(prefix: tuple[int, ...], sizes: list[int]) -> list[tuple[int, ...]]:
    """List the prefixes that go on like this one and deviate once more."""
    plain = tuple(0 for _ in sizes)
    return [
        (*prefix, *plain[len(prefix) : place], choice)
        for place in range(len(prefix), len(sizes))
        for choice in range(1, sizes[place])
    ]
