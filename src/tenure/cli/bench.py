"""`tenure bench`: how fast a store of one's own is."""

from __future__ import annotations

from typing import Annotated

import typer

from tenure.cli.call import Call, command


@command("store", "json", "traceback")
def bench(
    call: Call,
    *,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Jobs that each round enqueues and drains.")] = 5000,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="Rounds; the median of them is told.")] = 5,
    pickups: Annotated[
        int, typer.Option("--pickups", metavar="N", help="Jobs that another process sends to an idle worker.")
    ] = 100,
) -> None:
    """Measure enqueue, drain and pick-up on this store, with jobs that do nothing.

    Nothing else should run on the machine meanwhile. The jobs stay in the store, completed, in queues called bench-…,
    until they are pruned like all others; no other job is touched.
    """
    from tenure.testing.measure import measure

    call.client.workers()  # refuses a store that is not there, or not migrated
    with call.screen.progress("measuring", total=2 * rounds + 1) as advance:
        figures = measure(
            call.app.address or "", jobs=jobs, rounds=rounds, pickups=pickups, progress=lambda _what: advance(1)
        )
    call.screen.emit(figures)
    rows = (
        ("enqueue, one job a call", f"{figures.enqueue_one:,.0f} jobs/s"),
        ("enqueue, 1,000 jobs a call", f"{figures.enqueue_many:,.0f} jobs/s"),
        ("drain, one worker process, async handler", f"{figures.drain:,.0f} jobs/s"),
        ("pick-up by an idle worker, median", f"{figures.pickup_p50 * 1000:.2f} ms"),
        ("pick-up by an idle worker, 99 of 100 within", f"{figures.pickup_p99 * 1000:.2f} ms"),
    )
    call.screen.table(("QUESTION", "ANSWER"), rows, empty="")
