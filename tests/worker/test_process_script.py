"""Whole workers whose tasks are in the script that starts them: signals, deaths, and what cannot be found."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tenure import App, BadSettings, Filter, State
from tenure.protocol.job import NewJob
from tests.support.processes import Processes, wait_for
from tests.worker.processes import PATIENCE, gone, over, written

SCRIPT = """
import ctypes
import logging
import os
import sys
import time
from pathlib import Path

from tenure import App, Job

app = App(sys.argv[1])


@app.task(isolation="process", lease=4)
def watch(job: Job, file: str) -> None:
    while True:
        Path(file).write_text(f"{os.getpid()} {'lost' if job.lease.lost else 'held'}")
        time.sleep(0.01)


@app.task(isolation="process", lease=60)
def greedy(file: str) -> None:
    Path(file).write_text(f"{os.getpid()} ")
    ctypes.PyDLL(None).sleep(600)


@app.task(isolation="process", lease=60)
def patient(file: str) -> str:
    Path(file).write_text(f"{os.getpid()} waits")
    while Path(file).read_text() != "go":
        time.sleep(0.01)
    return "finished"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    app.worker(processes=1, grace=60.0).run()
"""


class Program:
    """The script at work on one job, which writes its process id and more into a file."""

    def __init__(self, folder: Path, processes: Processes, task: str, script: str, lease: float) -> None:
        self.file = folder / "file"
        address = f"sqlite:///{folder / 'jobs.db'}"
        self.app = App(address)
        self.app.store.migrate()
        arguments = msgspec.json.encode({"file": str(self.file)}).decode()
        self.app.client.enqueue([NewJob("job", task, arguments, max_attempts=1, lease=lease)])
        path = folder / "shop.py"
        path.write_text(script)
        self.worker = processes.python(path, address)

    def job_process(self) -> int:
        """Wait for the job's process and return its id."""
        return int(written(self.file).split()[0])

    def await_words(self, words: str) -> None:
        """Wait until the file reads so; while it is written it is empty for a moment."""
        wait_for(lambda: self.file.read_text() == words, PATIENCE, f"the job to write {words!r}")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []
    with Processes(tmp_path) as processes:

        def begin(task: str, script: str = SCRIPT, lease: float = 60.0) -> Program:
            started.append(Program(tmp_path, processes, task, script, lease))
            return started[-1]

        yield begin
    for each in started:
        each.app.close()


@pytest.mark.parametrize("task", ["watch", "greedy"])
def test_a_killed_worker_takes_its_process_along(program: Callable[..., Program], task: str) -> None:
    running = program(task)
    child = running.job_process()
    running.worker.kill()
    wait_for(lambda: gone(child), PATIENCE, "the job's process to be gone")


def test_the_lease_ends_by_the_clock_while_the_worker_is_frozen(program: Callable[..., Program]) -> None:
    running = program("watch", lease=4.0)
    child = running.job_process()
    running.await_words(f"{child} held")
    running.worker.stop()
    running.await_words(f"{child} lost")
    running.worker.cont()
    wait_for(lambda: gone(child), PATIENCE, "the woken worker to kill the job's process")


def test_signals_to_every_process_let_the_job_finish(program: Callable[..., Program]) -> None:
    running = program("patient")
    child = running.job_process()
    running.worker.signal(signal.SIGTERM, group=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(child, number)
    wait_for(lambda: "worker stopping" in running.worker.stderr.read_text(), PATIENCE, "the worker to hear of it")
    running.file.write_text("go")
    assert running.worker.wait(PATIENCE) == 0
    record = running.app.client.get("job")
    assert (record.state, record.result, record.attempts) == (State.COMPLETED, '"finished"', 0)
    assert gone(child)


def test_a_script_that_starts_a_worker_when_imported_is_told_what_to_write(program: Callable[..., Program]) -> None:
    running = program("watch", SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    record = over(running.app, "job")
    assert record.failure is not None
    assert record.failure.type == "Misuse"
    assert 'put what does that under `if __name__ == "__main__":`' in record.failure.message


def test_a_script_that_enqueues_when_imported_does_not_multiply_its_jobs(program: Callable[..., Program]) -> None:
    enqueues = 'greedy.options(delay=3600, max_attempts=1).enqueue(file="")\n\n\nif __name__'
    running = program("watch", SCRIPT.replace("if __name__", enqueues))
    record = over(running.app, "job")
    assert record.failure is not None
    assert record.failure.type == "Misuse"
    assert "enqueues a job when a child process imports it" in record.failure.message
    assert len(running.app.client.find(Filter(task="greedy"))) == 1  # by the worker's own process


# -- what a child could not find is refused at start


def test_an_app_without_a_place_in_a_module_is_refused(tmp_path: Path) -> None:
    hidden = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    hidden.store.migrate()

    @hidden.task(isolation="process")
    def nowhere() -> None: ...

    with pytest.raises(BadSettings, match=r"nowhere has isolation='process'.*at the top level of a module"):
        hidden.worker().start()
    hidden.close()


def test_an_interactive_session_is_refused(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        told = processes.python("-c", INTERACTIVE, f"sqlite:///{tmp_path / 'jobs.db'}")
        assert told.wait() == 1
        assert "BadSettings: task local has isolation='process'" in told.stderr.read_text()


INTERACTIVE = """
import sys
from tenure import App
app = App(sys.argv[1])
app.store.migrate()

@app.task(isolation="process")
def local() -> None: ...

app.worker().start()
"""
