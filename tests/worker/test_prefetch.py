"""A few jobs wait for the slots of a lane: how many, how they begin, and how they are given back."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import pytest

from tenure import App
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tenure.worker.prefetch import ENOUGH, PATIENCE, TIMES, WITHIN, Prefetch
from tenure.worker.run import Run, Stop
from tenure.worker.threads import ThreadExecutor
from tests.support.processes import wait_for
from tests.worker.bench import LEASE, TRUST, Clock, IdleExecutor, new_run

QUICK = WITHIN / 10


class Bench:
    def __init__(self, slots: int = 2, **settings: Any) -> None:
        self.clock = Clock()
        self.executor = IdleExecutor(slots)
        self.why: str | None = None
        self.began: list[Run] = []
        self.ended: list[tuple[Run, Ending | None]] = []
        self.prefetch = Prefetch(
            self.executor,
            refusal=lambda: self.why,
            began=self.began.extend,
            clock=self.clock,
            **settings,
        )
        self.prefetch.open(lambda run, ending: self.ended.append((run, ending)))

    def run(self, job: str = "j1", **fields: Any) -> Run:
        """Start a claimed run, or let it wait."""
        run = new_run(self.clock, self.prefetch, job, **fields)
        self.prefetch.start([run])
        return run

    def finish(self, run: Run) -> None:
        self.executor.finished(run, Ending(run.lease.token, Verb.COMPLETE))

    def warm_up(self, count: int, seconds: float = QUICK) -> None:
        """Let `count` runs come and go within the same `seconds`."""
        for begun in range(0, count, self.prefetch.slots):
            runs = [self.run(f"warm {begun + place}") for place in range(min(self.prefetch.slots, count - begun))]
            self.clock.advance(seconds if begun == 0 else 0.0)
            for run in runs:
                self.finish(run)
        self.executor.started.clear()
        self.began.clear()
        self.ended.clear()

    def fill(self) -> list[Run]:
        """Occupy every slot."""
        return [self.run(f"busy {place}") for place in range(self.prefetch.slots)]

    def given_back(self) -> list[tuple[str, str | None]]:
        """The jobs that were given back unspent, each with the reason."""
        endings = [ending for _, ending in self.ended if ending is not None]
        return [(ending.token.job, ending.reason) for ending in endings if ending.verb is Verb.RELEASE]


@pytest.fixture
def bench() -> Bench:
    return Bench()


# -- how many


def test_b20_until_something_was_short_only_free_slots_count(bench: Bench) -> None:
    assert bench.prefetch.free() == 2
    bench.run()
    assert bench.prefetch.free() == 1


def test_what_was_short_lately_may_be_claimed_ahead(bench: Bench) -> None:
    bench.warm_up(5)
    assert bench.prefetch.free() == 2 + 5
    bench.run()
    assert bench.prefetch.free() == 1 + 5


def test_b20_what_was_short_a_while_ago_counts_no_more(bench: Bench) -> None:
    bench.warm_up(5)
    bench.clock.advance(WITHIN)
    assert bench.prefetch.free() == 2 + 5
    bench.clock.advance(0.001)
    assert bench.prefetch.free() == 2


def test_b20_what_takes_long_is_not_claimed_ahead(bench: Bench) -> None:
    bench.warm_up(6, WITHIN)
    assert bench.prefetch.free() == 2 + 4  # the first two took long


def test_b20_one_long_run_ends_the_claiming_ahead_at_once(bench: Bench) -> None:
    long = bench.run("long")
    bench.clock.advance(WITHIN)
    for number in range(5):
        bench.finish(bench.run(f"short {number}"))
    assert bench.prefetch.free() == 1 + 5
    bench.finish(long)
    assert bench.prefetch.free() == 2


@pytest.mark.parametrize(
    ("slots", "ahead"),
    [(1, TIMES), (2, 2 * TIMES), (100, ENOUGH - 100), (ENOUGH - 1, 1), (ENOUGH, 0), (ENOUGH + 1, 0)],
)
def test_b20_there_is_an_end_to_what_is_claimed_ahead(slots: int, ahead: int) -> None:
    bench = Bench(slots)
    bench.warm_up(3 * ENOUGH)
    assert bench.prefetch.free() == slots + ahead


def test_a_lane_of_processes_claims_nothing_ahead() -> None:
    bench = Bench(times=0)
    bench.warm_up(20)
    assert bench.prefetch.free() == 2


def test_more_is_claimed_once_half_of_what_waited_has_begun(bench: Bench) -> None:
    bench.warm_up(8)
    busy = bench.fill()
    for number in range(8):
        bench.run(f"j{number}")
    assert bench.prefetch.free() == 0
    bench.finish(busy[0])
    assert bench.prefetch.free() == 0  # 7 still wait, and 9 may
    bench.finish(busy[1])
    assert bench.prefetch.free() == 0
    bench.finish(bench.executor.started[-1])
    assert bench.prefetch.free() == 11 - 5


# -- how they begin


def test_jobs_wait_for_a_slot_in_the_order_of_their_claims(bench: Bench) -> None:
    busy = bench.fill()
    first, second, third = (bench.run(job) for job in ("first", "second", "third"))
    assert bench.executor.started == busy
    bench.finish(busy[1])
    assert bench.executor.started == [*busy, first]
    bench.finish(first)
    bench.finish(busy[0])
    assert bench.executor.started == [*busy, first, second, third]
    assert bench.began == bench.executor.started


def test_a_time_limit_counts_from_where_the_job_begins(bench: Bench) -> None:
    busy = bench.fill()
    run = bench.run(timeout=5.0)
    assert run.deadline is None
    bench.clock.advance(0.25)
    bench.finish(busy[0])
    assert run.deadline == bench.clock() + 5.0


def test_whoever_hears_of_a_beginning_knows_the_time_limit() -> None:
    deadlines: list[float | None] = []
    bench = Bench()
    bench.prefetch._began = lambda runs: deadlines.extend(run.deadline for run in runs)
    bench.run(timeout=5.0)
    assert deadlines == [bench.clock() + 5.0]


def test_a_job_whose_lease_ended_while_it_waited_does_not_begin(bench: Bench) -> None:
    busy = bench.fill()
    bench.run("late")
    bench.clock.advance(LEASE * TRUST)
    bench.finish(busy[0])
    assert bench.executor.started == busy
    assert bench.given_back() == [("late", "its lease ended before it began")]


def test_a_job_that_was_lost_while_it_waited_does_not_begin(bench: Bench) -> None:
    busy = bench.fill()
    lost = bench.run("lost")
    lost.stop = Stop("generation 2 took over (bea)", None)
    bench.prefetch.stop(lost)
    bench.finish(busy[0])
    assert bench.executor.started == busy
    assert bench.executor.stopped == []
    assert bench.ended[0] == (lost, None)


def test_a_job_that_is_stopped_while_it_waits_ends_as_it_was_told(bench: Bench) -> None:
    busy = bench.fill()
    run = bench.run("waits")
    run.stop = Stop("the worker is shutting down", Verb.RELEASE)
    bench.prefetch.stop(run)
    assert bench.given_back() == [("waits", "the worker is shutting down")]
    bench.prefetch.stop(busy[0])
    assert bench.executor.stopped == [busy[0]]


def test_a_slot_that_is_given_up_goes_to_who_waits(bench: Bench) -> None:
    hung, _ = bench.fill()
    waits = bench.run("waits")
    assert bench.prefetch.abandon(hung)
    assert bench.executor.started[-1] is waits
    assert bench.executor.abandoned == [hung]


def test_a_slot_is_given_up_once_and_only_by_who_has_it(bench: Bench) -> None:
    busy = bench.fill()
    waits = bench.run("waits")
    assert not bench.prefetch.abandon(waits)
    assert bench.prefetch.abandon(busy[0])
    assert not bench.prefetch.abandon(busy[0])
    bench.finish(busy[0])  # as some executors report a run that was given up, too
    assert bench.prefetch.free() == 0
    assert bench.executor.abandoned == [busy[0]]


def test_a_slot_that_cannot_be_spared_stays_occupied(bench: Bench) -> None:
    hung, _ = bench.fill()
    waits = bench.run("waits")
    bench.executor.spares = False
    assert not bench.prefetch.abandon(hung)
    assert waits not in bench.executor.started


def test_no_more_begin_than_there_are_slots_whoever_ends_when() -> None:
    """On real threads, which end in any order and at the same time."""
    slots, jobs = 4, 2000
    crashes: list[BaseException] = []
    prefetch = Prefetch(ThreadExecutor(slots, crashes.append), refusal=lambda: None, began=lambda _: None)
    lock, at_once, most = threading.Lock(), 0, 0
    over: list[Run] = []
    app = App("memory://")

    @app.task
    def count() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0)
        with lock:
            at_once -= 1

    prefetch.open(lambda run, _: over.append(run))
    runs = [new_run(Clock(), prefetch, f"j{number}", task=count) for number in range(jobs)]
    for place in range(0, jobs, 100):
        prefetch.start(runs[place : place + 100])
    wait_for(lambda: len(over) == jobs, 30.0, "all runs to end")
    prefetch.close()
    assert most <= slots
    assert set(over) == set(runs)
    assert crashes == []


# -- how they are given back


def test_b20_who_has_waited_too_long_is_given_back(bench: Bench) -> None:
    bench.fill()
    bench.run("first")
    bench.clock.advance(PATIENCE / 2)
    bench.run("second")
    bench.prefetch.review()
    assert bench.given_back() == []
    bench.clock.advance(PATIENCE / 2)
    bench.prefetch.review()
    assert bench.given_back() == [("first", "the jobs before it took too long")]


def test_the_patience_is_that_of_who_has_waited_longest(bench: Bench) -> None:
    assert bench.prefetch.patience() == math.inf
    busy = bench.fill()
    assert bench.prefetch.patience() == math.inf
    bench.run("first")
    bench.clock.advance(PATIENCE / 4)
    bench.run("second")
    assert bench.prefetch.patience() == pytest.approx(PATIENCE * 0.75)
    bench.finish(busy[0])
    assert bench.prefetch.patience() == pytest.approx(PATIENCE)


def test_all_who_wait_are_given_back_once_nothing_may_begin(bench: Bench) -> None:
    busy = bench.fill()
    bench.run("first")
    bench.run("second")
    bench.why = "the worker is stopping"
    bench.prefetch.review()
    assert bench.given_back() == [("first", "the worker is stopping"), ("second", "the worker is stopping")]
    assert bench.executor.started == busy


def test_nobody_begins_who_may_not_whatever_slot_is_free(bench: Bench) -> None:
    busy = bench.fill()
    bench.run("first")
    bench.run("second")
    bench.why = "the worker cannot renew leases"
    bench.finish(busy[0])
    bench.run("third")
    assert bench.executor.started == busy
    assert [job for job, _ in bench.given_back()] == ["first", "second", "third"]
