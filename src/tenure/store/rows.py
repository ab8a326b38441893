"""Rows of the SQL stores <-> values: the column orders are those of the parts `claimed` and `record`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tenure.protocol.job import (
    Claimed,
    Failure,
    Foremost,
    Head,
    HistoryEntry,
    JobRecord,
    NewJob,
    Outlook,
    QueueCounts,
    WorkerRecord,
)
from tenure.protocol.lifecycle import State, Verb
from tenure.store.statements import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_encoder = msgspec.json.Encoder()
_failure = msgspec.json.Decoder(Failure)
_names = msgspec.json.Decoder(tuple[str, ...])
_states = {str(state): state for state in State}  # what `State(text)` does, in a tenth of the time


def to_ms(moment: datetime) -> int:
    """Turn an aware datetime into milliseconds since 1970."""
    return (moment - _EPOCH) // _MILLISECOND


def from_ms(ms: int) -> datetime:
    """Turn milliseconds since 1970 into an aware datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def duration_ms(seconds: float) -> int:
    """Turn seconds into whole milliseconds."""
    return round(seconds * 1000)


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def write_names(names: tuple[str, ...]) -> str:
    """Write a list of names as JSON text."""
    return _encoder.encode(names).decode()


def read_names(text: str | None) -> tuple[str, ...]:
    """Read a list of names; an absent one is empty."""
    return _names.decode(text) if text else ()


def write_failure(failure: Failure | None) -> str | None:
    """Write a failure as JSON text."""
    return None if failure is None else _encoder.encode(failure).decode()


def read_failure(text: str | None) -> Failure | None:
    """Read a failure."""
    return None if text is None else _failure.decode(text)


def enqueue_alike(job: NewJob) -> dict[str, Any]:
    """Lay out what a new job may have in common with others."""
    return {
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "run_at_ms": None if job.run_at is None else to_ms(job.run_at),
        "delay_ms": duration_ms(job.delay),
        "lease_ms": duration_ms(job.lease),
        "max_attempts": job.max_attempts,
        "max_takeovers": job.max_takeovers,
        "timeout_ms": None if job.timeout is None else duration_ms(job.timeout),
        "unique_key": job.unique_key,
        "secret": write_names(job.secret) if job.secret else None,
        "trace": job.trace,
        "named": int(job.named),  # of a type that every database binds as it is
    }


def enqueue_each(job: NewJob) -> Row:
    """Lay out what a new job has for itself, in the order of `ENQUEUE_EACH`."""
    return (job.id, job.arguments)


ENQUEUE_EACH = ("id", "arguments")
ENQUEUE_COLUMNS = (*ENQUEUE_EACH, *enqueue_alike(NewJob("", "")))


def heads(known: Sequence[Head]) -> dict[str, tuple[Any, ...]]:
    """Lay out the heads of lines as the columns that a claim takes."""
    return {
        "head_queue": tuple([head.queue for head in known]),
        "head_priority": tuple([head.priority for head in known]),
        "head_run_at_ms": tuple([head.run_at_ms for head in known]),
    }


def claimed(row: Row) -> Claimed:
    """Read one row of the part `claimed`."""
    (id_, generation, state, task, queue, priority, arguments, attempts, takeovers, max_attempts, lease_ms, timeout_ms,
     trace, lost_generation, lost_worker, run_at_ms) = row  # fmt: skip
    return Claimed(
        id_, generation, _states[state], task, queue, priority, arguments, attempts, takeovers, max_attempts,
        lease_ms / 1000, _seconds(timeout_ms), trace, lost_generation, lost_worker, run_at_ms,
    )  # fmt: skip


def claimed_in_order(taken: Sequence[Row]) -> list[Claimed]:
    """Read rows of the part `claimed` in the order in which they were to be claimed; RETURNING promises none."""
    return [claimed(row) for row in sorted(taken, key=_claim_order)]


def _claim_order(row: Row) -> tuple[int, int, str]:
    return (-row[5], row[15], row[0])


def outlook(row: Row) -> Outlook:
    """Read what the statement `outlook` tells."""
    due, abandoned, soonest_ms = row
    return Outlook(bool(due), bool(abandoned), _seconds(soonest_ms))


def record(row: Row) -> JobRecord:
    """Read one row of the part `record`, its failure behind it, and what may be large where that was asked for."""
    (id_, task, queue, priority, state, run_at, generation, worker, lease_ms, remaining_ms, claimed_at, attempts,
     max_attempts, takeovers, max_takeovers, timeout_ms, unique_key, secret, ended, ended_at, reason, trace,
     lost_generation, lost_worker, enqueued_at, finished_at, now_ms, failure, *bulky) = row  # fmt: skip
    arguments, result, progress = bulky or ("", None, None)
    return JobRecord(
        id=id_,
        task=task,
        queue=queue,
        priority=priority,
        state=State(state),
        run_at=from_ms(run_at),
        generation=generation,
        worker=worker,
        lease=lease_ms / 1000,
        lease_remaining=_seconds(remaining_ms),
        claimed_at=_moment(claimed_at),
        attempts=attempts,
        max_attempts=max_attempts,
        takeovers=takeovers,
        max_takeovers=max_takeovers,
        timeout=_seconds(timeout_ms),
        unique_key=unique_key,
        arguments=arguments,
        secret=read_names(secret),
        result=result,
        progress=progress,
        ended=None if ended is None else Verb(ended),
        ended_at=_moment(ended_at),
        reason=reason,
        failure=read_failure(failure),
        trace=trace,
        lost_generation=lost_generation,
        lost_worker=lost_worker,
        enqueued_at=from_ms(enqueued_at),
        finished_at=_moment(finished_at),
        now=from_ms(now_ms),
    )


def history_entry(row: Row) -> HistoryEntry:
    """Read one row of the history."""
    job, generation, at, event, worker, reason, failure = row
    return HistoryEntry(job, generation, from_ms(at), event, worker, reason, read_failure(failure))


def queue_counts(row: Row) -> QueueCounts:
    """Read one row of the counts."""
    return QueueCounts(*row)


def foremost(row: Row) -> Foremost:
    """Read what stands first in one lane."""
    queue, task, due_ms = row
    return Foremost(queue, task, due_ms / 1000)


def worker_record(row: Row) -> WorkerRecord:
    """Read one row of the workers."""
    owner, name, host, pid, queues, slots, started_at, seen_ms, held = row
    return WorkerRecord(owner, name, host, pid, read_names(queues), slots, from_ms(started_at), seen_ms / 1000, held)
