"""A job's life, generation by generation: pure, from its record and its history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenure.cli.times import span
from tenure.protocol.job import Failure, HistoryEntry, JobRecord
from tenure.protocol.lifecycle import FINAL, State, Verb

_TOLD = {
    Verb.TAKEOVER: "lease ended, taken over",
    Verb.FAIL: "failed",
    Verb.RETRY: "retry asked for",
    Verb.SNOOZE: "snoozed",
    Verb.RELEASE: "released",
    Verb.CANCEL: "cancelled",
    Verb.DISCARD: "discarded",
}
"""How the past of a job is told; other events, such as refused writes, are told as they are stored."""

_BY_OPERATOR = {
    Verb.CANCEL: "cancelled by an operator",
    Verb.DISCARD: "discarded by an operator",
    Verb.RETRY: "retried by an operator",
}
_LEASE_ENDED = "lease ended"  # the reason of every takeover, which its words tell already


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing that happened to a job, or that is so now."""

    at: datetime
    text: str


def life(record: JobRecord, history: list[HistoryEntry]) -> list[Scene]:
    """Tell a job's life: enqueued, what the history holds, and how it stands now."""
    scenes = [
        Scene(record.enqueued_at, f"enqueued in queue {record.queue}" if record.queue else "made as a bare lease")
    ]
    operators = _by_operators(record, history)
    scenes += [_past(entry, by_operator=entry in operators) for entry in history]
    if record.claimed_at is not None and record.state in {State.RUNNING, State.COMPLETED}:
        scenes.append(Scene(record.claimed_at, f"{_who(record.generation, record.worker)}: {_claimed(record)}"))
    scenes.append(_now(record))
    return scenes


def failed(failure: Failure) -> str:
    """Tell a failure by its type and place."""
    return f"{failure.type} at {failure.where}" if failure.where else failure.type


def _who(generation: int, worker: str | None) -> str:
    return f"generation {generation}" + (f" on {worker}" if worker else "")


def _by_operators(record: JobRecord, history: list[HistoryEntry]) -> list[HistoryEntry]:
    """Find the turns that no run can have made: its job was over, its generation had ended or was taken away."""
    turns = [entry for entry in history if entry.event in _TOLD]
    befores = [None, *turns]
    afters = [*(entry.generation for entry in turns[1:]), record.generation]
    return [
        entry
        for entry, before, after in zip(turns, befores, afters, strict=False)
        if entry.event in _BY_OPERATOR
        and (
            entry.generation == 0
            or (before is not None and (before.generation == entry.generation or _is_over(before, entry)))
            or (entry.event != Verb.RETRY and after > entry.generation)
        )
    ]


def _is_over(before: HistoryEntry, entry: HistoryEntry) -> bool:
    lost = before.event == Verb.TAKEOVER and before.reason != _LEASE_ENDED  # too often: the job was discarded
    return entry.event == Verb.RETRY and (lost or before.event in {Verb.CANCEL, Verb.DISCARD})


def _past(entry: HistoryEntry, *, by_operator: bool) -> Scene:
    worker = None if by_operator and entry.event == Verb.RETRY else entry.worker
    return Scene(entry.at, f"{_who(entry.generation, worker)}: {_event(entry, by_operator=by_operator)}")


def _event(entry: HistoryEntry, *, by_operator: bool) -> str:
    words = _BY_OPERATOR if by_operator else _TOLD
    verb = next((verb for verb in words if verb == entry.event), None)
    told = entry.event if verb is None else words[verb]
    details = [failed(entry.failure)] if entry.failure is not None else []
    if entry.reason and entry.reason != _LEASE_ENDED:
        details.append(entry.reason)
    return f"{told}: {'; '.join(details)}" if details else told


def _claimed(record: JobRecord) -> str:
    if record.lost_generation is None:
        return "claimed"
    lost = f" ({record.lost_worker})" if record.lost_worker else ""
    return f"claimed, took over from generation {record.lost_generation}{lost}"


def _now(record: JobRecord) -> Scene:
    who = _who(record.generation, record.worker)
    if record.state is State.RUNNING:
        left = record.lease_remaining or 0.0
        if left > 0:
            return Scene(record.now, f"{who}: running, its lease ends in {span(left)} unless it is renewed")
        return Scene(record.now, f"{who}: expired, its lease ended {span(left)} ago; the next claim takes it over")
    if record.state is State.AVAILABLE:
        waits = f"{record.phase}, due in {span((record.run_at - record.now).total_seconds())}"
        return Scene(record.now, "available, due now" if record.phase == State.AVAILABLE else waits)
    if record.state in FINAL and record.state is not State.COMPLETED:
        return Scene(
            record.finished_at or record.now, str(record.state) + (f": {record.reason}" if record.reason else "")
        )
    return Scene(record.finished_at or record.now, f"{who}: completed")
