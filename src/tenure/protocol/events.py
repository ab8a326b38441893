"""The catalogue of events and the one emitter: everything worth telling passes here, once.

An event names jobs, generations and workers; it never carries arguments, results or messages of user code (B30).
Subscribers (metrics, traces, tests) get the value; the log gets its sentence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

log = logging.getLogger("tenure")


class Kind(StrEnum):
    """Every event there is, each with the level at which it is logged."""

    WORKER_STARTED = "worker started"
    WORKER_STOPPING = "worker stopping"
    WORKER_STOPPED = "worker stopped"
    JOB_STARTED = "job started"
    JOB_COMPLETED = "job completed"
    JOB_FAILED = "job failed"
    JOB_RETURNED = "job returned"  # snoozed or released: it will run again, no attempt was spent
    JOB_CANCELLED = "job cancelled"
    JOB_DISCARDED = "job discarded"
    JOB_TAKEN_OVER = "job taken over"
    DEADLINE_SOON = "lease ends soon"
    LEASE_LOST = "lease lost"
    STALE_REFUSED = "stale write refused"
    TIMED_OUT = "job timed out"
    STORE_LOST = "store unreachable"
    STORE_BACK = "store reachable again"
    STORE_SLOW = "store slow"
    KEEPER_LATE = "renewal late"
    FLOOR_RAISED = "generation floor raised"
    RAISED_LATE = "error after completion"  # D1: the job was completed in the handler's own transaction
    TASK_UNKNOWN = "task unknown"  # its jobs wait in a queue that is served, and nobody runs them
    GENERATIONS_SPENT = "generations used up"  # R4: the store refuses every claim, and jobs would wait for ever
    BELL_LOST = "bell silent, polling"


LEVELS: dict[Kind, int] = {
    Kind.JOB_STARTED: logging.DEBUG,
    Kind.JOB_COMPLETED: logging.DEBUG,
    Kind.JOB_RETURNED: logging.INFO,
    Kind.WORKER_STARTED: logging.INFO,
    Kind.WORKER_STOPPING: logging.INFO,
    Kind.WORKER_STOPPED: logging.INFO,
    Kind.STORE_BACK: logging.INFO,
    Kind.JOB_CANCELLED: logging.INFO,
    Kind.GENERATIONS_SPENT: logging.ERROR,
}
"""Levels other than warning."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: `kind`, to which job under which generation, by which worker, and a plain detail."""

    kind: Kind
    job: str | None = None
    generation: int | None = None
    worker: str | None = None
    task: str | None = None
    detail: str = ""

    def __str__(self) -> str:
        """Tell the event in one line."""
        about = f" {self.job}:{self.generation}" if self.job is not None else ""
        task = f" ({self.task})" if self.task else ""
        return f"{self.kind}{about}{task}" + (f": {self.detail}" if self.detail else "")


Subscriber = Callable[[Event], None]


class Emitter:
    """The single place through which events leave: to the log, and to whoever subscribed."""

    def __init__(self, worker: str | None = None, *, parent: Emitter | None = None) -> None:
        self.worker = worker
        self._parent = parent
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every event; it runs in the emitting thread and must be quick."""
        self._subscribers.append(subscriber)

    def wants(self, kind: Kind) -> bool:
        """Say whether anybody would notice an event of this kind; lets hot paths skip building it."""
        return self.has_subscribers() or log.isEnabledFor(LEVELS.get(kind, logging.WARNING))

    def emit(
        self,
        kind: Kind,
        *,
        job: str | None = None,
        generation: int | None = None,
        task: str | None = None,
        detail: str = "",
    ) -> None:
        """Tell everybody; a subscriber that fails is logged and does not stop the others."""
        if not self.wants(kind):
            return
        event = Event(kind, job, generation, self.worker, task, detail)
        log.log(LEVELS.get(kind, logging.WARNING), "%s", event)
        self._tell(event)

    def _tell(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except BaseException:  # its thread is ours, and must not end with a subscriber that calls sys.exit
                log.exception("a subscriber failed on %s", event.kind)
        if self._parent is not None:
            self._parent._tell(event)  # noqa: SLF001 -- a parent is another emitter

    def has_subscribers(self) -> bool:
        """Say whether anybody listens here or at the parent."""
        return bool(self._subscribers) or (self._parent is not None and self._parent.has_subscribers())
