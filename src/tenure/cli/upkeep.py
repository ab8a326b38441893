"""`tenure migrate`, `prune` and `recover`: looking after the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tenure.cli.bulk import jobs, told_when_interrupted
from tenure.cli.call import EVERYWHERE, Call, command
from tenure.cli.times import read_duration, span
from tenure.protocol.job import Pruned


@command(*EVERYWHERE)
def migrate(
    call: Call,
    *,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL of what is missing, and apply nothing.")] = False,
) -> None:
    """Bring the store's schema up to date, and name the migrations applied."""
    if sql:
        missing = call.store.pending_migrations()
        for name, text in missing:
            call.screen.emit({"name": name, "sql": text})
            call.screen.say(f"-- {name}", text)
    else:
        applied = call.store.migrate()
        for name in applied:
            call.screen.emit({"name": name})
            call.screen.say(f"applied {name}")
        missing = [(name, "") for name in applied]
    if not missing:
        call.screen.say(f"{'-- ' if sql else ''}{call.store.name} is up to date")


@dataclass(slots=True)
class _Removed:
    jobs: int = 0

    def __str__(self) -> str:
        return f"removed {jobs(self.jobs)}"


@command(*EVERYWHERE)
def prune(
    call: Call,
    *,
    older_than: Annotated[
        float,
        typer.Option(
            "--older-than", parser=read_duration, metavar="DURATION", help="How long ago a job must have ended."
        ),
    ],
) -> None:
    """Remove jobs that ended long ago, in small steps that stand in nobody's way."""
    client = call.client
    removed = _Removed()
    cursor: str | None = None
    with told_when_interrupted(call.screen, removed), call.screen.progress("prune") as advance:
        while True:
            step: Pruned = client.prune(older_than, after=cursor)
            removed.jobs += step.removed
            advance(step.removed)
            cursor = step.cursor
            if cursor is None:
                break
    call.screen.emit(Pruned(removed.jobs, None))
    call.screen.say(f"{removed} that ended more than {span(older_than)} ago")


@command(*EVERYWHERE)
def recover(call: Call) -> None:
    """Raise the generation floor after a restore.

    A restored backup has forgotten the generations that were issued after it was taken, and would issue them again.
    Raising the floor makes every generation from now on higher than any that can have been issued. Tenure does it by
    itself where it notices that the store is another one; run this after a restore that it cannot notice. It is
    harmless at any time.
    """
    admission = call.client.recover()
    call.screen.emit(admission)
    call.screen.say(
        f"the generation floor of {call.store.name} is {admission.floor:,}",
        "every claim from now on gets a generation above it, and so above any that was issued before the restore;"
        " a worker from before it is refused as stale wherever it still writes",
    )
