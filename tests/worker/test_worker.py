"""The whole worker in one process, on the memory store, with a clock that jumps while a claim is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure import App, State
from tenure.clock import boot_clock
from tenure.protocol.events import Kind
from tenure.protocol.op import Op
from tenure.store.contract import Driver
from tenure.store.memory import MemoryStore
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
