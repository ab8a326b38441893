"""Bugs of the track record that no other test reproduces; see `docs/track-record.md`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

import tenure
from tenure import App, BadSettings, Job, Misuse
from tenure.cli.exits import Exit
from tenure.protocol.ending import completed
from tenure.store.sqlite.bell import FileBell
from tenure.testing.servers import Postgres
from tenure.worker.channel import Begun, Ended, Place
from tenure.worker.keeper import Keeper
from tenure.worker.process import ProcessExecutor
from tenure.worker.run import Run, Runs
from tenure.worker.slot import Slot
from tenure.worker.warden import Warden
from tests.worker.bench import APP, VERBS, Clock, ScriptedStore, Told, new_run
from tests.worker.feeding import FeederBench

LIMIT, START = 5.0, 20.0


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(tenure.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        check=False,
        capture_output="stdout" not in options,
        timeout=60,
        **options,
    )


# -- the time limit of a job in a child process counted the start of the process


class SlowProcess:
    """A child process that takes long to start and to load the program, and then runs the handler for a moment."""

    def __init__(self, clock: Clock, run: Run) -> None:
        self.clock = clock
        self.run = run
        self.end = self
        self.deadlines: list[float] = []

    def put(self, _lease: object) -> None:
        """Take the end of the lease."""

    def send(self, _message: object) -> None:
        """Begin."""

    def receive(self) -> Begun | Ended:
        if not self.deadlines:
            self.clock.advance(START)
            self.deadlines.append(self.clock())
            return Begun()
        self.deadlines.append(self.run.deadline or 0.0)
        return Ended(completed(self.run.lease.token, "null"))


def test_a_time_limit_does_not_count_how_long_a_process_takes_to_start() -> None:
    clock = Clock()
    executor = ProcessExecutor(1, APP)
    run = new_run(clock, executor, timeout=LIMIT, lease=600.0)
    process = SlowProcess(clock, run)
    slot = Slot(APP, {"work": Place((), "app", ())}, lambda: cast("Any", process), lambda _run, _process: True)
    run.begins()  # as any executor's slots are shared out
    slot.outcome(run)
    began, deadline = process.deadlines
    assert deadline == began + LIMIT


# -- a signal that came while the main thread waited could stop the worker from ever hearing of it

INTERRUPTED = """
import sys
from tenure import App

app = App("memory://")

@app.task
def work() -> None: ...

worker = app.worker(grace=0)

def interrupt(frame, event, argument):
    sys.settrace(None)
    worker.request_stop()
    sys.settrace(interrupt)
    return interrupt

sys.settrace(interrupt)
worker.run()
sys.settrace(None)
assert worker._stops > 100, worker._stops
"""


def test_a_signal_may_come_at_any_line_of_the_main_thread() -> None:
    """A trace function is called wherever a signal's handler can be: between any two lines, whatever lock is held."""
    ran = python("-c", INTERRUPTED)
    assert ran.returncode == 0, ran.stderr


# -- a wake-up that came in the wrong moment was slept through

LONG, SOON = 30.0, 10.0


def test_a_feeder_that_is_stopped_just_before_it_forgets_its_ring_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.worker.feeder.LOOK", LONG)
    bench = FeederBench()

    class Ring(threading.Event):
        def clear(self) -> None:
            if not bench.feeder._stopped:
                bench.feeder.stop(0.0)
            super().clear()

    monkeypatch.setattr(bench.feeder, "_wake", Ring())
    bench.feeder.start()
    bench.feeder._part.join(SOON)
    assert not bench.feeder._part._thread.is_alive()


def test_a_warden_that_is_woken_while_it_looks_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.worker.warden._LOOK", LONG)
    told, runs, clock = Told(), Runs(), Clock()
    keeper = Keeper(ScriptedStore(), VERBS, "owner-1", on_lost=lambda *_: None, emitter=told.emitter, clock=clock)
    warden = Warden(runs, keeper, told.emitter, patience=LONG, crashed=lambda _error: None, clock=clock)
    looked = threading.Semaphore(0)
    looks: list[float] = []

    def look() -> float:
        if not looks:
            warden.wake()  # as whoever brings a run that ends sooner does
        looks.append(clock())
        looked.release()
        return clock() + LONG

    monkeypatch.setattr(warden, "look", look)
    warden.start()
    assert looked.acquire(timeout=SOON)
    assert looked.acquire(timeout=SOON)
    warden.stop()


# -- an extended lease was shortened by the next renewal


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[App]:
    with ExitStack() as stack:
        address = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/jobs.db"}.get(request.param)
        address = address or stack.enter_context(Postgres.start()).create_database()
        app = App(address)
        app.store.migrate()
        stack.callback(app.close)
        yield app


@pytest.mark.parametrize("seconds", [None, 10.0], ids=["renewal", "shorter extension"])
def test_no_lease_is_shortened_in_the_store(app: App, seconds: float | None) -> None:
    hold = app.claim("lock", owner="ada", duration=30.0)
    hold.renew(300.0)
    hold.renew(seconds)
    remaining = app.client.get("lock").lease_remaining
    assert remaining is not None
    assert 200.0 < remaining <= 300.0


# -- an idle worker asked its file 500 times a second


def test_a_bell_asks_hardly_ever_while_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    app.client.queues()
    bell = FileBell(tmp_path / "jobs.db")
    asked: list[int] = []
    ask = bell._version

    def counted() -> int:
        asked.append(ask())
        return asked[-1]

    monkeypatch.setattr(bell, "_version", counted)
    bell.wait(0.5)
    listens_to_the_kernel = bell._log is not None
    bell.close()
    app.close()
    assert len(asked) <= (5 if listens_to_the_kernel else 110)


# -- smaller ones


def test_a_hold_is_not_completed_with_what_is_no_json() -> None:
    hold = App("memory://").claim("lock", owner="ada")
    with pytest.raises(Misuse, match="the result"):
        hold.complete("not JSON")
    hold.complete('"JSON"')


@pytest.mark.parametrize("year", [1, 1969, 9001, 9999])
def test_a_job_is_not_due_where_no_store_can_count(year: int) -> None:
    app = App("memory://")

    @app.task
    def work(job: Job) -> None: ...

    with pytest.raises(BadSettings, match=f"run_at is in the year {year}"):
        work.options(run_at=datetime(year, 6, 1, tzinfo=UTC))


def test_a_reader_that_has_seen_enough_gets_no_traceback(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task
    def work(number: int) -> None: ...

    work.enqueue_many([{"number": number} for number in range(1000)])
    app.close()
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody_reads:
        words = ["jobs", "list", "--json", "--limit", "1000", "--store", f"sqlite:///{tmp_path}/jobs.db"]
        ran = python("-m", "tenure", *words, stdout=nobody_reads, stderr=subprocess.PIPE)
    assert (ran.returncode, ran.stderr) == (Exit.UNREAD, b"")
