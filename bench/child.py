"""A child process of a measurement: it prepares, enqueues, probes or works for one entrant, and says how that went.

python -m bench.child ROLE ENTRANT ADDRESS [ARGUMENTS ...]
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeVar, cast

from bench.board import Board, work_on
from bench.entrant import Entrant, Handler

T = TypeVar("T")

CALL = 1000
"""Jobs in one call of a bulk enqueue."""

WARM = 20
"""Jobs sent before the clock of an enqueue starts, and left out of a probe: plans and connections are made by then."""

CLUMP = 0.01
"""Seconds of a steady stream that one call of a bulk enqueue carries."""

AHEAD = 3_000
"""Jobs that wait at most while traffic goes on."""

_PAUSES = (0.010, 0.050)  # seconds between two probes, by chance, so that they meet no beat of a poller
_LOOK = 0.0005


class Stopwatch:
    """Takes the time in which items are handed out, those before `warm` left out."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def over(self, items: Iterable[T], *, warm: int) -> Iterator[T]:
        """Hand out items; the clock stops when one more is asked for than there are."""
        for place, item in enumerate(items):
            if place == warm:
                self.began = time.monotonic()
            yield item
        self.ended = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the time taken."""
        return self.ended - self.began


def prepare(entrant: Entrant, address: str) -> None:
    """Make the schema."""
    entrant.prepare(address)


def singles(entrant: Entrant, address: str, count: str) -> None:
    """Enqueue one by one and print the seconds that `count` jobs took."""
    watch = Stopwatch()
    taken = entrant.timed("singles", address, int(count))
    if taken is None:
        entrant.singles(address, watch.over(range(int(count) + WARM), warm=WARM))
    _tell(watch.seconds if taken is None else taken)


def bulk(entrant: Entrant, address: str, count: str) -> None:
    """Enqueue `CALL` jobs a call and print the seconds that `count` jobs took, after one call to warm up."""
    jobs, watch = int(count) + CALL, Stopwatch()
    taken = entrant.timed("bulk", address, int(count))
    batches = [range(first, min(first + CALL, jobs)) for first in range(0, jobs, CALL)]
    if taken is None:
        entrant.bulk(address, watch.over(batches, warm=1))
    _tell(watch.seconds if taken is None else taken)


def load(entrant: Entrant, address: str, count: str) -> None:
    """Enqueue jobs without a clock, as many a call as the entrant can."""
    jobs = int(count)
    if entrant.in_bulk:
        entrant.bulk(address, [range(first, min(first + CALL, jobs)) for first in range(0, jobs, CALL)])
    else:
        entrant.singles(address, range(jobs))


def probe(entrant: Entrant, address: str, board: str, seconds: str) -> None:
    """Enqueue one job after the other, each when the one before has run, for at most so many seconds."""
    entrant.singles(address, _paced(Board(Path(board)), float(seconds)))


def _paced(board: Board, seconds: float) -> Iterator[int]:
    until = time.monotonic() + seconds
    for number in range(board.jobs):
        time.sleep(random.uniform(*_PAUSES))
        board.sent(number)
        yield number
        while not board.ran(number) and time.monotonic() < until:
            time.sleep(_LOOK)
        if time.monotonic() >= until:
            return


def stream(entrant: Entrant, address: str, board: str, seconds: str) -> None:
    """Enqueue the jobs of a board evenly within so many seconds, and print how many a second it became.

    Where a call may carry many jobs, one carries what has come up within `CLUMP` seconds.
    """
    on, watch = Board(Path(board)), Stopwatch()
    clump = max(1, round(on.jobs / float(seconds) * CLUMP)) if entrant.in_bulk else 1
    clumps = [range(first, min(first + clump, on.jobs)) for first in range(0, on.jobs, clump)]
    evenly = watch.over(_evenly(on, clumps, float(seconds) / len(clumps)), warm=0)
    if clump > 1:
        entrant.bulk(address, evenly)
    else:
        entrant.singles(address, (number for numbers in evenly for number in numbers))
    _tell(on.jobs / watch.seconds)


def _evenly(board: Board, clumps: Sequence[Sequence[int]], pause: float) -> Iterator[Sequence[int]]:
    due = time.monotonic()
    for numbers in clumps:
        time.sleep(max(0.0, due - time.monotonic()))
        due += pause
        for number in numbers:
            board.sent(number)
        yield numbers
    time.sleep(max(0.0, due - time.monotonic()))  # so that the last of them has its time as well


def traffic(entrant: Entrant, address: str, board: str, seconds: str) -> None:
    """Keep at most `AHEAD` jobs waiting for so many seconds, and print how many were sent."""
    on, sent = Board(Path(board)), [0]

    def batches() -> Iterator[Sequence[int]]:
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until and sent[0] + CALL <= on.jobs:
            if sent[0] - on.ran_in_a_row() + CALL > AHEAD:
                time.sleep(_LOOK)
                continue
            numbers = range(sent[0], sent[0] + CALL)
            sent[0] += CALL
            yield numbers

    entrant.bulk(address, batches())
    _tell(sent[0])


def work(entrant: Entrant, address: str, handler: str, board: str, place: str) -> None:
    """Say that all is imported, wait for the word, and work until ended from outside."""
    work_on(Path(board), int(place))
    import_module(entrant.library)
    _tell("ready")
    sys.stdin.readline()
    entrant.work(address, cast("Handler", handler))


def alone(entrant: Entrant, address: str, what: str, size: str) -> None:
    """Measure Tenure by itself and print the figures."""
    from bench.alone import ASKED
    from bench.own import Own

    _tell(ASKED[what](cast("Own", entrant).store_address(address), int(size)))


def _tell(what: object) -> None:
    print(json.dumps(what), flush=True)


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role for role in (prepare, singles, bulk, load, probe, stream, traffic, work, alone)
}


def find(key: str) -> Entrant:
    """Return the entrant that calls itself `key`."""
    module, _, name = key.partition(":")
    return cast("Entrant", getattr(import_module(module), name)())


def main() -> None:
    """Play the role that the command line names."""
    role, key, address, *rest = sys.argv[1:]
    ROLES[role](find(key), address, *rest)


if __name__ == "__main__":
    main()
