"""The measurements that every entrant goes through: each on a fresh database, checked, with a few named figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench.arenas import Arena, Left
from bench.board import Board, fresh_board
from bench.children import Failed, Worker, ask, workers
from bench.entrant import Entrant, Handler
from bench.results import RATE

Figures = dict[str, float]
Measure = Callable[[Arena, Entrant, int], Figures]

_LOOK = 0.002  # seconds between two looks at the board or the store
_LOOK_FOR_DEATH = 0.5
_GRACE = 2.0  # seconds in which a job that the store calls done may still be running
_PATIENCE = 180.0


class JobsLost(Failed):
    """The store says that nothing is left, and yet some jobs never ran."""


def drain(handler: Handler | None = None, processes: int = 1) -> Measure:
    """Measure how fast a full queue is emptied, by handlers of a kind, or of the kind that an entrant names first."""

    def measure(arena: Arena, entrant: Entrant, jobs: int) -> Figures:
        kind = handler or entrant.handlers[0]
        with arena.fresh(entrant) as address, fresh_board(jobs) as board:
            ask("load", entrant, address, jobs)
            arena.settle(address)
            with workers(entrant, address, kind, board, processes) as team:
                rate = drained_rate(arena, entrant, address, board, team)
            return {RATE: rate} | ({"jobs run twice": float(board.repeats)} if board.repeats else {})

    return measure


def drained_rate(arena: Arena, entrant: Entrant, address: str, board: Board, team: Sequence[Worker]) -> float:
    """Return the jobs a second from the first job of the last process until the store has none."""
    with arena.left(entrant, address) as left:
        ended = await_drained(board, left, lambda: check(team))
    begun = board.all_at_work
    return sum(at >= begun for at in board.times) / (ended - begun)


def check(team: Sequence[Worker]) -> None:
    """Raise Failed if one of the workers has ended."""
    for worker in team:
        worker.check()


def await_drained(
    board: Board,
    left: Left,
    check: Callable[[], None],
    *,
    jobs: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Wait until every job ran, or the first `jobs`, and the store has none left, and return when that was.

    Raises JobsLost when the store has none left and some never ran, Failed when it takes too long, and what `check`
    raises, which is called now and then.
    """
    deadline, next_check, empty_since = clock() + _PATIENCE, 0.0, None
    jobs = board.jobs if jobs is None else jobs
    while True:
        ran = board.ran_in_a_row() >= jobs
        if ran and left() == 0:
            return clock()
        now = clock()
        if now >= next_check:
            check()
            next_check = now + _LOOK_FOR_DEATH
            if ran or left() > 0:
                empty_since = None
            elif empty_since is None:
                empty_since = now
            elif now >= empty_since + _GRACE:
                raise JobsLost(f"{board.missing(jobs)} of {jobs} jobs never ran, and the store has none left")
        if now >= deadline:
            raise Failed(f"{board.missing(jobs)} of {jobs} jobs had not run after {_PATIENCE:g} s, {left()} are left")
        sleep(_LOOK)


def enqueue(how: str) -> Measure:
    """Measure how fast jobs are stored, by one producer: `singles` or `bulk`."""

    def measure(arena: Arena, entrant: Entrant, jobs: int) -> Figures:
        with arena.fresh(entrant) as address:
            seconds = ask(how, entrant, address, jobs)
            with arena.left(entrant, address) as left:
                stored = left()
            if stored < jobs:
                raise JobsLost(f"{stored} jobs are in the store where at least {jobs} were enqueued")
            return {RATE: jobs / seconds}

    return measure
