"""The verbs of enqueuers and operators; what each promises stands in `tenure.store.contract`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, timedelta
from heapq import nlargest, nsmallest
from typing import Any

from tenure.errors import Misuse, NotFound
from tenure.protocol.job import Enqueued, Filter, HistoryEntry, JobRecord, Moved, NewJob, QueueCounts
from tenure.protocol.lifecycle import LIVE, TABLE, Actor, State, Verb
from tenure.store.memory.moves import carry_out, note, permitted
from tenure.store.memory.world import Instant, Row, World

OPERABLE = frozenset(move.verb for move in TABLE if move.actor is Actor.OPERATOR and move.target is not None)
"""The verbs with which an operator moves a job; a prune has a verb of its own."""

_SHARED = tuple(set(Row.__struct_fields__) & {field.name for field in fields(JobRecord)})


def enqueue(world: World, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Store new jobs; a known id or a taken unique key answers with the job that was met."""
    now = world.now()
    return [_enqueue_one(world, job, now) for job in jobs]


def get(world: World, job: str) -> JobRecord:
    """Show one job."""
    row = world.jobs.get(job)
    if row is None:
        raise NotFound(job)
    return _record(row, world.now())


def history(world: World, job: str) -> list[HistoryEntry]:
    """Tell the abnormal turns of a job's life, oldest first."""
    return list(world.history.get(job, ()))


def find(
    world: World, which: Filter, *, limit: int, after: str | None = None, newest_first: bool = True
) -> list[JobRecord]:
    """List jobs in order of id without what may be large: payload and messages."""
    now = world.now()
    matching = (row.id for row in world.jobs.values() if _matches(row, which))
    if newest_first:
        ids = nlargest(limit, (job for job in matching if after is None or job < after))
    else:
        ids = nsmallest(limit, (job for job in matching if after is None or job > after))
    return [_light(_record(world.jobs[job], now)) for job in ids]


def _light(record: JobRecord) -> JobRecord:
    failure = None if record.failure is None else replace(record.failure, message="", traceback="")
    return replace(record, arguments="", result=None, progress=None, failure=failure)


def operate(world: World, verb: Verb, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
    """Cancel, discard, release or retry jobs by id, each by the table (R2)."""
    if verb not in OPERABLE:
        raise Misuse(f"{verb} is no operator's verb; use one of {', '.join(sorted(OPERABLE))}")
    now = world.now()
    return [_operate_one(world, verb, job, reason, now) for job in jobs]


def queues(world: World) -> list[QueueCounts]:
    """Count the live jobs of each queue, in order of name."""
    now = world.now()
    counts = Counter((row.queue, _phase(row, now)) for row in world.jobs.values() if _counts(row))
    names = sorted({queue for queue, _ in counts})
    return [
        QueueCounts(queue, **{phase: counts[queue, phase] for phase in ("due", "scheduled", "running", "expired")})
        for queue in names
    ]


def _counts(row: Row) -> bool:
    """Whether a row waits or runs; a bare lease that nobody owns does neither."""
    return row.state is State.RUNNING or (row.state is State.AVAILABLE and row.task is not None)


def _enqueue_one(world: World, job: NewJob, now: Instant) -> Enqueued:
    if job.id in world.jobs:
        return Enqueued(job.id, created=False)
    if job.unique_key is not None and (met := world.index.unique.get((job.task, job.unique_key))) is not None:
        return Enqueued(met, created=False)
    run_at = (job.run_at or now.at).astimezone(UTC) + timedelta(seconds=job.delay)
    world.save(
        Row(
            id=job.id,
            task=job.task,
            queue=job.queue,
            priority=job.priority,
            run_at=run_at,
            enqueued_at=now.at,
            lease=job.lease,
            arguments=job.arguments,
            secret=job.secret,
            max_attempts=job.max_attempts,
            max_takeovers=job.max_takeovers,
            timeout=job.timeout,
            unique_key=job.unique_key,
            trace=job.trace,
            named=job.named,
        )
    )
    return Enqueued(job.id, created=True)


def _operate_one(world: World, verb: Verb, job: str, reason: str | None, now: Instant) -> Moved:
    row = world.jobs.get(job)
    if row is None:
        return Moved(job, moved=False, state=None)
    step = permitted(row, Actor.OPERATOR, verb, now)
    if step is None or (step.target in LIVE and _key_is_taken(world, row)):
        return Moved(job, moved=False, state=row.state)
    changes: dict[str, Any] = {"run_at": now.at} if step.target is State.AVAILABLE else {}
    if step.restarts:
        changes["result"] = None
    after = carry_out(row, step, now, reason=reason, failure=None, **changes)
    world.save(after)
    note(world, row, after, now, verb)
    return Moved(job, moved=True, state=row.state)


def _key_is_taken(world: World, row: Row) -> bool:
    if row.unique_key is None:
        return False
    return world.index.unique.get((row.task, row.unique_key), row.id) != row.id


def _matches(row: Row, which: Filter) -> bool:
    return (
        (which.ids is None or row.id in which.ids)
        and (which.queue is None or row.queue == which.queue)
        and (which.task is None or row.task == which.task)
        and (which.state is None or row.state is which.state)
    )


def _phase(row: Row, now: Instant) -> str:
    remaining = row.lease_remaining(now)
    if remaining is not None:
        return "running" if remaining > 0 else "expired"
    return "due" if row.run_at <= now.at else "scheduled"


def _record(row: Row, now: Instant) -> JobRecord:
    shared = {name: getattr(row, name) for name in _SHARED}
    return JobRecord(**shared, lease_remaining=row.lease_remaining(now), now=now.at)
