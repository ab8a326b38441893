"""`Options`: what is said about a task where it is defined, and may be said again for one enqueue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tenure.errors import BadSettings, Misuse
from tenure.protocol.job import NewJob
from tenure.protocol.kinds import check_kinds
from tenure.protocol.lease import check_duration
from tenure.protocol.names import check_name, check_trace
from tenure.protocol.retry import check_delay

PRIORITIES = range(-100, 101)
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a task's jobs are stored; durations in seconds.

    The first group is what `App.task` takes. The second belongs to one enqueue: `id` (chosen by the caller), `run_at`
    (an aware datetime) and `delay` after it, `unique_key` (one live job of the task per key), `trace` (W3C trace
    context) and `connection` (the caller's own, whose open transaction the job becomes part of).
    """

    queue: str = "default"
    priority: int = 0
    lease: float = 30.0
    max_attempts: int | None = 5
    max_takeovers: int | None = 5
    timeout: float | None = None
    secret: tuple[str, ...] = ()

    id: str | None = None
    run_at: datetime | None = None
    delay: float = 0.0
    unique_key: str | None = None
    trace: str | None = None
    connection: object | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the option and the bound."""
        self._check_names()
        check_kinds(self)
        for name in self.secret:
            check_name("the name of a secret argument", name)
        if self.trace is not None:
            check_trace(self.trace)
        check_duration("the lease", self.lease)
        self._check_bounds()
        if self.run_at is not None and not _FIRST_YEAR <= self.run_at.year <= _LAST_YEAR:
            raise BadSettings(f"run_at is in the year {self.run_at.year}: from {_FIRST_YEAR} to {_LAST_YEAR}")
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise Misuse(
                "run_at has no time zone: give an aware datetime, such as datetime.now(UTC) + timedelta(hours=1)"
            )

    def new_job(self, id_: str, task: str, arguments: str) -> NewJob:
        """Describe a job of `task` with these options; `arguments` is JSON text."""
        return NewJob(id_, task, arguments, *self._alike())

    def new_jobs(self, ids: Iterable[str], task: str, arguments: Iterable[str]) -> list[NewJob]:
        """Describe a job for each of `ids`."""
        alike = self._alike()
        return [NewJob(id_, task, text, *alike) for id_, text in zip(ids, arguments, strict=True)]

    def _alike(self) -> tuple[Any, ...]:
        """Lay out what jobs with these options have in common, in the order of `NewJob`."""
        return (
            self.queue,
            self.priority,
            self.run_at,
            self.delay,
            self.max_attempts,
            self.max_takeovers,
            self.lease,
            self.timeout,
            self.unique_key,
            self.secret,
            self.trace,
            self.id is not None,
        )

    def _check_names(self) -> None:
        check_name("a queue's name", self.queue)
        if self.id is not None:
            check_name("a job's id", self.id)
        if self.unique_key is not None:
            check_name("a unique key", self.unique_key)

    def _check_bounds(self) -> None:
        if self.priority not in PRIORITIES:
            raise BadSettings(f"priority is {self.priority}: {PRIORITIES[0]} to {PRIORITIES[-1]}, higher runs first")
        for what, bound in (("max_attempts", self.max_attempts), ("max_takeovers", self.max_takeovers)):
            if bound is not None and bound < 1:
                raise BadSettings(f"{what} is {bound}: at least 1, or None for no bound")
        if self.timeout is not None and self.timeout <= 0:
            raise BadSettings(f"timeout is {self.timeout:g} s: above 0, or None for no limit")
        check_delay("delay", self.delay)
