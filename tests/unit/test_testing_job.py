"""`FakeJob`: a handler is tested in three lines, and meets nothing there that it would not meet in a worker."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tenure import App, BadResult, BadSettings, Job, LeaseLost, Misuse, NotAllowed, State, Token
from tenure.testing.job import FakeJob

app = App("memory://")


@app.task(queue="billing", lease=12, max_attempts=3)
def charge(job: Job, order: int, cents: int) -> str:
    """Charge one order, in one step."""
    job.progress({"done": 0})
    with job.effect(seconds=2):
        receipt = job.step("charge", lambda: f"receipt for {order}")
    job.progress({"done": 1})
    return f"order {order}: {cents} cents, {receipt}"


@app.task
async def publish(job: Job, page: str) -> str:
    """Publish one page, in one step."""

    async def send() -> str:
        return f"sent {page}"

    with job.effect(seconds=2):
        sent = await job.step_async("send", send)
    await job.progress_async(100)
    return sent


def test_a_plain_handler_runs_and_what_it_did_can_be_read() -> None:
    job = FakeJob()
    assert charge(job, order=7, cents=1200) == "order 7: 1200 cents, receipt for 7"
    assert job.steps == {"charge": "receipt for 7"}
    assert job.progress_values == [{"done": 0}, {"done": 1}]
    assert isinstance(job, Job)


def test_an_async_handler_runs_and_what_it_did_can_be_read() -> None:
    job = FakeJob()
    assert asyncio.run(publish(job, page="home")) == "sent home"
    assert (job.steps, job.progress_values) == ({"send": "sent home"}, [100])


def test_a_new_run_is_the_first_of_a_new_job() -> None:
    job = FakeJob()
    assert (job.id, job.generation, job.token, job.attempt) == ("job-1", 1, Token("job-1", 1), 1)
    assert (job.queue, job.task, job.trace, job.cancelled) == ("default", "task", None, False)
    assert (job.steps, job.progress_values) == ({}, [])
    assert job.record.state is State.RUNNING


def test_a_run_is_made_to_measure() -> None:
    job = FakeJob(charge, id="order-7", generation=7, attempt=3, trace="00-a-b-01")
    assert (job.token, job.attempt, job.trace) == (Token("order-7", 7), 3, "00-a-b-01")
    assert (job.queue, job.task, job.lease.duration) == ("billing", "charge", 12)
    assert FakeJob(charge.options(queue="urgent"), lease=5).lease.duration == 5
    assert FakeJob(queue="urgent").queue == "urgent"
    assert FakeJob(attempt=2).generation == 2


def test_a_job_that_waits_for_its_time_is_run_at_once() -> None:
    assert FakeJob(charge.options(delay=60)).attempt == 1


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"attempt": 0}, "attempt is 0: 1 to 5"),
        ({"attempt": 6}, "attempt is 6: 1 to 5"),
        ({"attempt": 0, "max_attempts": None}, "attempt is 0: 1 to any number"),
        ({"attempt": 3, "generation": 2}, "generation is 2 and attempt 3: each attempt has a generation of its own"),
        ({"generation": 0}, "generation is 0 and attempt 1"),
        ({"colour": "red"}, "has no option colour"),
        ({"priority": 1000}, "priority is 1000"),
    ],
)
def test_a_run_that_could_not_be_is_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises((Misuse, BadSettings), match=told):
        FakeJob(**asked)


def test_the_lease_never_ends_by_itself_and_is_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    job = FakeJob(lease=10)
    left = job.lease.remaining()
    monkeypatch.setattr("tenure.clock.time.clock_gettime", lambda _: 1e9)
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert job.lease.remaining() == left
    assert 9 < left < 10
    with pytest.raises(LeaseLost, match="the effect may take 20 s"), job.effect(20):
        pytest.fail("an effect began that is longer than the lease")
    job.lease.extend(60)
    with job.effect(20):
        pass


def test_a_lease_ends_when_its_time_has_passed() -> None:
    job = FakeJob(lease=10)
    job.advance(5)
    job.check()
    job.advance(5)
    with pytest.raises(LeaseLost, match="its time ran out"):
        job.check()


TELLINGS: list[Callable[[Job], object]] = [
    lambda job: job.check(),
    lambda job: job.progress(1),
    lambda job: job.step("other", lambda: 1),
    lambda job: asyncio.run(job.progress_async(1)),
    lambda job: job.lease.extend(60),
]


@pytest.mark.parametrize("write", TELLINGS)
def test_a_lost_lease_stops_every_write(write: Callable[[Job], object]) -> None:
    job = FakeJob()
    job.step("first", lambda: 1)
    job.lose("the tests say so")
    assert (job.cancelled, job.stop_reason) == (True, "the tests say so")
    with pytest.raises(LeaseLost):
        write(job)
    assert (job.steps, job.progress_values) == ({"first": 1}, [])


def test_a_loss_of_which_nobody_told_is_met_at_the_next_write() -> None:
    job = FakeJob()
    job.app.client.cancel([job.id])
    job.check()
    with pytest.raises(LeaseLost, match="the job is cancelled under generation 2"):
        charge(job, order=7, cents=1200)


def test_a_step_that_came_too_late_is_none_of_the_steps() -> None:
    job = FakeJob()
    with pytest.raises(LeaseLost, match="the job is cancelled"):
        job.step("charge", lambda: job.app.client.cancel([job.id]) and "receipt")
    assert job.steps == {}


def test_a_handler_is_asked_to_stop_as_a_worker_asks() -> None:
    job = FakeJob()
    job.ask_to_stop("the worker is shutting down")
    with pytest.raises(LeaseLost, match="shutting down"):
        job.check()


def test_the_next_run_takes_over_and_remembers_the_steps() -> None:
    first = FakeJob(charge, generation=7)
    charge(first, order=7, cents=1200)
    second = first.next_run()
    assert (second.generation, second.attempt, second.queue) == (8, 1, "billing")
    assert second.step("charge", lambda: "done twice") == "receipt for 7"
    second.step("mail", lambda: "sent")
    assert second.steps == {"charge": "receipt for 7", "mail": "sent"}
    with pytest.raises(LeaseLost, match="generation 8 took over"):
        first.progress(1)


def test_the_next_run_follows_a_loss() -> None:
    first = FakeJob()
    first.lose()
    assert first.next_run().generation > first.generation


@pytest.mark.parametrize("given", ["address", "store"])
def test_a_handler_that_works_in_the_stores_own_database(tmp_path: Path, given: str) -> None:
    own = App(f"sqlite:///{tmp_path}/shop.db")
    job = FakeJob(store=f"sqlite:///{tmp_path}/shop.db" if given == "address" else own.store)
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop:
        with pytest.raises(BadResult, match="charge"):
            FakeJob(charge, id="job-0", store=own.store).complete(shop, 7)
        shop.execute("BEGIN IMMEDIATE")
        job.complete(shop, "fine")
        shop.execute("COMMIT")
    assert own.client.get(job.id).state is State.COMPLETED
    with pytest.raises(Misuse, match="job job-1 is in sqlite:////.*shop.db already"):
        FakeJob(store=own.store)
    with pytest.raises(NotAllowed):
        job.next_run()
    late = FakeJob(store=own.store, id="job-2")
    late.advance(31)
    with pytest.raises(LeaseLost):
        late.check()
    job.app.close()
    own.close()


def test_a_clock_that_cannot_be_moved_is_named() -> None:
    class Immovable:
        name = "immovable://"

        def __init__(self) -> None:
            self._store = App("memory://").store

        def __getattr__(self, name: str) -> Any:
            if name == "shift_clock":
                raise AttributeError(name)
            return getattr(self._store, name)

    store: Any = Immovable()
    with pytest.raises(Misuse, match="the clock of immovable:// cannot be moved"):
        FakeJob(store=store).advance(1)
