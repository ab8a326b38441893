"""The measurements that every entrant goes through: each on a fresh database, checked, with a few named figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.arenas import Arena, Left
from bench.board import Board, fresh_board
from bench.child import WARM
from bench.children import Failed, ask, workers
from bench.entrant import Entrant, Handler
from bench.results import RATE

Figures = dict[str, float]
Measure = Callable[[Arena, Entrant, int], Figures]

_LOOK = 0.002  # seconds between two looks at the board or the store
_LOOK_FOR_DEATH = 0.5
_GRACE = 2.0  # seconds in which a job that the store calls done may still be running
_PATIENCE = 180.0
_PROBING = 20.0


class JobsLost(Failed):
    """The store says that nothing is left, and yet some jobs never ran."""


def drain(handler: Handler, processes: int = 1) -> Measure:
    """Measure how fast a full queue is emptied, from the first job of the last process until the store has none."""

    def measure(arena: Arena, entrant: Entrant, jobs: int) -> Figures:
        with arena.fresh(entrant) as address, fresh_board(jobs) as board:
            ask("load", entrant, address, jobs)
            arena.settle(address)
            with arena.left(entrant, address) as left, workers(entrant, address, handler, board, processes) as team:

                def check() -> None:
                    for worker in team:
                        worker.check()

                ended = await_drained(board, left, check)
            begun = board.all_at_work
            counted = sum(at >= begun for at in board.times)
            twice = {"jobs run twice": float(board.repeats)} if board.repeats else {}
            return {RATE: counted / (ended - begun)} | twice

    return measure


def await_drained(
    board: Board,
    left: Left,
    check: Callable[[], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Wait until every job ran and the store has none left, and return when that was.

    Raises JobsLost when the store has none left and some never ran, Failed when it takes too long, and what `check`
    raises, which is called now and then.
    """
    deadline, next_check, empty_since = clock() + _PATIENCE, 0.0, None
    while True:
        ran = board.all_ran()
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
                raise JobsLost(f"{board.missing} of {board.jobs} jobs never ran, and the store has none left")
        if now >= deadline:
            raise Failed(f"{board.missing} of {board.jobs} jobs had not run after {_PATIENCE:g} s, {left()} are left")
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


def pickup(arena: Arena, entrant: Entrant, jobs: int) -> Figures:
    """Measure from just before the call of enqueue until the handler runs in another process, on an idle queue."""
    with (
        arena.fresh(entrant) as address,
        fresh_board(jobs + WARM) as board,
        workers(entrant, address, entrant.handlers[0], board) as team,
    ):
        ask("probe", entrant, address, board.path, _PROBING)
        for worker in team:
            worker.check()
        delays = board.delays(after=WARM)
        if not delays:
            raise Failed(f"no more than {WARM} jobs ran in {_PROBING:g} s")
        return {
            "p50, ms": 1000 * statistics.median(delays),
            "p99, ms": 1000 * delays[min(len(delays) - 1, int(len(delays) * 0.99))],
        }
