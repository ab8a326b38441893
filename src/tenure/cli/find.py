"""Walking over jobs by filter, page by page, in bounded steps (B23)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from tenure.client import Client
from tenure.protocol.job import Filter, JobRecord
from tenure.protocol.lifecycle import State

PAGE = 500
LOOK_AT = 10_000  # rows that one list looks at for a phase, which no index knows


class Phase(StrEnum):
    """A stored state together with what time says of it, as `JobRecord.phase` names it."""

    AVAILABLE = "available"
    SCHEDULED = "scheduled"
    RETRYABLE = "retryable"
    RUNNING = "running"
    EXPIRED = "expired"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"

    @property
    def state(self) -> State:
        """The stored state behind it."""
        return {
            Phase.SCHEDULED: State.AVAILABLE,
            Phase.RETRYABLE: State.AVAILABLE,
            Phase.EXPIRED: State.RUNNING,
        }.get(self) or State(self.value)


def page_of(
    client: Client, which: Filter, phase: Phase | None, *, limit: int, after: str | None, newest_first: bool
) -> tuple[list[JobRecord], str | None]:
    """Find at most `limit` jobs, and the id after which to go on; None when there are no more."""
    found: list[JobRecord] = []
    seen = 0
    while True:
        size = min(PAGE, limit - len(found) if phase is None else PAGE)
        page = client.find(which, limit=size, after=after, newest_first=newest_first)
        for record in page:
            after = record.id
            if phase in {None, record.phase}:
                found.append(record)
            if len(found) == limit:
                return found, after
        seen += len(page)
        if len(page) < size:
            return found, None
        if seen >= LOOK_AT:
            return found, after


def batches(client: Client, which: Filter, states: Sequence[State], phase: Phase | None) -> Iterator[list[str]]:
    """Yield the ids of the jobs that match, a page at a time; bare leases have owners of their own and are left out.

    Newest first, so that jobs enqueued meanwhile are not met and the walk comes to an end.
    """
    for state in states:
        after: str | None = None
        while True:
            page = client.find(replace(which, state=state), limit=PAGE, after=after, newest_first=True)
            ids = [record.id for record in page if record.task is not None and phase in {None, record.phase}]
            if ids:
                yield ids
            if len(page) < PAGE:
                break
            after = page[-1].id
