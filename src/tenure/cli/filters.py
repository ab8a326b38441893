"""The options with which a person says which jobs are meant."""

from __future__ import annotations

from typing import Annotated

import typer

from tenure.cli.find import Phase
from tenure.errors import Misuse
from tenure.protocol.job import Filter
from tenure.protocol.lifecycle import State
from tenure.protocol.names import check_name

Queue = Annotated[str | None, typer.Option("--queue", metavar="NAME", help="Only jobs of this queue.")]
Task = Annotated[str | None, typer.Option("--task", metavar="NAME", help="Only jobs of this task.")]
InState = Annotated[
    State | None, typer.Option("--state", metavar="STATE", help=f"Only jobs stored in this state: {', '.join(State)}.")
]
InPhase = Annotated[
    Phase | None,
    typer.Option(
        "--phase",
        metavar="PHASE",
        help=f"Only jobs in this phase, which is their state with what time says of it: {', '.join(Phase)}.",
    ),
]


def which_jobs(queue: str | None, task: str | None, state: State | None, phase: Phase | None) -> Filter:
    """Put a filter together; raises Misuse for a name that cannot exist and for a phase of another state."""
    if queue is not None:
        check_name("a queue's name", queue)
    if task is not None:
        check_name("a task's name", task)
    if phase is not None and state not in {None, phase.state}:
        raise Misuse(f"no job is both {state} and {phase}: leave --state out, {phase} jobs are {phase.state}")
    return Filter(queue=queue, task=task, state=state if phase is None else phase.state)


def told(which: Filter, phase: Phase | None) -> str:
    """Tell a filter in words; nothing where there is none."""
    parts = [f"{name} {value}" for name, value in (("queue", which.queue), ("task", which.task)) if value is not None]
    return ", ".join([*parts, *([f"phase {phase}"] if phase is not None else [])])
