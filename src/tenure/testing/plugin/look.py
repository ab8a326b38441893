"""What was enqueued: found, compared with what a test expects, and told in words when it was not."""

from __future__ import annotations

import inspect
from typing import Any

from tenure.client import Client
from tenure.errors import BadArguments, Misuse
from tenure.protocol.job import Filter, JobRecord
from tenure.task import Task

_PAGE = 1000


def jobs(client: Client, task: Task[..., ..., Any] | None) -> list[JobRecord]:
    """List the jobs of a task, or of all, oldest first."""
    which = Filter(task=None if task is None else task.name)
    found: list[JobRecord] = []
    last: str | None = None
    while page := client.find(which, limit=_PAGE, after=last, newest_first=False):
        found += [client.get(job.id) for job in page if job.task is not None]
        last = page[-1].id
    return found


def enqueued(
    found: list[JobRecord], task: Task[..., ..., Any], queue: str | None, expected: dict[str, Any]
) -> JobRecord:
    """Return the first job that is in `queue` and has the expected arguments; raise AssertionError if there is none."""
    unknown = sorted(set(expected) - set(_parameters(task)))
    if unknown:
        raise Misuse(f"task {task.name} has no argument {', '.join(unknown)}; there are {', '.join(_parameters(task))}")
    for job in found:
        if queue in {None, job.queue} and _fits(job, task, expected):
            return job
    asked = _call(task, expected, frozenset()) + ("" if queue is None else f" in queue {queue}")
    others = [f"  in queue {job.queue}, {job.phase}: {_shown(job, task)}" for job in found]
    count = "is 1 job" if len(found) == 1 else f"are {len(found)} jobs"
    there = "\n".join([f"; there {count} of it:", *others]) if found else ", nor any other job of it"
    raise AssertionError(f"{asked} was not enqueued{there}")


def _parameters(task: Task[..., ..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a task that are arguments, by name."""
    known = dict(inspect.signature(task.function).parameters)
    if task.takes_job:
        del known[next(iter(known))]
    return known


def _arguments(job: JobRecord, task: Task[..., ..., Any]) -> dict[str, Any]:
    """Return the arguments that a job will be run with."""
    given = task.codec.decode(job.arguments)
    known = _parameters(task)
    defaults = {name: one.default for name, one in known.items() if one.default is not inspect.Parameter.empty}
    return {name: given.get(name, defaults.get(name)) for name in known}


def _fits(job: JobRecord, task: Task[..., ..., Any], expected: dict[str, Any]) -> bool:
    try:
        given = _arguments(job, task)
    except BadArguments:
        return False
    return all(given[name] == value for name, value in expected.items())


def _shown(job: JobRecord, task: Task[..., ..., Any]) -> str:
    try:
        return _call(task, _arguments(job, task), frozenset(job.secret))
    except BadArguments as error:
        return str(error)


def _call(task: Task[..., ..., Any], arguments: dict[str, Any], secret: frozenset[str]) -> str:
    given = (f"{name}={'(secret)' if name in secret else repr(value)}" for name, value in arguments.items())
    return f"{task.name}({', '.join(given)})"
