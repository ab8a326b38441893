"""`tenure queues` and `tenure workers`: how much waits, and who works."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tenure.cli.call import EVERYWHERE, Call, command
from tenure.cli.exits import Exit
from tenure.cli.times import both, read_duration, span
from tenure.protocol.job import WorkerRecord
from tenure.protocol.names import check_name


@command(*EVERYWHERE)
def queues(call: Call) -> None:
    """Count the jobs of each queue: due, scheduled, running, and expired (left behind by a lost worker)."""
    counted = call.onlooker.queues()
    for queue in counted:
        call.screen.emit(queue)
    rows = [
        (count.queue or "(bare leases)", count.due, count.scheduled, count.running, count.expired) for count in counted
    ]
    columns = ("QUEUE", "DUE", "SCHEDULED", "RUNNING", "EXPIRED")
    call.screen.table(columns, rows, empty=f"no job waits or runs in {call.store.name}")


@command(*EVERYWHERE)
def workers(
    call: Call,
    *,
    alive_within: Annotated[
        float | None,
        typer.Option(
            "--alive-within",
            parser=read_duration,
            metavar="DURATION",
            help="Only workers that reported within this time; exit code 1 if there are none. A worker reports every"
            " 10 s from its claim loop, so 30s is a fit probe.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Only workers of this name.")] = None,
) -> Exit | None:
    """List the workers; with --alive-within, a health probe."""
    if name is not None:
        check_name("a worker's name", name)
    found = [worker for worker in call.onlooker.workers() if _is_meant(worker, name, alive_within)]
    for worker in found:
        call.screen.emit(worker)
    who = "no worker" if name is None else f"no worker named {name}"
    if alive_within is not None and not found:
        call.screen.complain("Unhealthy", f"{who} has reported within {span(alive_within)}", Exit.REFUSED)
        return Exit.REFUSED
    columns = ("NAME", "HOST", "PID", "QUEUES", "SLOTS", "HELD", "STARTED", "REPORTED")
    call.screen.table(columns, map(_row, found), empty=f"{who} has reported to {call.store.name}")
    return None


def _is_meant(worker: WorkerRecord, name: str | None, within: float | None) -> bool:
    return (name is None or worker.name == name) and (within is None or worker.seen_ago <= within)


def _row(worker: WorkerRecord) -> tuple[object, ...]:
    return (
        worker.name,
        worker.host,
        worker.pid,
        ", ".join(worker.queues),
        worker.slots,
        worker.held,
        both(worker.started_at, datetime.now(UTC)),
        f"{span(worker.seen_ago)} ago",
    )
