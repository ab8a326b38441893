"""Handlers in child processes: they round-trip, they can always be stopped, and they take nothing down with them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure import App, Filter, State, Task
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.clocks import Clocks
from tenure.worker import spawn
from tenure.worker.spawn import Spawned
from tenure.worker.worker import Worker
from tests.support.processes import wait_for
from tests.worker import process_tasks as tasks
from tests.worker.bench import Clock
from tests.worker.processes import PATIENCE, children, gone, over, result, waits, when, written

Start = Callable[..., Worker]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    tasks.app.use_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    tasks.app.store.migrate()
    yield tasks.app
    tasks.app.close()


@pytest.fixture
def start(app: App) -> Iterator[Start]:
    """Start a worker with one process, which is stopped after the test and must leave no child behind."""
    before = children()
    workers = []

    def begin(**settings: Any) -> Worker:
        workers.append(app.worker(processes=1, **settings))
        workers[-1].start()
        return workers[-1]

    yield begin
    for worker in workers:
        worker.stop(grace=0.0)
    wait_for(lambda: children() <= before, PATIENCE, "no child to be left behind")


# -- how a run ends


def test_a_result_comes_back(app: App, start: Start) -> None:
    start()
    assert result(app, tasks.add.enqueue(a=40, b=2).id) == 42


def test_a_process_serves_many_runs(app: App, start: Start) -> None:
    start()
    pids = {result(app, tasks.pid.enqueue().id) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_b20_for_processes_nothing_is_claimed_ahead(app: App, start: Start) -> None:
    jobs = [one.id for one in tasks.add.enqueue_many([{"a": 1, "b": 1}] * 200)]
    start()
    most = 0

    def all_are_done() -> bool:
        nonlocal most
        most = max(most, len(app.client.find(Filter(state=State.RUNNING))))
        return app.client.get(jobs[-1]).state is State.COMPLETED

    wait_for(all_are_done, PATIENCE, "many short jobs to be done")
    assert most == 1


def kill_the_idle_one(app: App) -> None:
    """Let a process run a job, and kill it then."""
    first = result(app, tasks.pid.enqueue().id)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: gone(first), PATIENCE, "the idle process to be gone")


def test_a_process_that_died_while_idle_is_replaced(app: App, start: Start) -> None:
    start()
    kill_the_idle_one(app)
    record = over(app, tasks.pid.enqueue().id)
    assert (record.state, record.attempts) == (State.COMPLETED, 0)


def test_a_process_that_dies_as_it_gets_a_run_is_replaced_too(
    app: App, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    kill_the_idle_one(app)
    monkeypatch.setattr(Spawned, "idle", lambda _: True)  # as it looks until the kernel has closed what it had open
    record = over(app, tasks.pid.enqueue().id)
    assert (record.state, record.attempts) == (State.COMPLETED, 0)


def test_b13_a_process_that_dies_before_its_first_run_begins_is_a_failed_attempt(
    app: App, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    monkeypatch.setattr(spawn, "_PROGRAM", "import os; os._exit(3)")
    record = waits(app, tasks.pid.enqueue().id)
    assert record.attempts == 1
    assert record.failure is not None
    assert (record.failure.type, record.failure.message) == (
        "ProcessDied",
        "its process ended by itself with exit status 3",
    )


def test_an_idle_process_is_ended_in_an_orderly_way(
    app: App, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience in ("spawn._LEAVE", "process._REAP"):
        monkeypatch.setattr(f"tenure.worker.{patience}", PATIENCE)  # the machine may be busy
    worker, file = start(), tmp_path / "file"
    assert over(app, tasks.last_words.enqueue(file=str(file)).id).state is State.COMPLETED
    worker.stop()
    assert file.read_text() == "closed in order"


def test_a_process_that_cannot_be_started_is_a_failed_attempt(
    app: App, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    record = waits(app, tasks.pid.enqueue().id)
    assert record.failure is not None
    assert record.failure.type == "FileNotFoundError"


def test_a_failure_keeps_its_type_place_and_traceback(app: App, start: Start) -> None:
    start()
    record = waits(app, tasks.fail.enqueue(message="out of paper").id)
    assert record.attempts == 1
    assert record.failure is not None
    assert (record.failure.type, record.failure.message) == ("ValueError", "out of paper")
    assert record.failure.where.startswith("process_tasks.py:")
    assert record.failure.where.endswith("in fail")
    assert "raise ValueError(message)" in record.failure.traceback


def test_a_handler_that_exits_has_failed_and_its_process_goes_on(app: App, start: Start) -> None:
    start()
    record = waits(app, tasks.leave.enqueue().id)
    assert record.failure is not None
    assert record.failure.type == "SystemExit"
    assert result(app, tasks.add.enqueue(a=1, b=1).id) == 2


def test_retry_and_snooze_say_when(app: App, start: Start) -> None:
    start()
    retried, snoozed = waits(app, tasks.retry.enqueue().id), waits(app, tasks.snooze.enqueue().id)
    assert (retried.attempts, retried.reason) == (1, "not today")
    assert (snoozed.attempts, snoozed.reason) == (0, "too early")
    for record in (retried, snoozed):
        assert (record.run_at - record.now).total_seconds() > 3000


def test_a_result_that_cannot_be_stored_ends_the_job(app: App, start: Start) -> None:
    start()
    record = over(app, tasks.unstorable.enqueue().id)
    assert record.state is State.DISCARDED
    assert record.failure is not None
    assert record.failure.type == "BadResult"


# -- what a handler is given


def test_the_job_is_what_it_is_in_a_thread(app: App, start: Start) -> None:
    start()
    job = tasks.describe.enqueue().id
    told = result(app, job)
    before, after = told.pop("before"), told.pop("after")
    assert told == {
        "id": job,
        "generation": 1,
        "attempt": 1,
        "queue": "default",
        "task": "describe",
        "cancelled": False,
    }
    assert 0 < before < 30
    assert 30 < after < 600
    assert app.client.get(job).progress == f'{{"token":"{job}:1"}}'


def test_a_step_is_done_once_and_remembered(app: App, start: Start, tmp_path: Path) -> None:
    start()
    file = tmp_path / "effects"
    job = tasks.once.enqueue(file=str(file)).id
    assert result(app, job) == "paidpaid"
    assert file.read_text() == "done\n"
    assert app.client.get(job).progress == '"half"'


def test_a_forked_process_does_not_own_the_lease(app: App, start: Start) -> None:
    start()
    assert "a forked child does not own it" in result(app, tasks.fork.enqueue().id)


def test_the_programs_that_a_handler_starts_do_not_ignore_signals(app: App, start: Start) -> None:
    start()
    assert result(app, tasks.terminate.enqueue().id) == -signal.SIGTERM


# -- a run that must stop


def test_a_lost_lease_kills_the_process(app: App, start: Start) -> None:
    start(beat=0.1)
    job = tasks.loop.enqueue().id
    when(app, job, lambda record: record.state is State.RUNNING)
    app.client.cancel([job])
    assert result(app, tasks.add.enqueue(a=1, b=2).id) == 3
    assert app.client.get(job).state is State.CANCELLED


def test_a_request_under_a_stale_token_is_refused_and_ends_the_process(app: App, start: Start, tmp_path: Path) -> None:
    start(beat=10.0)  # so that no renewal tells of the loss first
    file = tmp_path / "file"
    job = tasks.outlive.enqueue(file=str(file)).id
    assert written(file) == "running"
    app.client.cancel([job])
    file.write_text("go")
    assert result(app, tasks.add.enqueue(a=1, b=2).id) == 3  # its slot is free, 60 s before the handler would return
    assert app.client.get(job).progress is None


@pytest.mark.parametrize("task", [tasks.endless, tasks.asleep], ids=["loop", "C sleep with the interpreter's lock"])
def test_the_time_limit_kills_and_frees_the_slot(app: App, start: Start, task: Task[..., ..., None]) -> None:
    start()
    hung = task.enqueue().id
    healthy = tasks.add.enqueue(a=2, b=2).id
    assert result(app, healthy) == 4
    record = over(app, hung)
    assert record.state is State.DISCARDED
    assert record.failure is not None
    assert record.failure.type == "TimeLimit"


def test_what_a_handler_started_is_killed_with_it(app: App, start: Start, tmp_path: Path) -> None:
    start(beat=0.1)
    file = tmp_path / "pid"
    job = tasks.parent_of.enqueue(file=str(file)).id
    grandchild = int(written(file))
    app.client.cancel([job])
    wait_for(lambda: gone(grandchild), PATIENCE, "the handler's own child to be gone")


def test_a_shutdown_releases_what_does_not_end_in_time(app: App, start: Start) -> None:
    worker = start()
    job = tasks.loop.enqueue().id
    when(app, job, lambda record: record.state is State.RUNNING)
    worker.stop(grace=0.0)
    record = app.client.get(job)
    assert (record.state, record.attempts, record.takeovers) == (State.AVAILABLE, 0, 0)


# -- a process that ends by itself


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("SIGKILL", "was killed by SIGKILL"),
        ("segfault", "was killed by SIGSEGV"),
        ("exit", "ended by itself with exit status 3"),
    ],
)
def test_a_poison_job_fails_and_harms_nobody(app: App, start: Start, how: str, words: str) -> None:
    start()
    poison = tasks.die.enqueue(how=how).id
    healthy = [tasks.add.enqueue(a=n, b=1).id for n in range(3)]
    assert [result(app, job) for job in healthy] == [1, 2, 3]
    record = when(app, poison, lambda record: record.attempts > 0)
    assert record.takeovers == 0
    assert record.failure is not None
    assert record.failure.type == "ProcessDied"
    assert words in record.failure.message


def test_a_process_left_behind_by_a_fork_does_not_hide_the_death(app: App, start: Start, tmp_path: Path) -> None:
    start()
    file = tmp_path / "pid"
    record = waits(app, tasks.leaves_a_fork_behind.enqueue(file=str(file)).id)
    assert record.failure is not None
    assert "exit status 4" in record.failure.message
    os.kill(int(file.read_text()), signal.SIGKILL)


# -- renewals do not depend on the handler, nor the handler's clock on the worker


def test_a_handler_that_holds_the_interpreter_for_three_leases_runs_once(
    app: App, start: Start, tmp_path: Path
) -> None:
    """The leases pass on a clock of worker and store, which goes on when the last renewal has come."""
    clock, lease = Clock(), tasks.greedy.defaults.lease
    app.use_store(SqliteStore(str(tmp_path / "jobs.db"), clocks=Clocks(boot=clock)))
    start(clock=clock, beat=0.05)
    file, pipe = tmp_path / "runs", tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = os.open(pipe, os.O_RDWR)
    job = tasks.greedy.enqueue(file=str(file), pipe=str(pipe)).id
    assert written(file) == "run\n"
    for _ in range(10):
        clock.advance(lease / 3)  # of what the store has renewed last, the worker may not have heard yet
        when(app, job, lambda record: record.lease_remaining == lease)
    os.write(writing, b"!")
    assert result(app, job) == "woke up"
    assert file.read_text() == "run\n"
    os.close(writing)
