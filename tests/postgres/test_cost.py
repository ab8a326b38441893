"""What a drained job costs, in counts that no busy machine changes: the guard against a slower worker.

The bounds stand a little above what was counted. Raise one only for something that is worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tenure import App
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.sessions import Lender
from tests.support.draining import JOBS, TurnedWorker, counted_instructions

TURNS, STATEMENTS = 5, 9
"""Of a worker that drains a thousand jobs: each turn is one round trip, and settles and claims 256."""

ENQUEUE, DRAIN = 500, 1600
"""Instructions of Python's for a job; 381 and 1,187 were counted on 3.11; other versions count a little otherwise."""


class Wire:
    """What went over every connection since `reset`, as libpq's own trace tells it."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w+b", buffering=0)

    def reset(self) -> None:
        self.file.seek(0)
        self.file.truncate()

    def count(self, message: str) -> int:
        """Count the messages of one kind that were sent."""
        self.file.seek(0)
        lines = self.file.read().decode(errors="replace").splitlines()
        return sum(line.split("\t")[1:2] == ["F"] and f"\t{message}" in line for line in lines)


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Trace every connection that is opened from now on."""
    traced = Wire(tmp_path / "wire")
    open_one = Lender.open

    def opened(self: Lender, seconds: float) -> Any:
        connection = open_one(self, seconds)
        connection.pgconn.trace(traced.file.fileno())
        return connection

    monkeypatch.setattr(Lender, "open", opened)
    with closing(traced.file):
        yield traced


@pytest.fixture
def turned(store: PostgresStore) -> Iterator[Callable[[int, int], TurnedWorker]]:
    """Make workers that a test turns by hand."""
    made: list[TurnedWorker] = []

    def make(slots: int, times: int) -> TurnedWorker:
        made.append(TurnedWorker(App(store), slots, times))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.mark.parametrize(("slots", "times"), [(256, 16), (32, 16)], ids=["async", "threads"])
def test_a_thousand_jobs_take_few_round_trips(
    wire: Wire, turned: Callable[[int, int], TurnedWorker], slots: int, times: int
) -> None:
    worker = turned(slots, times)
    worker.enqueue()
    wire.reset()
    turns = worker.drain()
    assert worker.ran == 2 * JOBS
    assert turns <= TURNS
    assert 0 < wire.count("Sync") <= TURNS
    assert 0 < wire.count("Execute") <= STATEMENTS


def test_the_count_notices_a_worker_that_claims_only_for_free_slots(
    wire: Wire, turned: Callable[[int, int], TurnedWorker]
) -> None:
    worker = turned(32, 0)
    worker.enqueue()
    wire.reset()
    assert worker.drain() > TURNS
    assert wire.count("Sync") > TURNS


def test_an_enqueue_is_one_round_trip(wire: Wire, turned: Callable[[int, int], TurnedWorker]) -> None:
    worker = turned(256, 16)
    for jobs in (1, JOBS):
        worker.enqueue(jobs)  # which prepares the statement
        wire.reset()
        worker.enqueue(jobs)
        assert (wire.count("Sync"), wire.count("Execute")) == (1, 1)


def test_a_job_takes_few_instructions(turned: Callable[[int, int], TurnedWorker]) -> None:
    worker = turned(256, 16)
    with counted_instructions() as enqueuing:
        worker.enqueue()
    with counted_instructions() as draining:
        worker.drain()
    assert worker.ran == 2 * JOBS
    assert 0 < enqueuing.count / JOBS <= ENQUEUE
    assert 0 < draining.count / JOBS <= DRAIN
