"""Measurements of how long a job waits: on an idle queue, under a steady load, and behind a worker that was killed."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

from bench.arenas import Arena
from bench.board import Board, fresh_board
from bench.child import WARM
from bench.children import Failed, Worker, ask, workers
from bench.entrant import Entrant
from bench.measure import Figures, await_drained, check
from bench.results import ARRIVALS

STREAM = 3.0
"""Seconds that a steady stream lasts; its first quarter warms up."""

_PROBING = 20.0
_LOOK = 0.002
_LOOK_FOR_TAKEOVER = 0.02  # dozens look at the same time
_SETTING_UP = threading.Semaphore(2)
_BEGIN = 60.0  # seconds that a first job may wait for a worker which is just starting


def pickup(arena: Arena, entrant: Entrant, jobs: int) -> Figures:
    """Measure from just before the call of enqueue until the handler runs in another process, on an idle queue."""
    with (
        arena.fresh(entrant) as address,
        fresh_board(jobs + WARM) as board,
        workers(entrant, address, entrant.handlers[0], board) as team,
    ):
        ask("probe", entrant, address, board.path, _PROBING)
        check(team)
        delays = board.delays(after=WARM)
        if not delays:
            raise Failed(f"no more than {WARM} jobs ran in {_PROBING:g} s")
        return _percentiles(delays)


def under_load(arena: Arena, entrant: Entrant, arrivals: int) -> Figures:
    """Measure the same while `arrivals` jobs a second arrive steadily, and tell how many a second the producer got in.

    Every job of the stream must have run and been acknowledged in the end.
    """
    jobs = max(WARM, round(arrivals * STREAM))
    with (
        arena.fresh(entrant) as address,
        fresh_board(jobs) as board,
        workers(entrant, address, entrant.handlers[0], board) as team,
    ):
        rate = ask("stream", entrant, address, board.path, STREAM)
        with arena.left(entrant, address) as left:
            await_drained(board, left, lambda: check(team))
        return _percentiles(board.delays(after=jobs // 4)) | {ARRIVALS: rate}


class NotTakenOver(Failed):
    """Nobody has taken the job over while somebody looked."""


def takeover(arena: Arena, entrant: Entrant, seconds: int) -> Figures:
    """Kill the worker that has just begun a job, and measure until the other one begins it; wait so long at most.

    Many may be measured at the same time, of whom few set up at once, so that waiting is not disturbed.
    """
    with ExitStack() as stack:
        with _SETTING_UP:
            address = stack.enter_context(arena.fresh(entrant))
            board = stack.enter_context(fresh_board(1, holds=True))
            team = stack.enter_context(workers(entrant, address, entrant.handlers[0], board, 2))
            with ThreadPoolExecutor(1) as pool:
                killed = _kill_holder(board, team, loading=pool.submit(ask, "load", entrant, address, 1))
        until = killed + seconds
        while not board.repeats:
            if time.monotonic() > until:
                raise NotTakenOver(f"nobody had its job {seconds} s after the kill")
            time.sleep(_LOOK_FOR_TAKEOVER)
        return {"seconds": board.times[0] - killed}


def _kill_holder(board: Board, team: Sequence[Worker], *, loading: Future[None]) -> float:
    """Kill whoever begins the job that is `loading`, as soon as it has begun; return when that was."""
    until = time.monotonic() + _BEGIN
    while not board.at_work:
        check(team)
        if loading.done():
            loading.result()
        if time.monotonic() > until:
            raise Failed(f"nobody began the job within {_BEGIN:g} s")
        time.sleep(_LOOK)
    killed = time.monotonic()
    team[board.at_work[0]].end()
    return killed


def _percentiles(delays: Sequence[float]) -> Figures:
    """Return median and 99th percentile of sorted seconds, in milliseconds."""
    return {
        "p50, ms": 1000 * statistics.median(delays),
        "p99, ms": 1000 * delays[min(len(delays) - 1, int(len(delays) * 0.99))],
    }
