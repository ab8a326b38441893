"""What a worker may be told, and the combinations that are refused at start with their numbers named (R17, B01)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from tenure.errors import BadSettings
from tenure.protocol.kinds import check_kinds
from tenure.protocol.lease import beat_interval, check_keepable
from tenure.protocol.names import check_name

_REQUEST_PART = 0.5  # of the shortest lease: the default for how long one request may take
_LONGEST_REQUEST = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a worker works; durations in seconds.

    `queues` are those to serve, by default every queue that a task of the app names, and "default". `slots` bounds
    async handlers, `threads` plain ones, `processes` those with ``isolation="process"``. `grace` is how long running
    jobs may go on after the worker was asked to stop, `patience` how long a handler that was told to stop may take
    before it is left behind. `beat` is the pause between renewals, by default a third of the shortest lease
    held. `request_timeout` bounds one request to the store, by default half the shortest lease, at most 5 s.
    `retention` is how long finished jobs are kept, None for ever.
    """

    queues: tuple[str, ...] | None = None
    slots: int = 256
    threads: int = 32
    processes: int = field(default_factory=lambda: os.cpu_count() or 1)
    grace: float = 30.0
    patience: float = 2.0
    beat: float | None = None
    request_timeout: float | None = None
    retention: float | None = 7 * 86_400.0
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no worker."""
        check_kinds(self)
        if self.queues is not None and not self.queues:
            raise BadSettings("queues is empty: name at least one queue to serve")
        for queue in self.queues or ():
            check_name("a queue's name", queue)
        if self.name is not None:
            check_name("a worker's name", self.name)
        self._check_numbers()

    def _check_numbers(self) -> None:
        for what in ("slots", "threads", "processes"):
            if getattr(self, what) < 1:
                raise BadSettings(f"{what} is {getattr(self, what)}: at least 1")
        for what in ("grace", "patience"):
            if getattr(self, what) < 0:
                raise BadSettings(f"{what} is {getattr(self, what):g} s: 0 or more")
        for what in ("beat", "request_timeout"):
            seconds = getattr(self, what)
            if seconds is not None and seconds <= 0:
                raise BadSettings(f"{what} is {seconds:g} s: above 0, or None for the default")
        if self.retention is not None and self.retention <= 0:
            raise BadSettings(f"retention is {self.retention:g} s: above 0, or None to keep finished jobs for ever")

    def request_limit(self, leases: Iterable[tuple[str, float]]) -> float:
        """Return the bound for one request; raises BadSettings when a task's lease could not be kept under it.

        `leases` are (task name, lease in seconds).
        """
        known = list(leases)
        shortest = min([lease for _, lease in known], default=_LONGEST_REQUEST / _REQUEST_PART)
        limit = (
            min(_LONGEST_REQUEST, shortest * _REQUEST_PART) if self.request_timeout is None else self.request_timeout
        )
        for name, lease in known:
            check_keepable(f"task {name}", lease, limit)
            if self.beat is not None and self.beat > beat_interval(lease):
                raise BadSettings(
                    f"beat is {self.beat:g} s and task {name} has a lease of {lease:g} s: a lease is renewed at least"
                    f" three times in its length; use a beat of at most {beat_interval(lease):.3g} s, or a longer lease"
                )
        return limit
