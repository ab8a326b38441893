"""A process that works looks for cycles seldom and changes threads often, unless its program has said otherwise."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from tenure import App
from tenure.worker.interpreter import OFTEN, SELDOM, set_for_work


@pytest.fixture(autouse=True)
def _as_it_comes() -> Iterator[None]:
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(700, 9, 8)
    sys.setswitchinterval(0.005)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def _settings() -> tuple[int, float]:
    return gc.get_threshold()[0], round(sys.getswitchinterval(), 6)


def test_cycles_are_looked_for_seldom_and_afterwards_as_before() -> None:
    with set_for_work():
        assert gc.get_threshold() == (SELDOM, 9, 8)
    assert gc.get_threshold() == (700, 9, 8)


@pytest.mark.parametrize("threshold", [0, SELDOM, 5 * SELDOM])
def test_what_a_program_has_set_higher_or_switched_off_stays(threshold: int) -> None:
    gc.set_threshold(threshold, 9, 8)
    with set_for_work():
        assert gc.get_threshold() == (threshold, 9, 8)


def test_threads_change_often_and_afterwards_as_before() -> None:
    with set_for_work():
        assert sys.getswitchinterval() == pytest.approx(OFTEN)
    assert sys.getswitchinterval() == pytest.approx(0.005)


@pytest.mark.parametrize("interval", [0.0005, 0.002, 0.05])
def test_an_interval_that_a_program_has_chosen_stays(interval: float) -> None:
    sys.setswitchinterval(interval)
    with set_for_work():
        assert sys.getswitchinterval() == pytest.approx(interval)


def test_only_a_worker_that_has_the_process_to_itself_sets_it() -> None:
    app = App("memory://")
    seen: list[tuple[int, float]] = []

    @app.task
    def look() -> None:
        seen.append(_settings())
        made.request_stop()

    look.enqueue()
    made = app.worker()
    made.run()
    assert seen == [(SELDOM, OFTEN)]
    assert _settings() == (700, 0.005)
