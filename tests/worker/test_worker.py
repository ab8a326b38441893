"""The whole worker in one process, on the memory store, with a clock that jumps while a claim is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tenure import App, State
from tenure.clock import boot_clock
from tenure.protocol.events import Kind
from tenure.protocol.op import Op
from tenure.store.contract import Driver
from tenure.store.memory import MemoryStore
from tenure.worker.feeder import Feeder
from tenure.worker.part import Part
from tenure.worker.worker import Worker
from tests.support.processes import wait_for

LEASE = 60.0


class JumpingClock:
    """The boot clock, plus whatever it jumped."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return boot_clock() + self.ahead


class LateStore:
    """A store whose first claim that finds a job is answered only after the job's lease."""

    def __init__(self, clock: JumpingClock) -> None:
        self._store = MemoryStore()
        self._clock = clock
        self.late = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def dedicated(self, *, timeout: float) -> Driver:
        inner, late = self._store.dedicated(timeout=timeout), self

        class Late:
            def do(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
                answer = inner.do(verb, *args, **kwargs)
                if verb.__name__ == "turn" and answer.claimed and not late.late:
                    late.late += 1
                    late._clock.ahead += 2 * LEASE
                return answer

            def close(self) -> None:
                inner.close()

        return Late()


def test_b03_who_hears_that_a_worker_stops_can_enqueue_what_it_will_not_claim() -> None:
    app, refusals = App("memory://"), list[str | None]()

    @app.task
    def work() -> None:
        """Give the worker something to be for."""

    worker = app.worker(retention=None)
    worker.emitter.subscribe(
        lambda event: refusals.append(worker._feeder.refusal()) if event.kind is Kind.WORKER_STOPPING else None
    )
    worker.start()
    worker.stop(grace=0)
    assert refusals == ["the worker is stopping"]


def test_b18_a_claim_that_outlived_its_own_lease_is_given_back() -> None:
    clock = JumpingClock()
    store: Any = LateStore(clock)
    app, ran = App(store), []

    @app.task(lease=LEASE)
    def work() -> None:
        ran.append("ran")

    job = work.enqueue().id
    worker = app.worker(clock=clock, retention=None)
    worker.start()
    wait_for(lambda: app.client.get(job).state is State.COMPLETED, 20.0, "the job to be done")
    worker.stop(grace=0)
    assert store.late == 1
    assert ran == ["ran"]
    assert app.client.get(job).generation == 2
    [given_back] = app.client.history(job)
    assert (given_back.generation, given_back.event) == (1, "release")
    assert given_back.reason == "its lease ended before it began"


def crash(worker: Worker) -> None:
    """Have a thread of the machinery fail, as its guard tells."""

    def fail() -> None:
        raise OSError("unexpected")

    part = Part("part", fail, worker._crashed)
    part.start()
    part.join()


def test_an_embedded_worker_stops_when_a_part_of_it_fails() -> None:
    app = App("memory://")
    go, ended = threading.Event(), list[str]()

    @app.task
    def work() -> None:
        go.wait(20.0)
        ended.append("work")

    worker = app.worker(retention=None, grace=20.0)
    worker.start()
    held = work.enqueue().id
    wait_for(lambda: app.client.get(held).state is State.RUNNING, 20.0, "the job to be claimed")
    crash(worker)
    assert not worker.healthy()
    assert worker._feeder.refusal() == "the worker is stopping"
    left = work.enqueue().id
    go.set()
    wait_for(worker._done.is_set, 20.0, "the worker to stop by itself")
    assert ended == ["work"]
    assert app.client.get(held).state is State.COMPLETED
    assert (app.client.get(left).state, app.client.get(left).generation) == (State.AVAILABLE, 0)
    worker.stop()
    assert not worker.healthy()


def test_a_part_that_fails_at_once_stops_no_worker_whose_other_parts_have_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, stopped = App("memory://"), list[bool]()

    @app.task
    def work() -> None:
        """Give the worker something to be for."""

    worker = app.worker(retention=None)
    start = Feeder.start

    def start_late(feeder: Feeder) -> None:
        crash(worker)
        stopped.append(worker._done.wait(0.5))
        start(feeder)

    monkeypatch.setattr(Feeder, "start", start_late)
    worker.start()
    assert stopped == [False]
    wait_for(worker._done.is_set, 20.0, "the worker to stop by itself")


def test_stopping_an_embedded_worker_that_stops_by_itself_waits_and_may_hurry_it() -> None:
    app = App("memory://")
    go = threading.Event()

    @app.task(lease=60.0)
    def work() -> None:
        go.wait(20.0)

    worker = app.worker(retention=None, grace=3600.0)
    worker.start()
    held = work.enqueue().id
    wait_for(lambda: app.client.get(held).state is State.RUNNING, 20.0, "the job to be claimed")
    told: list[str] = []
    worker.emitter.subscribe(lambda event: told.append(event.kind))
    crash(worker)
    wait_for(lambda: Kind.WORKER_STOPPING in told, 20.0, "the worker to stop by itself")
    worker.stop(grace=0)
    assert worker._done.is_set()
    assert told.count(Kind.WORKER_STOPPED) == 1
    assert app.client.get(held).state is State.AVAILABLE
    go.set()


def test_a_worker_whose_run_waits_for_a_crash_is_stopped_there() -> None:
    app, stopped_by = App("memory://"), list[str]()

    @app.task
    def work() -> None:
        """Give the worker something to be for."""

    worker = app.worker(retention=None)
    worker.emitter.subscribe(
        lambda event: (
            crash(worker)
            if event.kind is Kind.WORKER_STARTED
            else stopped_by.append(threading.current_thread().name)
            if event.kind is Kind.WORKER_STOPPED
            else None
        )
    )
    with pytest.raises(OSError, match="unexpected"):
        worker.run()
    assert stopped_by == [threading.current_thread().name]
