"""Async handlers in their loop: everybody has a turn, and what is told to stop does not begin."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tenure import App
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tenure.worker.loop import LoopExecutor
from tenure.worker.run import Run, Stop
from tests.worker.bench import Clock, new_run

MANY = 5_000  # far more than Python nests calls
APP = App("memory://")
calls: list[str] = []


@APP.task
async def at_once() -> None:
    calls.append("at once")


@APP.task
async def patient() -> None:
    await asyncio.sleep(0)
    calls.append("patient")


class Bench:
    """An executor whose slots are refilled, up to `MANY` times, as its runs end."""

    def __init__(self) -> None:
        self.executor = LoopExecutor(1)
        self.endings: list[Ending | None] = []
        self.over = threading.Event()
        self.left = 0

    def run(self, *, stop: Stop | None = None) -> Run:
        run = new_run(Clock(), self.executor, task=at_once)
        run.stop = stop
        return run

    def finished(self, _run: Run, ending: Ending | None) -> None:
        self.endings.append(ending)
        if self.left:
            self.left -= 1
            self.executor.start([self.run()])
        else:
            self.over.set()


@pytest.fixture
def bench() -> Iterator[Bench]:
    calls.clear()
    made = Bench()
    made.executor.open(made.finished)
    yield made
    made.executor.close()


def test_each_end_makes_room_for_the_next_however_many(bench: Bench) -> None:
    bench.left = MANY
    bench.executor.start([bench.run()])
    assert bench.over.wait(30.0)
    assert calls == ["at once"] * (MANY + 1)


def test_who_waits_has_a_turn_between_runs_that_end_at_once(bench: Bench) -> None:
    bench.left = MANY
    bench.executor.start([new_run(Clock(), bench.executor, task=patient), bench.run()])
    assert bench.over.wait(30.0)
    assert calls.index("patient") < MANY // 10


def test_what_was_told_to_stop_does_not_begin(bench: Bench) -> None:
    bench.executor.start([bench.run(stop=Stop("the worker is shutting down", Verb.RELEASE))])
    assert bench.over.wait(30.0)
    assert [ending and ending.verb for ending in bench.endings] == [Verb.RELEASE]
    assert calls == []
