"""A process that works looks for cycles seldom, unless its program has said something else."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tenure import App
from tenure.worker.collector import SELDOM, seldom_collected


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_cycles_are_looked_for_seldom_and_afterwards_as_before() -> None:
    gc.set_threshold(700, 9, 8)
    with seldom_collected():
        assert gc.get_threshold() == (SELDOM, 9, 8)
    assert gc.get_threshold() == (700, 9, 8)


@pytest.mark.parametrize("threshold", [0, SELDOM, 5 * SELDOM])
def test_what_a_program_has_set_higher_or_switched_off_stays(threshold: int) -> None:
    gc.set_threshold(threshold, 9, 8)
    with seldom_collected():
        assert gc.get_threshold() == (threshold, 9, 8)


def test_a_worker_that_has_the_process_to_itself_collects_seldom() -> None:
    app = App("memory://")
    seen: list[int] = []

    @app.task
    def look() -> None:
        seen.append(gc.get_threshold()[0])
        made.request_stop()

    gc.set_threshold(700, 9, 8)
    look.enqueue()
    made = app.worker()
    made.run()
    assert seen == [SELDOM]
    assert gc.get_threshold() == (700, 9, 8)
