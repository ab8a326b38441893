"""The data of a memory store: tables of immutable values, changed in one place that can undo every change.

Whoever uses a world holds its store's lock. A table is a plain dict from a key to a value that is replaced whole, so
the undo log needs only the value that stood there before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import merge
from operator import itemgetter
from typing import Any, Final, TypeVar

from msgspec import Struct

from tenure.clock import Clock
from tenure.protocol.job import Failure, HistoryEntry, Wanted, WorkerRecord
from tenure.protocol.lifecycle import LIVE, State, Verb
from tenure.store.rows import from_ms

# Looked up once: a member of an enumeration that is read through its class costs as much as four calls of a function.
AVAILABLE: Final = State.AVAILABLE
RUNNING: Final = State.RUNNING

_MOMENT: Final = itemgetter(0)

K = TypeVar("K")
V = TypeVar("V")

Wall = Callable[[], datetime]
"""A clock of aware moments; tests inject their own."""


class Instant(Struct, frozen=True, gc=False):
    """The store's clock read once: `tick` in seconds for leases, `at` for moments that people see."""

    tick: float
    at: datetime


class Row(Struct, frozen=True, gc=False):
    """One stored job; `lease_until` is a tick of the store's clock. A struct, because every move copies it."""

    id: str
    task: str | None
    queue: str
    priority: int
    run_at: datetime
    enqueued_at: datetime
    lease: float
    arguments: str = "{}"
    secret: tuple[str, ...] = ()
    max_attempts: int | None = None
    max_takeovers: int | None = None
    timeout: float | None = None
    unique_key: str | None = None
    trace: str | None = None
    named: bool = False
    state: State = State.AVAILABLE
    generation: int = 0
    owner: str | None = None
    worker: str | None = None
    lease_until: float | None = None
    claimed_at: datetime | None = None
    attempts: int = 0
    takeovers: int = 0
    result: str | None = None
    progress: str | None = None
    ended: Verb | None = None
    ended_at: datetime | None = None
    reason: str | None = None
    failure: Failure | None = None
    lost_generation: int | None = None
    lost_worker: str | None = None
    finished_at: datetime | None = None

    def lease_remaining(self, now: Instant) -> float | None:
        """Return the seconds left of the lease, negative once it has ended; None where nobody owns the job."""
        return None if self.lease_until is None else self.lease_until - now.tick


class Reported(Struct, frozen=True, gc=False):
    """A worker's last report and the tick at which it came."""

    record: WorkerRecord
    seen: float


class Index:
    """What is found without looking at every row: who waits in which order, who runs, which unique keys are taken."""

    def __init__(self) -> None:
        self.running: dict[str, Row] = {}
        self.unique: dict[tuple[str | None, str], str] = {}
        self._waiting: dict[tuple[str, str | None, int], list[tuple[datetime, str]]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no job waits or runs."""
        return not self._waiting and not self.running

    def replace(self, before: Row | None, after: Row | None) -> None:
        """Forget one version of a row and note the next."""
        if before is not None and after is not None and before.state is after.state is RUNNING:
            self.running[after.id] = after  # it runs on, under the same unique key
            return
        if before is not None:
            self._forget(before)
        if after is not None:
            self._note(after)

    def due(self, wanted: Wanted, at: datetime) -> Iterator[str]:
        """List the ids of due jobs: higher priority first, then the order of queues, then `run_at`, then id."""
        queues, tasks = wanted.queues, wanted.tasks
        heads = {(head.queue, head.priority): from_ms(head.run_at_ms) for head in wanted.heads} if wanted.heads else {}
        lines: dict[tuple[int, int], list[Sequence[tuple[datetime, str]]]] = {}
        for (queue, task, priority), line in self._waiting.items():
            if line[0][0] <= at and queue in queues and task in tasks:
                head = heads.get((queue, priority)) if heads else None
                rest = line if head is None else line[bisect_left(line, head, key=_MOMENT) :]
                lines.setdefault((-priority, queues.index(queue)), []).append(rest)
        for _, alike in sorted(lines.items()) if len(lines) > 1 else lines.items():
            for run_at, job in alike[0] if len(alike) == 1 else merge(*alike):
                if run_at > at:
                    break
                yield job

    def due_times(self, queues: Collection[str], at: datetime) -> Iterator[datetime]:
        """List the first moment of each line in which jobs of these queues wait, and the first one after `at`."""
        for (queue, _, _), line in self._waiting.items():
            if queue in queues:
                first, last = line[0][0], line[-1][0]
                yield first
                if first <= at < last:
                    yield line[bisect_right(line, at, key=_MOMENT)][0]

    def foremost(self, queues: Collection[str], at: datetime) -> Iterator[tuple[str, str, datetime]]:
        """List what is due first in each of these queues under each priority: queue, task, and since when."""
        first: dict[tuple[str, int], tuple[tuple[datetime, str], str]] = {}
        for (queue, task, priority), line in self._waiting.items():
            if queue in queues and task is not None and line[0][0] <= at:
                first[queue, priority] = min(first.get((queue, priority), (line[0], task)), (line[0], task))
        for (queue, _), ((run_at, _), task) in sorted(first.items()):
            yield queue, task, run_at

    def _note(self, row: Row) -> None:
        if row.state is AVAILABLE:
            insort(self._waiting.setdefault((row.queue, row.task, row.priority), []), (row.run_at, row.id))
        elif row.state is RUNNING:
            self.running[row.id] = row
        if row.unique_key is not None and row.state in LIVE:
            self.unique[row.task, row.unique_key] = row.id

    def _forget(self, row: Row) -> None:
        if row.state is AVAILABLE:
            key = (row.queue, row.task, row.priority)
            line = self._waiting[key]
            del line[bisect_left(line, (row.run_at, row.id))]
            if not line:
                del self._waiting[key]
        elif row.state is RUNNING:
            del self.running[row.id]
        if row.unique_key is not None and row.state in LIVE:
            del self.unique[row.task, row.unique_key]


class World:
    """Everything that a memory store knows."""

    def __init__(self, clock: Clock, wall: Wall) -> None:
        self.jobs: dict[str, Row] = {}
        self.history: dict[str, tuple[HistoryEntry, ...]] = {}
        self.steps: dict[str, Mapping[str, str]] = {}
        self.workers: dict[str, Reported] = {}
        self.numbers: dict[str, int] = {"floor": 0}
        self.index = Index()
        self.shift = 0.0
        self._clock = clock
        self._wall = wall
        self._undo: list[tuple[dict[Any, Any], Any, Any, Any]] = []  # tables, keys, what stood there, what came
        self._work_waits = False

    def now(self) -> Instant:
        """Read the store's clock."""
        return Instant(self._clock() + self.shift, self._wall() + timedelta(seconds=self.shift))

    @property
    def floor(self) -> int:
        """The number above which every claim's generation lies."""
        return self.numbers["floor"]

    def raise_floor(self, floor: int) -> None:
        """Raise the floor; it never sinks."""
        self.write(self.numbers, "floor", max(self.floor, floor))

    def save(self, row: Row) -> None:
        """Store a row, or the next version of one."""
        jobs, job = self.jobs, row.id
        before = jobs.get(job)
        self._undo.append((jobs, job, before, row))
        self.index.replace(before, row)
        jobs[job] = row
        if row.state is AVAILABLE:
            self._work_waits = True

    def remove(self, job: str) -> None:
        """Remove a row and all that hangs on it."""
        self.write(self.jobs, job, None)
        self.write(self.history, job, None)
        self.write(self.steps, job, None)

    def note(self, entry: HistoryEntry) -> None:
        """Write an abnormal turn to the history of its job (R46)."""
        self.write(self.history, entry.job, (*self.history.get(entry.job, ()), entry))

    def write(self, table: dict[K, V], key: K, value: V | None) -> None:
        """Set a key of a table, or remove it with None; but for `save`, the only way in which a world changes."""
        before = table.get(key)
        self._undo.append((table, key, before, value))
        self._put(table, key, before, value)

    def changes(self) -> list[tuple[Row | None, Row | None]]:
        """List how rows stood before and after each change that is not committed yet; None where one was not there."""
        jobs, undo = self.jobs, self._undo
        return [(before, after) for table, _, before, after in undo if table is jobs] if undo else []

    def mark(self) -> int:
        """Name this point, to which `roll_back` can return."""
        return len(self._undo)

    def roll_back(self, mark: int) -> None:
        """Undo every change since the mark."""
        while len(self._undo) > mark:
            table, key, before, _ = self._undo.pop()
            self._put(table, key, table.get(key), before)

    def commit(self) -> bool:
        """Keep what was changed; True when work may be waiting because of it."""
        rings, self._work_waits = self._work_waits and bool(self._undo), False
        self._undo.clear()
        return rings

    def _put(self, table: dict[Any, Any], key: Any, before: Any, value: Any) -> None:
        if table is self.jobs:
            self.index.replace(before, value)
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
