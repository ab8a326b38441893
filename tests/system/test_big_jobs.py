"""Jobs so big that a claim of many is answered after their leases: the worker claims fewer at a time, and gets on.

What a job costs is told to the clocks of worker and store, so that nothing waits for it and no machine is too quick.
These clocks run from turn to turn, so a turn waits for the handlers that began: no machine is too slow either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tenure import App, Filter, State
from tenure.clock import boot_clock
from tenure.protocol.events import Event, Kind
from tenure.protocol.op import Op
from tenure.store.address import open_store
from tenure.store.contract import Driver
from tenure.worker.pace import FIRST, PART
from tests.support.processes import wait_for

LEASE = 10.0
COST = 1.0  # seconds that one job adds to a turn, so that a first claim is answered after its leases
JOBS = 3 * FIRST
BOUND = 30.0  # seconds: the machine may be busy


class CostlyStore:
    """A store on which a turn takes `COST` seconds for each job that it settles or claims, by every clock."""

    def __init__(self, url: str) -> None:
        self._store: Any = open_store(url)
        self._ahead = 0.0
        self.moved: list[tuple[int, int]] = []
        self.begun = self.ended = 0  # handlers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def clock(self) -> float:
        return boot_clock() + self._ahead

    def dedicated(self, *, timeout: float) -> Driver:
        inner, costly = self._store.dedicated(timeout=timeout), self

        class Costly:
            def do(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
                wait_for(lambda: costly.ended == costly.begun, BOUND, "the handlers to end")
                answer = inner.do(verb, *args, **kwargs)
                if verb.__name__ == "turn":
                    costly._spend(len(answer.answers), len(answer.claimed))
                return answer

            def close(self) -> None:
                inner.close()

        return Costly()

    def hear(self, event: Event) -> None:
        self.begun += event.kind is Kind.JOB_STARTED

    def _spend(self, settled: int, claimed: int) -> None:
        self.moved.append((settled, claimed))
        seconds = (settled + claimed) * COST
        self._store.shift_clock(seconds)
        self._ahead += seconds


@pytest.fixture
def store(store_url: str) -> Iterator[Any]:
    store = CostlyStore(store_url)
    store.migrate()
    with closing(store):
        yield store


def test_b35_jobs_whose_claims_come_too_late_are_claimed_fewer_at_a_time_and_done(store: Any) -> None:
    app, told = App(store), list[Event]()
    app.events.subscribe(told.append)
    app.events.subscribe(store.hear)

    @app.task(lease=LEASE)
    async def big() -> None:
        """Do nothing; it is the claim that takes long."""
        store.ended += 1

    jobs = [one.id for one in big.enqueue_many([{}] * JOBS)]
    worker = app.worker(clock=store.clock, retention=None)
    worker.start()
    try:
        done = Filter(state=State.COMPLETED)
        wait_for(lambda: len(app.client.find(done, limit=JOBS)) == JOBS, BOUND, "all jobs to be done")
    finally:
        worker.stop(grace=0.0)
    assert store.moved[0] == (0, FIRST)
    assert max(claimed for _, claimed in store.moved[1:]) * COST <= PART * LEASE
    first = next(event.detail for event in told if event.kind is Kind.STORE_SLOW)
    assert first.startswith("to settle 0 jobs and claim 16 took 1")
    assert re.search(r", and must not take more than 2.5 s: at most [12] at a time now$", first)
    records = [app.client.get(job) for job in jobs]
    assert [(record.attempts, record.takeovers) for record in records] == [(0, 0)] * JOBS
    assert sorted(record.generation for record in records) == [1] * (JOBS - FIRST) + [2] * FIRST
