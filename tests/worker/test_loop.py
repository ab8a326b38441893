"""Async handlers in their loop: everybody has a turn, and what is told to stop does not begin."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import App
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tenure.task import Task
from tenure.worker.loop import LoopExecutor
from tenure.worker.run import Run, Stop
from tests.support.processes import wait_for
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


async def part(error: type[BaseException]) -> None:
    await asyncio.sleep(0)
    raise error


@APP.task
async def with_parts() -> None:
    await asyncio.gather(part(SystemExit), part(KeyboardInterrupt))


@APP.task
async def with_a_task_left_behind() -> None:
    left.append(asyncio.create_task(part(SystemExit)))


@APP.task
async def with_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit)


@APP.task
async def stopping_the_loop() -> None:
    asyncio.get_running_loop().stop()


left: list[asyncio.Task[None]] = []


class Bench:
    """An executor whose slots are refilled, up to `MANY` times, as its runs end."""

    def __init__(self) -> None:
        self.crashes: list[BaseException] = []
        self.executor = LoopExecutor(1, self.crashes.append)
        self.endings: list[Ending | None] = []
        self.over = threading.Event()
        self.left = 0

    def run(self, task: Task[Any, Any, Any] = at_once, *, stop: Stop | None = None) -> Run:
        run = new_run(Clock(), self.executor, task=task)
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


@pytest.mark.parametrize(
    ("task", "verb"),
    [
        (with_parts, Verb.FAIL),
        (with_a_task_left_behind, Verb.COMPLETE),
        (with_a_callback, Verb.COMPLETE),
        (stopping_the_loop, Verb.COMPLETE),
    ],
)
def test_nothing_that_a_handler_left_in_the_loop_ends_it(
    bench: Bench, task: Task[Any, Any, Any], verb: Verb, caplog: pytest.LogCaptureFixture
) -> None:
    bench.left = 1
    bench.executor.start([bench.run(task), new_run(Clock(), bench.executor, task=patient)])
    assert bench.over.wait(30.0)
    bench.over.clear()
    bench.executor.start([bench.run()])
    assert bench.over.wait(30.0)
    assert verb in [ending and ending.verb for ending in bench.endings]
    assert {"patient", "at once"} <= set(calls)
    assert bench.crashes == []
    assert task is stopping_the_loop or "the loop goes on" in caplog.text


def test_a_loop_that_is_broken_is_told_as_a_crash(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no such selector")

    monkeypatch.setattr(bench.executor._loop, "_run_once", broken)
    bench.executor.start([])  # wakes it
    wait_for(lambda: bench.crashes, 30.0, "the crash")
    assert [type(error) for error in bench.crashes] == [OSError]


def test_what_handlers_leave_behind_may_try_to_end_a_loop_that_closes(bench: Bench) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(3600.0)
        finally:
            sys.exit()

    @App("memory://").task
    async def leaving() -> None:
        left.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)

    bench.executor.start([bench.run(leaving)])
    assert bench.over.wait(30.0)
    bench.executor.close()
    wait_for(bench.executor._loop.is_closed, 30.0, "the end of the loop")
    assert bench.crashes == []
