"""`tenure jobs list` and `tenure jobs show`: what is there, and one job's life."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from tenure.cli.call import EVERYWHERE, Call, command
from tenure.cli.filters import InPhase, InState, Queue, Task, told, which_jobs
from tenure.cli.find import Phase, page_of
from tenure.cli.panel import job_panel, life_table, out_of
from tenure.cli.screen import phase_text
from tenure.cli.story import life
from tenure.cli.times import relative
from tenure.cli.views import listed, whole
from tenure.protocol.job import Filter, JobRecord
from tenure.protocol.lifecycle import FINAL, State
from tenure.protocol.names import check_name


@command(*EVERYWHERE)
def list_jobs(
    call: Call,
    *,
    queue: Queue = None,
    task: Task = None,
    state: InState = None,
    phase: InPhase = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many jobs to show.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Go on after this job.")] = None,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="In rising order of ids.")] = False,
) -> None:
    """List jobs, newest first, without their arguments and results.

    FAILED tells how many attempts of a job have failed, and how many it has at most.
    """
    which = which_jobs(queue, task, state, phase)
    records, more = page_of(call.onlooker, which, phase, limit=limit, after=after, newest_first=not oldest_first)
    for record in records:
        call.screen.emit(listed(record))
    call.screen.table(
        ("ID", "TASK", "QUEUE", "PHASE", "FAILED", "WHEN"),
        map(_row, records),
        empty=_none(call, which, phase, after),
    )
    if more is not None:
        call.screen.note(f"there may be more: go on with --after {more!r}", {"more_after": more})


@command(*EVERYWHERE)
def show_job(
    call: Call,
    *,
    job: Annotated[str, typer.Argument(metavar="ID", help="The job's id; -- before one that begins with -.")],
    reveal: Annotated[
        bool,
        typer.Option(
            "--reveal",
            help="Show arguments, result, progress, error messages and tracebacks; secret arguments stay hidden.",
        ),
    ] = False,
) -> None:
    """Tell one job's life, generation by generation."""
    record = call.onlooker.get(check_name("a job's id", job))
    history = call.onlooker.history(job)
    shown = whole(record, history, reveal=reveal)
    call.screen.emit(shown)
    call.screen.say(job_panel(record, shown, reveal=reveal), life_table(life(record, history), record.now))
    if reveal and record.failure is not None:
        call.screen.say("", shown["failure"].traceback or shown["failure"].message)


def _none(call: Call, which: Filter, phase: Phase | None, after: str | None) -> str:
    said = [told(which, phase)] if told(which, phase) else []
    said += [f"state {which.state}"] if which.state is not None and phase is None else []
    said += [f"after {after}"] if after is not None else []
    return f"no jobs in {call.store.name}" + (f" ({', '.join(said)})" if said else "")


def _row(record: JobRecord) -> tuple[object, ...]:
    return (
        record.id,
        record.task or "(a bare lease)",
        record.queue or "-",
        phase_text(record.phase),
        out_of(record.attempts, record.max_attempts),
        relative(_when(record), record.now),
    )


def _when(record: JobRecord) -> datetime:
    if record.state in FINAL:
        return record.finished_at or record.run_at
    return record.claimed_at or record.run_at if record.state is State.RUNNING else record.run_at
