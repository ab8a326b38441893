"""Whole workers whose few slots make claimed jobs wait: nobody waits behind a long job, and nothing is spent (B20)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure import App, Filter, Job, JobRecord, State
from tenure.protocol.events import Event, Kind
from tenure.worker.prefetch import PATIENCE, TIMES
from tenure.worker.worker import Worker
from tests.support.processes import wait_for
from tests.worker.bench import Clock

BOUND = 20.0  # seconds: the machine may be busy


class Site:
    """Workers on one store in memory; handlers note where they began, and some hold their slot until they may go."""

    def __init__(self) -> None:
        self.app = App("memory://")
        self.began: list[str] = []
        self.go = threading.Event()
        self.workers: list[Worker] = []
        self.quick = self.app.task(name="quick")(self._quick)
        self.hold = self.app.task(name="hold")(self._hold)

    def _quick(self, job: Job) -> None:
        self.began.append(job.id)

    def _hold(self, job: Job) -> None:
        self.began.append(job.id)
        self.go.wait(BOUND)

    def worker(self, name: str, **settings: Any) -> Worker:
        worker = self.app.worker(name=name, retention=None, **{"threads": 1, **settings})
        worker.start()
        self.workers.append(worker)
        return worker

    def quick_worker(self, name: str = "ada", **settings: Any) -> tuple[Worker, Clock]:
        """Start a worker that has just finished many short jobs, on a clock that stands still."""
        clock = Clock()
        worker = self.worker(name, clock=clock, **settings)
        self.over(*(one.id for one in self.quick.enqueue_many([{}] * 100)))
        self.began.clear()
        return worker, clock

    def over(self, *jobs: str) -> None:
        self.when(lambda record: record.state is State.COMPLETED, *jobs)

    def when(self, is_so: Callable[[JobRecord], bool], *jobs: str) -> None:
        def all_are() -> bool:
            return all(is_so(self.app.client.get(job)) for job in jobs)

        wait_for(all_are, BOUND, f"jobs {', '.join(jobs[:3])} …")

    def held(self) -> int:
        return len(self.app.client.find(Filter(state=State.RUNNING)))

    def occupied(self) -> str:
        """Let a job hold the only slot."""
        job: str = self.hold.enqueue().id
        wait_for(lambda: job in self.began, BOUND, "the slot to be occupied")
        return job

    def waits(self, **options: Any) -> str:
        """Let a job be claimed ahead, which waits for a slot."""
        job: str = self.quick.options(**options).enqueue().id
        self.when(lambda record: record.state is State.RUNNING, job)
        assert job not in self.began
        return job


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.go.set()
    for worker in site.workers:
        worker.request_stop()
        worker.request_stop()
        worker.stop(grace=0.0)


def test_b20_a_job_does_not_wait_behind_a_long_one_while_another_worker_is_idle(site: Site) -> None:
    _, clock = site.quick_worker()
    site.occupied()
    job = site.waits()
    site.worker("bea")
    assert site.app.client.get(job).worker == "ada"
    clock.advance(PATIENCE)
    site.over(job)
    record = site.app.client.get(job)
    assert (record.worker, record.generation, record.attempts, record.takeovers) == ("bea", 2, 0, 0)
    [given_back] = site.app.client.history(job)
    assert (given_back.event, given_back.reason) == ("release", "the jobs before it took too long")


def test_b20_a_child_is_not_kept_by_the_worker_whose_slots_wait_for_it(site: Site) -> None:
    done = threading.Event()

    @site.app.task
    def child() -> None:
        done.set()

    @site.app.task
    def parent() -> bool:
        site.began.append(child.enqueue().id)
        return done.wait(BOUND)

    _, clock = site.quick_worker()
    waiting = parent.enqueue().id
    wait_for(lambda: site.began and site.held() == 2, BOUND, "the child to be claimed ahead")
    site.worker("bea")
    clock.advance(PATIENCE)
    site.over(waiting, *site.began)
    assert site.app.client.get(waiting).result == "true"


def test_b20_parents_that_wait_in_every_slot_are_freed_by_their_time_limit(site: Site) -> None:
    slots = 8
    children: list[str] = []

    @site.app.task(timeout=1.0, max_attempts=1)
    def parent(job: Job) -> None:
        child = site.quick.enqueue().id
        children.append(child)
        while site.app.client.get(child).state is not State.COMPLETED:
            job.check()
            threading.Event().wait(0.02)

    clock = Clock()
    parents = [one.id for one in parent.enqueue_many([{}] * slots)]
    site.worker("ada", threads=slots, clock=clock)
    wait_for(lambda: len(children) == slots, BOUND, "every slot to have a parent that waits")
    clock.advance(1.0)
    site.when(lambda record: record.state in {State.COMPLETED, State.DISCARDED}, *parents)
    site.over(*children)
    failures = [site.app.client.get(job).failure for job in parents]
    assert "TimeLimit" in {failure.type for failure in failures if failure is not None}


def test_b20_the_lowest_class_waits_for_all_higher_work(site: Site) -> None:
    slots = 2
    low = site.quick.options(priority=-1).enqueue().id
    high = [one.id for one in site.quick.options(priority=1).enqueue_many([{}] * 500)]
    site.worker("ada", threads=slots, clock=Clock())  # so that nothing that waits is given back, and comes too late
    site.over(low, *high)
    assert site.began.index(low) > len(high) - slots


def test_b20_a_job_of_higher_priority_is_overtaken_by_what_waits_and_no_more(site: Site) -> None:
    site.quick_worker()
    site.occupied()
    low = [one.id for one in site.quick.enqueue_many([{}] * (5 * TIMES))]
    wait_for(lambda: site.held() == 1 + TIMES, BOUND, "jobs to be claimed ahead")
    high = site.quick.options(priority=1).enqueue().id
    site.go.set()
    site.over(high, *low)
    assert site.held() == 0
    assert site.began[1:].index(high) <= TIMES


def test_b03_a_stopping_worker_begins_nothing_and_spends_nothing(site: Site) -> None:
    worker, _ = site.quick_worker()
    running = site.occupied()
    job = site.waits()
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    site.when(lambda record: record.state is State.AVAILABLE, job)
    assert site.app.client.get(running).state is State.RUNNING
    site.go.set()
    stopping.join(BOUND)
    assert site.app.client.get(running).state is State.COMPLETED
    record = site.app.client.get(job)
    assert (record.state, record.attempts, record.takeovers) == (State.AVAILABLE, 0, 0)
    assert record.reason == "the worker was asked to stop"
    assert job not in site.began


def test_b03_nothing_begins_from_the_signal_on(site: Site) -> None:
    worker, _ = site.quick_worker()
    running = site.occupied()
    job = site.waits()
    worker.request_stop()
    site.go.set()
    site.over(running)
    site.when(lambda record: record.state is State.AVAILABLE, job)
    assert job not in site.began


def test_a_job_is_told_to_have_started_when_it_begins(site: Site) -> None:
    told: list[Event] = []
    site.quick_worker()
    site.app.events.subscribe(told.append)
    site.occupied()
    job = site.waits()
    assert [event for event in told if event.job == job] == []
    site.go.set()
    site.over(job)
    kinds = [Kind.JOB_STARTED, Kind.JOB_COMPLETED]
    wait_for(lambda: [event.kind for event in told if event.job == job] == kinds, BOUND, "its two events")


def test_the_warden_hears_of_a_time_limit_when_it_begins_to_count(site: Site) -> None:
    worker, clock = site.quick_worker()
    site.occupied()
    watched: list[tuple[str, float | None]] = []
    worker._warden.watch = lambda runs: watched.extend(  # type: ignore[method-assign]
        (run.claimed.id, run.deadline) for run in runs
    )
    job = site.waits(timeout=5.0)
    clock.advance(PATIENCE / 2)
    site.go.set()
    site.over(job)
    assert watched == [(job, None), (job, clock() + 5.0)]
