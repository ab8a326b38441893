"""What `tenure.testing.measure` measures: that every job ran is checked here, how fast is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure import App
from tenure.errors import BadSettings, Unavailable
from tenure.protocol.job import Filter
from tenure.protocol.lifecycle import State
from tenure.testing import measure as module
from tenure.testing.measure import SINGLES, measure


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Make somebody's app on a migrated store, with a job that waits."""
    made = App(f"sqlite:///{tmp_path / 'shop.db'}")
    with closing(made):
        made.store.migrate()

        @made.task(queue="mail")
        def letter() -> None:
            """Wait for a worker of its own."""

        letter.enqueue()
        yield made


def test_every_job_of_a_measurement_is_done_and_no_other_is_touched(app: App) -> None:
    said: list[str] = []
    assert app.address is not None
    figures = measure(app.address, jobs=40, rounds=2, pickups=3, progress=said.append)
    assert (figures.jobs, figures.rounds) == (40, 2)
    assert min(figures.enqueue_one, figures.enqueue_many, figures.drain) > 0
    assert 0 < figures.pickup_p50 <= figures.pickup_p99
    assert said == [
        "round 1 of 2: enqueue",
        "round 1 of 2: drain",
        "round 2 of 2: enqueue",
        "round 2 of 2: drain",
        "pick-up",
    ]
    jobs = app.client.find(Filter(), limit=1000)
    measured = [job for job in jobs if job.queue.startswith("bench-")]
    assert {job.state for job in measured} == {State.COMPLETED}
    assert len({job.queue for job in measured}) == 3
    assert len(measured) == 2 * (40 + 40 // SINGLES) + 3 + module._WARM
    (letter,) = [job for job in jobs if job not in measured]
    assert letter.state is State.AVAILABLE
    assert app.client.workers() == []


def test_a_job_that_ran_twice_is_told(app: App) -> None:
    assert app.address is not None
    with module._Measured(app.address) as measured:
        measured.enqueue(2, 1)
        measured._ran(1, 0.0)
        with pytest.raises(Unavailable, match="2 jobs were run 3 times"):
            measured.drain()


def test_a_store_that_lets_nothing_through_is_given_up(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    assert app.address is not None
    with module._Measured(app.address) as measured:
        measured.enqueue(2, 2)
        with pytest.raises(Unavailable, match="2 are left"):
            measured._wait_until(lambda: False)


def test_a_producer_that_cannot_begin_is_told(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    assert app.address is not None
    with module._Measured(app.address) as measured:
        monkeypatch.setattr(measured, "_address", "nowhere://")
        with pytest.raises(Unavailable, match="the process that enqueues has ended with 1"):
            measured.pick_up(1)


@pytest.mark.parametrize("numbers", [{"jobs": 0}, {"rounds": 0}, {"pickups": 0}])
def test_numbers_that_measure_nothing_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(BadSettings, match="at least 1"):
        measure("sqlite:///never-made.db", **numbers)  # type: ignore[arg-type]  # no progress is among them


def test_a_memory_store_is_refused() -> None:
    with pytest.raises(BadSettings, match="memory store"):
        measure("memory://")
