"""Threads in virtual time: who waits, who is woken, what a frozen and what a dead process does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.testing.simulation import threads
from tenure.testing.simulation.threads import TIMEOUT, Group, Over, Scheduler, SimpleQueue, Stage, Stuck


class Crew(Group):
    """A process that keeps what went wrong in it."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Exception] = []

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


class Bench:
    """A scheduler whose latencies are always the same, and what its tasks told, each with the moment."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.scheduler = self.stage.scheduler = Scheduler(self.stage.bodies, lambda: 0.0)
        self.crew = Crew()
        self.told: list[tuple[str, float]] = []

    def tell(self, what: str) -> None:
        self.told.append((what, round(self.scheduler.now, 3)))

    def task(self, target: Callable[[], object], crew: Group | None = None) -> None:
        self.scheduler.spawn(crew or self.crew, "task", target)

    def run(self, until: float = 100.0) -> None:
        self.scheduler.run(until)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_time_passes_only_while_nobody_runs(bench: Bench) -> None:
    def sleeper() -> None:
        bench.scheduler.sleep(3.0)
        bench.tell("slept")
        bench.scheduler.sleep(0.5)
        bench.tell("slept again")

    bench.task(sleeper)
    bench.run()
    assert bench.told == [("slept", 3.0), ("slept again", 3.5)]


def test_a_clock_that_runs_fast_wakes_early(bench: Bench) -> None:
    bench.crew.rate = 2.0

    def sleeper() -> None:
        bench.scheduler.sleep(3.0)
        bench.tell("slept")

    bench.task(sleeper)
    bench.run()
    assert bench.told == [("slept", 1.5)]


def test_an_event_wakes_who_waits(bench: Bench) -> None:
    event = bench.stage.threading.Event()

    def waiter() -> None:
        bench.tell(str(event.wait(5.0)))
        event.clear()
        bench.tell(str(event.wait(5.0)))

    bench.task(waiter)
    bench.scheduler.at(2.0, event.set)
    bench.run()
    assert bench.told == [("True", 2.0), ("False", 7.0)]


def test_a_condition_tells_a_notice_from_the_end_of_patience(bench: Bench) -> None:
    condition = bench.stage.threading.Condition()

    def waiter() -> None:
        with condition:
            bench.tell(str(condition.wait(5.0)))
            bench.tell(str(condition.wait(5.0)))

    bench.task(waiter)
    bench.scheduler.at(2.0, condition.notify)
    bench.run()
    assert bench.told == [("True", 2.0), ("False", 7.0)]


def test_a_queue_gives_each_item_to_one_taker(bench: Bench) -> None:
    queue = SimpleQueue(bench.scheduler)
    for name in "ab":
        bench.task(lambda name=name: bench.tell(f"{name} {queue.get()}"))  # type: ignore[misc]
    bench.scheduler.at(1.0, queue.put, 1)
    bench.scheduler.at(2.0, queue.put, 2)
    bench.run()
    assert bench.told == [("a 1", 1.0), ("b 2", 2.0)]


def test_a_thread_is_joined_when_it_ends(bench: Bench) -> None:
    def main() -> None:
        thread = bench.stage.threading.Thread(target=lambda: bench.scheduler.sleep(2.0), name="other", daemon=True)
        assert not thread.is_alive()
        thread.start()
        assert thread.is_alive()
        thread.join(1.0)
        bench.tell(str(thread.is_alive()))
        thread.join()
        bench.tell(str(thread.is_alive()))

    bench.task(main)
    bench.run()
    assert bench.crew.errors == []
    assert bench.told == [("True", 1.0), ("False", 2.0)]


def test_who_stopped_waiting_for_a_thread_is_not_woken_by_its_end(bench: Bench) -> None:
    """Its next wait, perhaps for an answer, must not end because of it; history 5079 found that it did."""

    def main() -> None:
        thread = bench.stage.threading.Thread(target=lambda: bench.scheduler.sleep(2.0), name="other", daemon=True)
        thread.start()
        thread.join(1.0)
        bench.tell(str(bench.scheduler.park(10.0) is TIMEOUT))

    bench.task(main)
    bench.run()
    assert bench.told == [("True", 11.0)]


def test_a_frozen_process_goes_on_later_with_all_that_it_missed(bench: Bench) -> None:
    def sleeper() -> None:
        bench.scheduler.sleep(1.0)
        bench.tell("slept")

    bench.task(sleeper)
    bench.scheduler.at(0.5, lambda: setattr(bench.crew, "frozen", True))
    bench.scheduler.at(4.0, bench.scheduler.thaw, bench.crew)
    bench.run()
    assert bench.told == [("slept", 4.0)]


def test_a_dead_process_never_goes_on(bench: Bench) -> None:
    ended = []

    def sleeper() -> None:
        try:
            bench.scheduler.sleep(1.0)
        except Over:
            ended.append(bench.scheduler.over)
            raise

    bench.task(sleeper)
    bench.task(lambda: bench.tell("another process"), Crew())
    bench.scheduler.at(0.5, lambda: setattr(bench.crew, "dead", True))
    bench.run()
    assert (bench.told, ended) == ([("another process", 0.0)], [])
    bench.scheduler.end()
    assert ended == [True]


def test_a_dead_process_can_wait_for_nothing(bench: Bench) -> None:
    def dying() -> None:
        bench.crew.dead = True
        try:
            bench.scheduler.sleep(1.0)
        finally:
            bench.tell("over")

    bench.task(dying)
    bench.run()
    assert bench.told == [("over", 0.0)]
    assert bench.crew.errors == []


def test_what_comes_too_late_wakes_nobody(bench: Bench) -> None:
    def waiter() -> None:
        task = bench.scheduler.task()
        bench.scheduler.wake_at(3.0, task, task.ticket, "late")
        assert bench.scheduler.park(1.0) is TIMEOUT
        assert bench.scheduler.park(9.0) is TIMEOUT
        bench.tell("patient")

    bench.task(waiter)
    bench.run()
    assert bench.crew.errors == []
    assert bench.told == [("patient", 10.0)]


def test_time_never_goes_back(bench: Bench) -> None:
    def waiter() -> None:
        bench.scheduler.sleep(5.0)
        task = bench.scheduler.task()
        bench.scheduler.wake_at(1.0, task, task.ticket, "overdue")
        assert bench.scheduler.park(3.0) == "overdue"
        bench.tell("woken")

    bench.task(waiter)
    bench.run()
    assert bench.crew.errors == []
    assert bench.told == [("woken", 5.0)]


def test_an_error_is_told_to_its_process(bench: Bench) -> None:
    def fails() -> None:
        raise LookupError("no")

    bench.task(fails)
    bench.task(lambda: bench.tell("others go on"))
    bench.run()
    assert [str(error) for error in bench.crew.errors] == ["no"]
    assert bench.told == [("others go on", 0.0)]


def test_an_error_of_what_happens_meanwhile_is_not_that_of_who_waits(bench: Bench) -> None:
    def fails() -> None:
        raise LookupError("no")

    def waiter() -> None:
        try:
            bench.scheduler.sleep(2.0)
        except LookupError:
            bench.tell("heard of it")

    bench.task(waiter)
    bench.scheduler.at(1.0, fails)
    with pytest.raises(LookupError, match="no"):
        bench.run()
    bench.scheduler.end()
    assert bench.told == []
    assert bench.crew.errors == []


def test_who_is_resumed_next_can_be_who_waits(bench: Bench) -> None:
    def alone() -> None:
        for _ in range(3):
            bench.scheduler.sleep(1.0)
            bench.scheduler.at(bench.scheduler.now + 0.5, bench.tell, "meanwhile")
        bench.tell("done")

    bench.task(alone)
    bench.run()
    assert bench.told == [("meanwhile", 1.5), ("meanwhile", 2.5), ("done", 3.0), ("meanwhile", 3.5)]


def test_nothing_happens_after_a_stop(bench: Bench) -> None:
    bench.scheduler.at(1.0, bench.scheduler.stop)
    bench.scheduler.at(1.0, bench.tell, "too late")
    bench.task(lambda: bench.scheduler.sleep(2.0))
    bench.run()
    assert bench.told == []


def test_a_history_without_end_is_noticed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_MOST_STEPS", 1000)

    def spins() -> None:
        while True:
            bench.scheduler.sleep(0.0)

    bench.task(spins)
    with pytest.raises(Stuck, match="1001 steps were planned"):
        bench.run()
    bench.scheduler.end()


def test_greenlets_are_used_again(bench: Bench) -> None:
    for _ in range(3):
        bench.task(lambda: bench.scheduler.sleep(1.0))
    bench.run(0.5)
    bench.scheduler.end()
    first = set(bench.stage.bodies._idle)
    again = Scheduler(bench.stage.bodies, lambda: 0.0)
    for _ in range(3):
        again.spawn(bench.crew, "task", lambda: bench.tell("again"))
    again.run(1.0)
    assert len(bench.told) == 3
    assert set(bench.stage.bodies._idle) == first
