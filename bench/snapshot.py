"""Traffic while another session holds an old snapshot open, so that no dead row can be cleared away (PostgreSQL).

A producer keeps a few thousand jobs waiting, one worker drains them. `QUIET` seconds after the first job a REPEATABLE
READ transaction is begun, and held until the end of the traffic. What counts is the rate in the last seconds under the
snapshot against that right before it: the median over single seconds of each.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from bench.arenas import Arena
from bench.board import Board, fresh_board
from bench.children import Failed, ask, workers
from bench.entrant import Entrant
from bench.measure import Figures, await_drained, check
from bench.results import OF_START, RATE

QUIET = 10
"""Seconds of traffic before the snapshot, the first half of which warms up."""

MOST = 4_000_000
"""Jobs that a run can hold; its board is a sparse file."""

_PARTS = 6
_BEGIN = 30.0


def held_snapshot(arena: Arena, entrant: Entrant, seconds: int) -> Figures:
    """Measure the rate before a snapshot, and in each part of the `seconds` under it as a share of that."""
    with (
        arena.fresh(entrant) as address,
        fresh_board(MOST) as board,
        workers(entrant, address, entrant.handlers[0], board) as team,
        _in_background(entrant, address, board, QUIET + seconds) as producer,
    ):
        began = _await_first(board, producer)
        time.sleep(max(0.0, began + QUIET - time.monotonic()))
        with psycopg.connect(address) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM pg_class")
            snapshot = time.monotonic()
            sent = producer.result()
        arena.settle(address)  # after so many dead rows some count what is left for minutes
        with arena.left(entrant, address) as left:
            await_drained(board, left, lambda: check(team), jobs=sent)
    return _shares(board.times_of(sent), began, snapshot, seconds)


def _shares(times: Sequence[float], began: float, snapshot: float, seconds: int) -> Figures:
    before = _median_rate(times, began + (snapshot - began) / 2, snapshot)
    step = seconds / _PARTS
    shares = {}
    for part in range(_PARTS):
        first = snapshot + part * step
        shares[f"{OF_START} {round(part * step)}\N{EN DASH}{round((part + 1) * step)} s"] = (
            _median_rate(times, first, first + step) / before
        )
    last = list(shares.values())[-1]
    return {f"at the end, {OF_START}": last, RATE: before} | shares


def _median_rate(times: Sequence[float], first: float, last: float) -> float:
    """Return the median of the jobs in each whole second of a span."""
    seconds = max(1, int(last - first))
    counts = Counter(int(at - first) for at in times if first <= at < first + seconds)
    return float(statistics.median(counts.get(second, 0) for second in range(seconds)))


class _Producer(threading.Thread):
    def __init__(self, entrant: Entrant, address: str, board: Board, seconds: float) -> None:
        super().__init__(daemon=True)
        self._asked: tuple[Any, ...] = (entrant, address, board.path, seconds)
        self._patience = seconds + 60.0
        self._sent: int | Failed = 0

    def run(self) -> None:
        entrant, address, *rest = self._asked
        try:
            self._sent = int(ask("traffic", entrant, address, *rest, patience=self._patience))
        except Failed as error:
            self._sent = error

    def result(self) -> int:
        self.join()
        if isinstance(self._sent, Failed):
            raise self._sent
        return self._sent


@contextmanager
def _in_background(entrant: Entrant, address: str, board: Board, seconds: float) -> Iterator[_Producer]:
    producer = _Producer(entrant, address, board, seconds)
    producer.start()
    yield producer


def _await_first(board: Board, producer: _Producer) -> float:
    until = time.monotonic() + _BEGIN
    while not board.at_work:
        if not producer.is_alive():
            producer.result()
        if time.monotonic() > until:
            raise Failed(f"no job ran within {_BEGIN:g} s")
        producer.join(0.01)  # its end is noticed at once; other processes write the board, and wake nobody
    return time.monotonic()
