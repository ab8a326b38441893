"""What every test of a worker's part needs: clocks that a test moves, a store that answers by script, runs to hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tenure import App, Job
from tenure.hold import Lease, Renew
from tenure.protocol.events import Emitter, Event, Kind
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Outlook, Turn, Verdict, Wanted
from tenure.protocol.lease import DRIFT, MARGIN, Token
from tenure.protocol.lifecycle import State
from tenure.store.sql import SqlVerbs
from tenure.task import Task
from tenure.worker.run import Executor, Finished, Run

CLAIMER = Claimer("owner-1", "ada")
LEASE = 30.0
TRUST = 1.0 - DRIFT - MARGIN
VERBS = SqlVerbs()
NOTHING = Outlook(due=False, abandoned=False, soonest=None)


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class ScriptedStore:
    """A driver that answers from `script`, by the verb's name: a value, an error to raise, or a function of the call.

    `asked` are the verbs and their arguments so far.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.script: dict[str, Any] = {"renew": [], "turn": quiet_turn, "outlook": NOTHING, "held": []}
        self.closed = 0

    def do(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = verb.__name__
        self.asked.append((name, args))
        answer = self.script[name]
        if callable(answer):
            known = inspect.signature(answer).parameters.values()
            takes = {one.name for one in known} if all(one.kind is not one.VAR_KEYWORD for one in known) else kwargs
            answer = answer(*args, **{name: value for name, value in kwargs.items() if name in takes})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1

    @property
    def names(self) -> list[str]:
        """The verbs asked so far, in order."""
        return [name for name, _ in self.asked]


class Told:
    """An emitter and what it was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.emitter = Emitter("ada")
        self.emitter.subscribe(self.events.append)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of the events so far, in order."""
        return [event.kind for event in self.events]


class IdleExecutor:
    """An executor that notes what it is asked to do; its runs end when the test says so."""

    kind = "idle"

    def __init__(self, slots: int = 3) -> None:
        self.slots = slots
        self.started: list[Run] = []
        self.stopped: list[Run] = []
        self.abandoned: list[Run] = []
        self.spares = True

    def open(self, finished: Finished) -> None:
        self.finished = finished

    def start(self, runs: Sequence[Run]) -> None:
        self.started += runs

    def stop(self, run: Run) -> None:
        self.stopped.append(run)

    def abandon(self, run: Run) -> bool:
        self.abandoned.append(run)
        return self.spares

    def close(self) -> None:
        """Nothing to end."""


def quiet_turn(_claimer: Claimer, endings: Sequence[Ending], _wanted: Sequence[Wanted], **_: bool) -> Turn:
    """Answer a turn of a store that accepts every end and has no work."""
    return Turn([done(ending.token) for ending in endings], [])


def done(token: Token) -> Answer:
    return Answer(token, Verdict.DONE)


def stale(token: Token, *, generation: int, worker: str = "bea") -> Answer:
    return Answer(token, Verdict.STALE, State.RUNNING, generation, worker)


def no_renewal(lease: Lease, _duration: float | None) -> None:
    raise AssertionError(f"the store was asked to renew {lease.token}")


def new_lease(
    clock: Clock, job: str = "j1", generation: int = 1, *, duration: float = LEASE, renew: Renew = no_renewal
) -> Lease:
    """Make a lease claimed just now; its wall clock goes with `clock`."""
    return Lease(Token(job, generation), CLAIMER.owner, duration, clock(), renew=renew, clock=clock, wall=clock)


def claimed(job: str = "j1", generation: int = 1, **fields: Any) -> Claimed:
    """Describe one claimed row of the task `work`."""
    given: dict[str, Any] = {
        "id": job,
        "generation": generation,
        "state": State.RUNNING,
        "task": "work",
        "queue": "default",
        "priority": 0,
        "arguments": "{}",
        "attempts": 0,
        "takeovers": 0,
        "max_attempts": 5,
        "lease": LEASE,
        "timeout": None,
        "trace": None,
    }
    return Claimed(**{**given, **fields})


APP = App("memory://")


@APP.task
def work() -> None:
    """Do nothing."""


def new_run(
    clock: Clock,
    executor: Executor,
    job: str = "j1",
    generation: int = 1,
    *,
    task: Task[Any, Any, Any] = work,
    **fields: Any,
) -> Run:
    """Make a run whose lease was claimed just now, and which has not begun."""
    row = claimed(job, generation, **fields)
    lease = new_lease(clock, job, generation, duration=row.lease)
    return Run(row, lease, Job(row, lease, APP), task, executor)
