"""Calls of the hot verbs: which named statement carries them, and how their values are laid out.

What is the same in every row goes once, as a parameter: a queue stores and completes many jobs of one kind at a time,
and to write and read a column of a thousand equal values costs as much as one of different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msgspec.structs import astuple

from tenure.protocol.job import Claimer, Ending, NewJob, Wanted
from tenure.protocol.lifecycle import Verb, ending
from tenure.store import rows
from tenure.store.contract import MAX_GENERATION
from tenure.store.statements import Call

ENDING = ("job", "generation", "verb", "target", "counts", "delay_ms", "result", "reason", "failure")
COMPLETED = ("job", "generation", "result")
_COMPLETION = {"verb": str(Verb.COMPLETE), "target": str(ending(Verb.COMPLETE).target)}


def enqueue(jobs: Sequence[NewJob]) -> Call:
    """Store new jobs, at least one, in the one order in which everybody does (B34)."""
    if len(jobs) == 1:
        [job] = jobs
        parameters = rows.enqueue_alike(job)
        parameters.update(zip(rows.ENQUEUE_EACH, rows.enqueue_each(job), strict=True))
        return Call("enqueue_one", parameters)
    if _are_alike(jobs):
        alike = rows.enqueue_alike(jobs[0])
        return Call("enqueue_alike", alike, rows.ENQUEUE_EACH, sorted([rows.enqueue_each(job) for job in jobs]))
    in_order = sorted(jobs, key=_key_and_id)
    laid_out = [(*rows.enqueue_each(job), *rows.enqueue_alike(job).values()) for job in in_order]
    return Call("enqueue", {}, rows.ENQUEUE_COLUMNS, laid_out)


def _key_and_id(job: NewJob) -> tuple[str, str]:
    return job.unique_key or "", job.id


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    columns = dict(zip(NewJob.__struct_fields__, zip(*map(astuple, jobs), strict=True), strict=True))
    return all(
        column.count(column[0]) == len(jobs) for name, column in columns.items() if name not in rows.ENQUEUE_EACH
    )


def claim(claimer: Claimer, wanted: Wanted) -> Call:
    """Take due and abandoned jobs."""
    return Call(
        "claim",
        {
            "owner": claimer.owner,
            "worker": claimer.worker,
            "queues": wanted.queues,
            "tasks": wanted.tasks,
            "limit": wanted.limit,
            "takeovers": int(wanted.takeovers),
            **rows.heads(wanted.heads),
            "lease_ms": None,
            "max_generation": MAX_GENERATION,
        },
    )


def settle(owner: str, endings: Sequence[Ending]) -> Call:
    """End runs; at least one."""
    if any(end.verb is not Verb.COMPLETE for end in endings):
        return _settle(owner, endings)
    if len(endings) > 1:
        done = [(end.token.job, end.token.generation, end.result) for end in _in_order(endings)]
        return Call("complete_all", {"owner": owner, **_COMPLETION}, COMPLETED, done)
    [end] = endings
    token = {"job": end.token.job, "generation": end.token.generation, "owner": owner}
    return Call("complete", {**token, **_COMPLETION, "result": end.result})


def _settle(owner: str, endings: Sequence[Ending]) -> Call:
    laid_out = [
        (
            end.token.job,
            end.token.generation,
            *_how(end.verb),
            0 if end.verb is Verb.RELEASE else rows.duration_ms(end.delay),
            end.result if end.verb is Verb.COMPLETE else None,
            end.reason,
            rows.write_failure(end.failure),
        )
        for end in _in_order(endings)
    ]
    return Call("settle", {"owner": owner}, ENDING, laid_out)


def _in_order(endings: Sequence[Ending]) -> list[Ending]:
    """Sort endings in the one order in which everybody locks jobs (B34)."""
    return sorted(endings, key=lambda end: end.token.job)


@cache
def _how(verb: Verb) -> tuple[str, str, int]:
    """Lay out the columns of an ending that its verb decides; a plain number, as both databases bind it quickest."""
    move = ending(verb)
    return str(verb), str(move.target), int(move.counts is not None)
