"""Jobs that wait for a task which nobody runs are told of, by the workers that serve their queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure import App
from tenure.ids import new_owner
from tenure.protocol.events import Emitter, Event, Kind
from tenure.protocol.job import WorkerRecord
from tenure.store.contract import Driver
from tenure.testing.conformance import Subject
from tenure.worker.upkeep import Upkeep

Report = Callable[[], list[tuple[str | None, str]]]


@pytest.fixture
def driver(subject: Subject) -> Driver:
    return subject.store.connect(timeout=20.0)


@pytest.fixture
def report(subject: Subject, driver: Driver) -> Report:
    """Report as a worker of the task `known` does every 10 s, and return what it told: of which task, and what."""
    app, emitter, told = App(subject.store), Emitter(), list[Event]()
    app.task(name="known")(lambda: None)
    emitter.subscribe(told.append)
    now = iter(range(1000, 9000, 10))
    me = WorkerRecord(new_owner(), "ada", "host", 1, ("default", "mail"), 1, subject.store.now(), 0.0, 0)
    upkeep = Upkeep(app, me, None, emitter=emitter, crashed=lambda *_: None, clock=lambda: next(now))

    def again() -> list[tuple[str | None, str]]:
        told.clear()
        upkeep.report(driver)
        assert {event.kind for event in told} <= {Kind.TASK_UNKNOWN}
        return [(event.task, event.detail) for event in told]

    return again


def enqueue(subject: Subject, task: str, queue: str = "default") -> str:
    app = App(subject.store)
    return app.task(name=task, queue=queue)(lambda: None).enqueue().id


def test_a_task_of_which_jobs_wait_and_which_nobody_runs_is_told_once(subject: Subject, report: Report) -> None:
    job = enqueue(subject, "typo", "mail")
    assert report() == []
    subject.store.shift_clock(29.0)
    assert report() == []
    subject.store.shift_clock(2.0)
    [(task, detail)] = report()
    assert task == "typo"
    assert detail.startswith("its jobs wait in queue mail, one of them due for 31 s, and the app of this worker has no")
    assert "--app" in detail
    enqueue(subject, "typo", "mail")
    subject.store.shift_clock(100.0)
    assert report() == []
    enqueue(subject, "other")
    subject.store.shift_clock(31.0)
    assert [task for task, _ in report()] == ["other"]
    App(subject.store).client.cancel([job])


def test_what_this_worker_runs_or_does_not_serve_may_wait(subject: Subject, report: Report) -> None:
    enqueue(subject, "known")
    enqueue(subject, "typo", "elsewhere")
    subject.store.shift_clock(1000.0)
    assert report() == []
    assert report() == []
