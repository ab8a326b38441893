"""A worker of a store whose generations are used up says so: its claims find nothing, as if nothing were due."""

from __future__ import annotations

import pytest

from tenure import App
from tenure.ids import new_owner
from tenure.protocol.events import Emitter, Event, Kind
from tenure.protocol.job import WorkerRecord
from tenure.store.contract import MAX_GENERATION
from tenure.testing.conformance import Subject
from tenure.worker.upkeep import Upkeep
from tests.support.processes import wait_for


@pytest.fixture
def told() -> list[Event]:
    return []


def spent(told: list[Event]) -> list[Event]:
    return [event for event in told if event.kind is Kind.GENERATIONS_SPENT]


def test_r4_a_worker_that_can_claim_nothing_any_more_says_so(
    subject: Subject, told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    subject.set_floor(MAX_GENERATION)
    app = App(subject.store)
    app.events.subscribe(told.append)

    @app.task
    def work() -> None:
        raise AssertionError("no generation is left for it")

    job = work.enqueue().id
    worker = app.worker(retention=None)
    worker.start()
    try:
        wait_for(lambda: bool(spent(told)), 20.0, "the worker to complain")
    finally:
        worker.stop(grace=0)
    assert app.client.get(job).generation == 0
    [record] = [record for record in caplog.records if "generations used up" in record.getMessage()]
    assert record.levelname == "ERROR"
    assert f"{app.store.name}: its floor is {MAX_GENERATION}" in record.getMessage()
    assert "no job can be claimed there any more: open a new store" in record.getMessage()


def test_r4_it_is_said_once_a_minute_for_as_long_as_it_lasts(subject: Subject, told: list[Event]) -> None:
    now = 1000.0
    app, emitter = App(subject.store), Emitter()
    emitter.subscribe(told.append)
    me = WorkerRecord(new_owner(), "ada", "host", 1, ("default",), 1, subject.store.now(), 0.0, 0)
    upkeep = Upkeep(app, me, None, emitter=emitter, crashed=lambda *_: None, clock=lambda: now)
    driver = subject.store.connect(timeout=20.0)
    for floor, often in [(MAX_GENERATION - 2, 0), (MAX_GENERATION - 1, 1), (MAX_GENERATION, 1), (0, 0)]:
        told.clear()
        subject.set_floor(floor)
        for _ in range(6):
            upkeep.report(driver)
            now += 10.0
        assert len(spent(told)) == often
