"""The values that travel between operations, stores, worker and screens: frozen, without behaviour.

Durations are seconds, moments are aware datetimes in UTC, texts named `arguments`, `result` and `progress` are JSON.
What is made for every job is a struct, which is made in a sixth of the time that a frozen dataclass takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.protocol.names import check_ids


class NewJob(Struct, frozen=True, gc=False):
    """A job as its enqueuer describes it, with an id of the client's making, so that repeating is harmless (R26)."""

    id: str
    task: str
    arguments: str = "{}"
    queue: str = "default"
    priority: int = 0
    run_at: datetime | None = None  # None: now, by the store's clock
    delay: float = 0.0  # seconds after `run_at`
    max_attempts: int | None = None
    max_takeovers: int | None = None
    lease: float = 30.0
    timeout: float | None = None
    unique_key: str | None = None
    secret: tuple[str, ...] = ()  # names of arguments that no view may show
    trace: str | None = None  # W3C trace context of the enqueuer
    named: bool = False  # the id was chosen by a person and may come again after a prune (R3)


class Enqueued(Struct, frozen=True, gc=False):
    """The answer to an enqueue: the job's id, and whether this call made it or met one that was there."""

    id: str
    created: bool


class Claimer(Struct, frozen=True, gc=False):
    """Who claims: one start of one worker."""

    owner: str
    worker: str


class Head(Struct, frozen=True, gc=False):
    """Where the line of one queue and priority begins: at jobs that became due at `run_at_ms`.

    In milliseconds since 1970 by the store's clock.
    """

    queue: str
    priority: int
    run_at_ms: int


class Wanted(Struct, frozen=True, gc=False):
    """What a claim asks for: at most `limit` jobs of these tasks, from these queues.

    Higher priority comes first, then the order of `queues`, then `run_at`. With `takeovers` the claim also looks for
    running jobs whose lease has ended; without, it costs less.

    Where the asker knows the head of a line, the claim may pass over what stands before it: a hint for stores in which
    what was claimed lies in the way for long. A store that needs no hint need not heed it.
    """

    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    limit: int
    takeovers: bool = True
    heads: tuple[Head, ...] = ()


class Claimed(Struct, frozen=True, gc=False):
    """One row that a claim returned: owned now under (id, generation), or discarded as poison (`state`).

    `lost_generation` and `lost_worker` tell whose lease had ended, None when the job was simply due. `run_at_ms` is
    when that was, in milliseconds since 1970 by the store's clock.
    """

    id: str
    generation: int
    state: State
    task: str | None
    queue: str
    priority: int
    arguments: str
    attempts: int
    takeovers: int
    max_attempts: int | None
    lease: float
    timeout: float | None
    trace: str | None
    lost_generation: int | None = None
    lost_worker: str | None = None
    run_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in one attempt: the error's type and place, its message, its traceback."""

    type: str
    where: str
    message: str
    traceback: str = ""


class Ending(Struct, frozen=True, gc=False):
    """How a run ended, as a value: `verb` under `token`, settled in the feeder's next turn.

    `delay` is seconds until the job is due again, for the verbs that bring it back. With `confirms` the run has
    completed its job in a transaction of its own: this ending counts only if that did not commit, else it is answered
    ALREADY.
    """

    token: Token
    verb: Verb
    delay: float = 0.0
    result: str | None = None
    reason: str | None = None
    failure: Failure | None = None
    confirms: bool = False


class Verdict(StrEnum):
    """What the store answered to an owner's write."""

    DONE = "done"
    ALREADY = "already"  # the same write under the same token stood there before (R7)
    STALE = "stale"
    BUSY = "busy"  # the token is right, and another transaction has locked the job just then: ask again


class Answer(Struct, frozen=True, gc=False):
    """The store's answer to one ending or renewal, with what it met where that was not the caller's token."""

    token: Token
    verdict: Verdict
    state: State | None = None
    generation: int | None = None
    worker: str | None = None
    ended: Verb | None = None
    result: str | None = None


class Turn(Struct, frozen=True, gc=False):
    """The answer to one turn of a feeder: each ending's answer, and what was claimed."""

    answers: list[Answer]
    claimed: list[Claimed]


class Outlook(Struct, frozen=True, gc=False):
    """What time has made claimable, and when it will the next time: `soonest` in seconds from now, None for never.

    `due` is whether a job waits that is due, `abandoned` whether a lease has ended and nobody has taken its job over.
    """

    due: bool
    abandoned: bool
    soonest: float | None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Everything the store knows of a job, for people."""

    id: str
    task: str | None
    queue: str
    priority: int
    state: State
    run_at: datetime
    generation: int
    worker: str | None
    lease: float
    lease_remaining: float | None  # seconds by the store's clock; negative: the lease has ended
    claimed_at: datetime | None
    attempts: int
    max_attempts: int | None
    takeovers: int
    max_takeovers: int | None
    timeout: float | None
    unique_key: str | None
    arguments: str
    secret: tuple[str, ...]
    result: str | None
    progress: str | None
    ended: Verb | None
    ended_at: datetime | None
    reason: str | None
    failure: Failure | None
    trace: str | None
    lost_generation: int | None
    lost_worker: str | None
    enqueued_at: datetime
    finished_at: datetime | None
    now: datetime  # the store's clock when it answered

    @property
    def phase(self) -> str:
        """Name the state together with what time says of it: ``scheduled``, ``expired`` or the state's own name."""
        if self.state is State.AVAILABLE and self.run_at > self.now:
            return "retryable" if self.ended in {Verb.FAIL, Verb.RETRY} else "scheduled"
        if self.state is State.RUNNING and self.lease_remaining is not None and self.lease_remaining <= 0:
            return "expired"
        return str(self.state)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One abnormal turn in a job's life: which generation, which worker, what ended it or was refused, when (R46)."""

    job: str
    generation: int
    at: datetime
    event: str
    worker: str | None
    reason: str | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs an operator means; every field that is set must match."""

    ids: tuple[str, ...] | None = None
    queue: str | None = None
    task: str | None = None
    state: State | None = None

    def __post_init__(self) -> None:
        """Refuse one id alone; raises Misuse."""
        check_ids(self.ids or ())


@dataclass(frozen=True, slots=True)
class Moved:
    """What an operator's verb did to one job: `moved`, or refused because of the `state` that it met."""

    id: str
    moved: bool
    state: State | None


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many jobs of a queue wait (due or scheduled), run, and were left behind by a lost worker."""

    queue: str
    due: int
    scheduled: int
    running: int
    expired: int


class Foremost(Struct, frozen=True, gc=False):
    """The job that has been due longest in a queue under one priority: its task, and for how many seconds."""

    queue: str
    task: str
    due_for: float


class WorkerRecord(Struct, frozen=True, gc=False):
    """One start of a worker, as it last reported itself."""

    owner: str
    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    started_at: datetime
    seen_ago: float  # seconds by the store's clock
    held: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """One step of a prune: rows removed, and where the next step begins; None when the walk is over."""

    removed: int
    cursor: str | None
