"""Drain and inline: a worker's own logic, one run at a time, in the thread of the test."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tenure import App, Discard, Job, Retry, Snooze, State, Unavailable
from tenure.protocol.lifecycle import Verb
from tenure.testing.plugin.kit import Kit


def test_nothing_runs_before_the_drain(tenure_kit: Kit, tenure_app: App) -> None:
    ran: list[int] = []

    @tenure_app.task
    def work(number: int) -> int:
        ran.append(number)
        return number

    first, second = work.enqueue(number=1), work.enqueue(number=2)
    assert ran == []
    told = tenure_kit.drain()
    assert ran == [1, 2]
    assert [(one.job, one.verb, one.stored) for one in told] == [
        (first.id, Verb.COMPLETE, True),
        (second.id, Verb.COMPLETE, True),
    ]
    assert tenure_app.client.get(second.id).result == "2"
    assert tenure_kit.drain() == []


def test_no_thread_is_started_and_no_time_passes(tenure_kit: Kit, tenure_app: App) -> None:
    seen: list[tuple[set[threading.Thread], str, float]] = []

    @tenure_app.task
    def work(job: Job) -> None:
        seen.append(({*threading.enumerate()}, threading.current_thread().name, job.lease.remaining()))

    before = {*threading.enumerate()}  # some of another test may be about to end
    work.enqueue_many([{}, {}, {}])
    tenure_kit.drain()
    assert [threads - before for threads, _, _ in seen] == [set()] * 3
    assert {name for _, name, _ in seen} == {threading.current_thread().name}
    assert len({left for _, _, left in seen}) == 1


def test_jobs_run_by_priority_and_in_the_queues_asked_for(tenure_kit: Kit, tenure_app: App) -> None:
    ran: list[str] = []

    @tenure_app.task
    def work(name: str) -> None:
        ran.append(name)

    work.enqueue(name="plain")
    work.options(priority=5).enqueue(name="urgent")
    work.options(queue="mail").enqueue(name="mail")
    tenure_kit.drain("mail")
    assert ran == ["mail"]
    tenure_kit.drain()
    assert ran == ["mail", "urgent", "plain"]


def test_what_a_handler_enqueues_runs_in_the_same_drain(tenure_kit: Kit, tenure_app: App) -> None:
    ran: list[str] = []

    @tenure_app.task
    def child() -> None:
        ran.append("child")

    @tenure_app.task
    def parent() -> None:
        child.options(queue="elsewhere").enqueue()
        ran.append("parent")

    parent.enqueue()
    tenure_kit.drain()
    assert ran == ["parent", "child"]


def test_what_is_not_due_waits_for_its_time(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None: ...

    work.options(delay=60).enqueue()
    assert tenure_kit.drain() == []
    tenure_kit.advance(61)
    assert len(tenure_kit.drain()) == 1


def test_an_error_comes_out_of_the_drain_after_all_have_run(tenure_kit: Kit, tenure_app: App) -> None:
    ran: list[int] = []

    @tenure_app.task
    def work(number: int) -> None:
        ran.append(number)
        if number != 2:
            raise ValueError(f"number {number}")

    work.enqueue_many([{"number": number} for number in (1, 2, 3)])
    with pytest.raises(ValueError, match="number 1") as raised:
        tenure_kit.drain()
    assert ran == [1, 2, 3]
    assert "task work" in raised.value.__notes__[0]


def test_an_error_is_stored_as_a_worker_stores_it(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task(max_attempts=2)
    def work() -> None:
        raise ValueError("no")

    job = work.enqueue()
    (one,) = tenure_kit.drain(raises=False)
    assert isinstance(one.error, ValueError)
    record = tenure_app.client.get(job.id)
    assert (record.phase, record.attempts, record.failure and record.failure.type) == ("retryable", 1, "ValueError")
    tenure_kit.advance(3600)
    tenure_kit.drain(raises=False)
    assert tenure_app.client.get(job.id).state is State.DISCARDED


@pytest.mark.parametrize(
    ("end", "state"), [(Retry(5), State.AVAILABLE), (Snooze(5), State.AVAILABLE), (Discard("no"), State.DISCARDED)]
)
def test_an_end_that_the_handler_chose_is_no_error(
    tenure_kit: Kit, tenure_app: App, end: Exception, state: State
) -> None:
    @tenure_app.task
    def work() -> None:
        raise end

    job = work.enqueue()
    tenure_kit.drain()
    assert tenure_app.client.get(job.id).state is state


def test_a_result_that_cannot_be_stored_is_an_error(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> int:
        return "seven"  # type: ignore[return-value] # what the test is about

    work.enqueue()
    with pytest.raises(AssertionError, match="BadResult"):
        tenure_kit.drain()


def test_a_handler_that_never_ends_ends_the_drain(
    tenure_kit: Kit, tenure_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.testing.plugin.stage._MOST", 10)

    ran: list[int] = []

    @tenure_app.task
    def work(job: Job) -> None:
        ran.append(job.generation)
        raise Snooze(0)

    work.enqueue()
    with pytest.raises(AssertionError, match="10 jobs were run and more are due: does work snooze"):
        tenure_kit.drain()
    assert len(ran) == 10


def test_an_async_handler_runs_in_a_drain(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    job = work.enqueue(number=7)
    tenure_kit.drain()
    assert tenure_app.client.get(job.id).result == "7"


def test_an_async_drain_runs_on_the_loop_of_the_test(tenure_kit: Kit, tenure_app: App) -> None:
    loops: list[object] = []

    @tenure_app.task
    async def work() -> None:
        loops.append(asyncio.get_running_loop())

    @tenure_app.task
    def plain() -> None: ...

    async def test() -> None:
        await work.enqueue_async()
        await plain.enqueue_async()
        assert len(await tenure_kit.drain_async()) == 2
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(test())


def test_a_drain_inside_a_loop_runs_async_handlers_beside_it(tenure_kit: Kit, tenure_app: App) -> None:
    ran: list[str] = []

    @tenure_app.task
    async def work() -> None:
        await asyncio.sleep(0)
        ran.append("work")

    async def test() -> None:
        await work.enqueue_async()
        tenure_kit.drain()

    asyncio.run(test())
    assert ran == ["work"]


def test_a_test_that_is_cancelled_ends(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with asyncio.timeout(0.01):
            await tenure_kit.drain_async()

    job = work.enqueue()
    with pytest.raises(TimeoutError):
        asyncio.run(test())
    record = tenure_app.client.get(job.id)  # as when a worker dies: the lease has to end
    assert (record.state, record.attempts) == (State.RUNNING, 0)


def test_inline_an_enqueue_runs_the_job_before_it_returns(tenure_inline: Kit, tenure_app: App) -> None:
    ran: list[str] = []

    @tenure_app.task
    def child() -> None:
        ran.append("child")

    @tenure_app.task
    def parent() -> None:
        child.enqueue()
        ran.append("parent")

    parent.enqueue()
    assert ran == ["parent", "child"]
    with tenure_app.store.transaction() as connection:  # type: ignore[attr-defined] # a memory store has it
        child.options(connection=connection).enqueue()
        assert len(ran) == 2
    assert len(ran) == 3


def test_inline_an_error_comes_out_of_the_enqueue(tenure_inline: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        work.enqueue()


def test_inline_async(tenure_inline: Kit, tenure_app: App) -> None:
    ran: list[object] = []

    @tenure_app.task
    async def work() -> None:
        ran.append(asyncio.get_running_loop())

    async def test() -> None:
        await work.enqueue_async()
        assert ran == [asyncio.get_running_loop()]
        async with tenure_app.store.atransaction() as connection:  # type: ignore[attr-defined] # a memory store has it
            await work.options(connection=connection).enqueue_async()
        assert len(ran) == 2

    asyncio.run(test())


def test_a_drain_while_the_store_is_cut_says_so(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None:
        tenure_kit.cut_store()

    job = work.enqueue()
    with pytest.raises(Unavailable):
        tenure_kit.drain()
    assert tenure_app.store.verbs is not None
    cut = tenure_kit.cut_store()
    cut.mend()
    (one,) = tenure_kit.drain()  # the same worker settles what it could not settle before
    assert (one.verb, one.stored) == (Verb.COMPLETE, True)
    assert tenure_app.client.get(job.id).generation == 1
