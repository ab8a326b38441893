"""Does Tenure slow down as its table grows, and does its bare SQL: beside many finished jobs, or many not yet due.

The rows are made by one statement, which copies what an ordinary job looks like; then the statistics are brought up to
date. Every size is a database of its own, made once and copied for each round; in each round chance orders the sizes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bench.arenas import Arena
from bench.board import fresh_board
from bench.children import ask, workers
from bench.entrant import Entrant, Store
from bench.measure import JobsLost, drained_rate
from bench.results import OF_EMPTY, RATE


@dataclass(frozen=True, slots=True)
class Filled:
    """What a table holds before the measurement: `rows` jobs that are finished, or due in a day."""

    rows: int
    state: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.rows:,} {self.state}"


EMPTY = Filled(0, "finished")
SIZES = (EMPTY, Filled(100_000, "finished"), Filled(1_000_000, "finished"), Filled(1_000_000, "pending"))
JOBS = 30_000

_ORDINARY = "id, task, queue, run_at, lease_ms, arguments, enqueued_at, state"
_ENDED = "finished_at, generation, ended, result, ended_at, claimed_at"
_BOUND: dict[Store, dict[str, str]] = {
    "postgresql": {
        "numbers": "SELECT i FROM generate_series(1, $1::bigint) AS i",
        "id": "'old-' || lpad(i::text, 10, '0')",
        "before": "now() - interval '1 hour'",
        "later": "now() + interval '1 day'",
    },
    "sqlite": {
        "numbers": "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n",
        "id": "'old-' || printf('%010d', i)",
        "before": "unixepoch('now', '-1 hour') * 1000",
        "later": "unixepoch('now', '+1 day') * 1000",
    },
}
_FILL = {
    "finished": f"INSERT INTO tenure_jobs ({_ORDINARY}, {_ENDED}) SELECT {{id}}, 'noop', 'default', {{before}}, 30000,"  # noqa: S608
    " '{{\"number\":' || i || '}}', {before}, 'completed', {before}, 1, 'complete', 'null', {before}, {before}"
    " FROM ({numbers}) AS numbers",
    "pending": f"INSERT INTO tenure_jobs ({_ORDINARY}) SELECT {{id}}, 'noop', 'default', {{later}}, 30000,"  # noqa: S608
    " '{{\"number\":' || i || '}}', {before}, 'available' FROM ({numbers}) AS numbers",
}


def growth(arena: Arena, entrant: Entrant, part: int) -> dict[str, float]:
    """Enqueue and drain beside every size, cut to one in `part`, and tell the ratios to the empty table."""
    jobs, rates = max(1000, JOBS // part), {}
    for size in random.sample(SIZES, len(SIZES)):
        rates[size] = _enqueue_and_drain(arena, entrant, Filled(size.rows // part, size.state), jobs)
    (_, of_empty), (_, drained) = rates[EMPTY].items()
    figures = {RATE: drained}
    for size in SIZES[1:]:
        enqueued, emptied = rates[size].values()
        figures[f"drain, {size}, {OF_EMPTY}"] = emptied / drained
        figures[f"enqueue, {size}, {OF_EMPTY}"] = enqueued / of_empty
    return figures


def _enqueue_and_drain(arena: Arena, entrant: Entrant, size: Filled, jobs: int) -> dict[str, float]:
    with arena.filled(entrant, str(size), _FILL[size.state].format(**_BOUND[entrant.store]), size.rows) as address:
        enqueued = jobs / ask("bulk", entrant, address, jobs)
        with arena.left(entrant, address) as left:
            stored = left()
        if stored < jobs:
            raise JobsLost(f"{stored} jobs are in the store where at least {jobs} were enqueued")
        arena.settle(address)
        with fresh_board(stored) as board, workers(entrant, address, "async", board) as team:
            return {"enqueue": enqueued, "drain": drained_rate(arena, entrant, address, board, team)}
