"""What a drained job costs, in counts that no busy machine changes: the guard against a slower worker.

The bounds stand a little above what was counted. Raise one only for something that is worth it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure import App
from tenure.store.sqlite import connect
from tenure.store.sqlite import store as stores
from tests.support.draining import JOBS, TurnedWorker, counted_instructions

TURNS = 5
"""Of a worker that drains a thousand jobs: each turn is one transaction, and settles and claims 256."""

ENQUEUE, DRAIN, ALONE = 320, 1600, 1700
"""Instructions of Python's for a job: one of many that are enqueued, one that is drained, one that is enqueued alone.

234, 1,189 and 1,311 were counted on 3.11; other versions count a little otherwise.
"""


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect what every connection carries out that is opened from now on; triggers say their statement again."""
    statements: list[str] = []

    def opened(path: Path, patience: float = connect.OPENING) -> sqlite3.Connection:
        connection = connect.open_connection(path, patience)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(stores, "open_connection", opened)
    return statements


@pytest.fixture
def turned(tmp_path: Path) -> Iterator[Callable[[int, int], TurnedWorker]]:
    """Make workers that a test turns by hand."""
    made: list[TurnedWorker] = []
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.store.migrate()

    def make(slots: int, times: int) -> TurnedWorker:
        made.append(TurnedWorker(app, slots, times))
        return made[-1]

    yield make
    for worker in made:
        worker.close()
    app.close()


def commits(said: list[str]) -> int:
    return sum(statement.startswith("COMMIT") for statement in said)


@pytest.mark.parametrize(("slots", "times"), [(256, 16), (32, 16)], ids=["async", "threads"])
def test_a_thousand_jobs_take_few_transactions(
    said: list[str], turned: Callable[[int, int], TurnedWorker], slots: int, times: int
) -> None:
    worker = turned(slots, times)
    worker.enqueue()
    said.clear()
    turns = worker.drain()
    assert worker.ran == 2 * JOBS
    assert turns <= TURNS
    assert 0 < commits(said) <= TURNS


def test_the_count_notices_a_worker_that_claims_only_for_free_slots(
    said: list[str], turned: Callable[[int, int], TurnedWorker]
) -> None:
    worker = turned(32, 0)
    worker.enqueue()
    said.clear()
    assert worker.drain() > TURNS
    assert commits(said) > TURNS


def test_an_enqueue_is_one_transaction(said: list[str], turned: Callable[[int, int], TurnedWorker]) -> None:
    worker = turned(256, 16)
    for jobs in (1, JOBS):
        said.clear()
        worker.enqueue(jobs)
        assert commits(said) == 1


def test_a_job_takes_few_instructions(turned: Callable[[int, int], TurnedWorker]) -> None:
    worker = turned(256, 16)
    with counted_instructions() as enqueuing:
        worker.enqueue()
    with counted_instructions() as draining:
        worker.drain()
    assert worker.ran == 2 * JOBS
    assert 0 < enqueuing.count / JOBS <= ENQUEUE
    assert 0 < draining.count / JOBS <= DRAIN


def test_a_lone_job_takes_few_instructions(turned: Callable[[int, int], TurnedWorker]) -> None:
    noop = turned(256, 16).noop
    noop.enqueue(number=0)  # the first one in a process makes the form of its statement
    with counted_instructions() as enqueuing:
        noop.enqueue(number=1)
    assert 0 < enqueuing.count <= ALONE
