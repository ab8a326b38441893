"""What can befall a job, by a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tenure import App, Job, LeaseLost, Misuse, OutcomeUnknown, StaleToken, State, Unavailable
from tenure.protocol.lifecycle import Verb
from tenure.testing.plugin.kit import Kit
from tenure.testing.plugin.stage import Stage
from tests.worker.bench import Clock, ScriptedStore


def in_handler(kit: Kit, app: App, body: Callable[[Job], object], **options: float) -> str:
    """Enqueue a job whose handler is `body`, once; a later run of it does nothing."""
    begun: list[int] = []

    @app.task(lease=options.get("lease", 30.0), timeout=options.get("timeout"))
    def work(job: Job) -> None:
        begun.append(job.generation)
        if len(begun) == 1:
            body(job)

    return work.enqueue().id


def test_time_passes_and_a_worker_keeps_its_lease(tenure_kit: Kit, tenure_app: App) -> None:
    def body(job: Job) -> None:
        tenure_kit.advance(1000)
        job.check()

    job = in_handler(tenure_kit, tenure_app, body)
    (one,) = tenure_kit.drain()
    assert (one.verb, one.stored, tenure_app.client.get(job).takeovers) == (Verb.COMPLETE, True, 0)


def test_a_paused_worker_is_told_by_the_clock_alone(tenure_kit: Kit, tenure_app: App) -> None:
    seen: list[object] = []

    def body(job: Job) -> None:
        tenure_kit.pause()
        seen.append(tenure_app.client.get(job.id).generation)
        job.check()

    job = in_handler(tenure_kit, tenure_app, body)
    first, second = tenure_kit.drain()
    assert seen == [1]
    assert isinstance(first.error, LeaseLost)
    assert (first.verb, first.stored, first.generation) == (None, False, 1)
    assert (second.verb, second.stored, second.generation) == (Verb.COMPLETE, True, 2)
    assert tenure_app.client.get(job).takeovers == 1


def test_a_pause_shorter_than_the_lease_loses_nothing(tenure_kit: Kit, tenure_app: App) -> None:
    def body(job: Job) -> None:
        tenure_kit.pause(20)
        with job.effect(seconds=5):
            pass

    in_handler(tenure_kit, tenure_app, body)
    assert len(tenure_kit.drain()) == 1


def test_a_pause_is_longer_than_an_extended_lease_too(tenure_kit: Kit, tenure_app: App) -> None:
    def body(job: Job) -> None:
        job.lease.extend(3600)
        tenure_kit.pause()
        job.check()

    in_handler(tenure_kit, tenure_app, body)
    first, second = tenure_kit.drain()
    assert (first.verb, second.verb) == (None, Verb.COMPLETE)


def test_a_late_end_stands_while_nobody_else_has_claimed(tenure_kit: Kit, tenure_app: App) -> None:
    in_handler(tenure_kit, tenure_app, lambda job: tenure_kit.pause())
    (one,) = tenure_kit.drain()
    assert (one.verb, one.stored, one.generation) == (Verb.COMPLETE, True, 1)


def test_another_worker_runs_the_job_while_the_first_stands_still(tenure_kit: Kit, tenure_app: App) -> None:
    told: list[object] = []

    def body(job: Job) -> None:
        tenure_kit.pause()
        told.extend(tenure_kit.drain())

    job = in_handler(tenure_kit, tenure_app, body)
    (late,) = tenure_kit.drain()
    (rival,) = told
    assert (rival.verb, rival.stored, rival.generation) == (Verb.COMPLETE, True, 2)  # type: ignore[attr-defined]
    assert (late.generation, late.stored) == (1, False)
    record = tenure_app.client.get(job)
    assert (record.state, record.generation, record.takeovers) == (State.COMPLETED, 2, 1)


def test_a_time_limit_is_watched(tenure_kit: Kit, tenure_app: App) -> None:
    def body(job: Job) -> None:
        tenure_kit.advance(6)
        job.check()

    in_handler(tenure_kit, tenure_app, body, timeout=5)
    with pytest.raises(LeaseLost, match="longer than its limit of 5 s"):
        tenure_kit.drain()


def test_an_async_handler_is_cancelled_at_its_time_limit(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task(timeout=5)
    async def work() -> None:
        tenure_kit.advance(6)
        await asyncio.Event().wait()

    work.enqueue()
    (one,) = tenure_kit.drain(raises=False)
    assert one.failure is not None
    assert one.failure.type == "TimeLimit"


def test_a_job_is_taken_over_now(tenure_kit: Kit, tenure_app: App) -> None:
    def body(job: Job) -> None:
        hold = tenure_kit.take_over(worker="bea")
        assert hold.generation > job.generation
        job.check()  # nobody has told it
        with pytest.raises(LeaseLost, match="bea"):
            job.progress(1)

    job = in_handler(tenure_kit, tenure_app, body)
    (one,) = tenure_kit.drain()
    assert (one.verb, one.stored) == (Verb.COMPLETE, False)
    assert tenure_app.client.get(job).worker == "bea"


def test_who_took_over_can_end_the_job_and_lose_it_too(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None: ...

    job = work.enqueue()
    first = tenure_kit.take_over(job)
    second = tenure_kit.take_over(job.id)
    with pytest.raises(StaleToken):
        first.complete()
    second.release()
    (one,) = tenure_kit.drain()
    assert one.generation > second.generation


def test_a_cut_store_cannot_be_asked_and_leases_end(tenure_kit: Kit, tenure_app: App) -> None:
    def body(job: Job) -> None:
        with tenure_kit.cut_store():
            with pytest.raises(Unavailable):
                job.progress(1)
            with pytest.raises(Unavailable):
                tenure_app.client.get(job.id)
            tenure_kit.advance(20)
            job.check()
            tenure_kit.advance(20)
            with pytest.raises(LeaseLost):
                job.check()
        raise LeaseLost(job.id, job.generation, "it stops as it should")

    in_handler(tenure_kit, tenure_app, body)
    first, second = tenure_kit.drain()
    assert (first.verb, second.verb, second.generation) == (None, Verb.COMPLETE, 2)


def test_a_lost_answer_was_carried_out(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work(number: int) -> None: ...

    with tenure_kit.lose_answers():
        with pytest.raises(OutcomeUnknown):
            work.options(id="job-1").enqueue(number=1)
        with pytest.raises(OutcomeUnknown):
            tenure_app.client.get("no such job")
    assert not work.options(id="job-1").enqueue(number=1).created
    tenure_kit.assert_enqueued(work, number=1)


def test_the_async_client_is_cut_off_too(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None: ...

    async def test() -> None:
        with tenure_kit.cut_store(), pytest.raises(Unavailable):
            await work.enqueue_async()
        with tenure_kit.lose_answers(), pytest.raises(OutcomeUnknown):
            await work.enqueue_async()
        with tenure_kit.cut_store(), tenure_app.store.transaction() as own, pytest.raises(Unavailable):  # type: ignore[attr-defined] # a memory store has it
            await work.options(connection=own).enqueue_async()
        await tenure_app.aclient.close()

    asyncio.run(test())
    assert len(tenure_kit.enqueued(work)) == 1


def test_a_worker_that_cannot_settle_keeps_its_lease_once_it_can_renew(tenure_kit: Kit, tenure_app: App) -> None:
    job = in_handler(tenure_kit, tenure_app, lambda job: tenure_kit.cut_store())
    with pytest.raises(Unavailable):
        tenure_kit.drain()
    tenure_kit.cut_store().mend()
    tenure_kit.advance(100)
    remaining = tenure_app.client.get(job).lease_remaining
    assert remaining is not None
    assert remaining > 0
    tenure_kit.drain()
    assert tenure_app.client.get(job).takeovers == 0


@pytest.mark.parametrize("ask", [lambda kit: kit.pause(), lambda kit: kit.job, lambda kit: kit.take_over()])
def test_outside_of_a_handler_there_is_no_run(tenure_kit: Kit, ask: Callable[[Kit], object]) -> None:
    with pytest.raises(Misuse, match="no run is under way"):
        ask(tenure_kit)


def test_time_does_not_go_back(tenure_kit: Kit) -> None:
    with pytest.raises(Misuse, match="goes forward only"):
        tenure_kit.advance(-1)


def test_a_store_whose_clock_cannot_be_moved_is_refused() -> None:
    class Immovable(ScriptedStore):
        name = "immovable://"

    store: object = Immovable()
    assert Clock() is not None
    with pytest.raises(Misuse, match="the clock of immovable:// cannot be moved"):
        Stage(App("memory://"), store)  # type: ignore[arg-type] # no store at all, which is not what is asked here
