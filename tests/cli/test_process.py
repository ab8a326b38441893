"""`python -m tenure` as a process of its own: signals, exit codes, and what is on which stream."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from tenure import App, State, __version__
from tests.cli.conftest import Module
from tests.support.processes import Child, Processes, wait_for

SHOP = """
from pathlib import Path
import time
from tenure import App
app = App(STORE)

@app.task(secret=("password",), max_attempts=1)
def fail(password: str, note: str) -> None:
    inner = password + note
    raise RuntimeError(f"declined {inner}")

@app.task(max_attempts=1)
def wait() -> str:
    Path("started").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return "result-text"
"""


@pytest.fixture
def processes(tmp_path: Path, store: str) -> Iterator[Processes]:
    assert store
    folder = tmp_path / "output"
    folder.mkdir()
    with Processes(folder) as started:
        yield started


def start(processes: Processes, *words: str) -> Child:
    here = {"PYTHONPATH": os.fspath(Path(tenure.__file__).parents[1])}
    return processes.python("-m", "tenure", *words, environment=here)


def test_a_worker_ends_gracefully_on_sigterm_and_logs_no_value(
    app: App, module: Module, processes: Processes, tmp_path: Path
) -> None:
    name = module(SHOP)
    done = start(processes, "enqueue", "wait", "--app", f"{name}:app", "--id", "waits", "--queue", "q")
    assert done.wait() == 0
    words = ("password=declared-secret", "note=plain-argument", "--id", "fails", "--queue", "q")
    assert start(processes, "enqueue", "fail", *words, "--app", f"{name}:app").wait() == 0
    worker = start(
        processes, "worker", "--app", f"{name}:app", "--queue", "other,q", "--name", "A", "--log-level", "debug"
    )
    wait_for((tmp_path / "started").exists, 20, "the first job to run")
    wait_for(lambda: app.client.get("fails").state is State.DISCARDED, 20, "the other job to fail")
    assert start(processes, "workers", "--alive-within", "30s", "--name", "A").wait() == 0
    worker.signal(signal.SIGTERM)
    wait_for(lambda: "worker stopping" in worker.stderr.read_text(), 20, "the worker to stop claiming")
    (tmp_path / "go").touch()
    assert worker.wait(20) == 0
    assert app.client.get("waits").state is State.COMPLETED
    assert start(processes, "workers", "--alive-within", "30s").wait() == 1
    log = worker.stderr.read_text()
    assert worker.stdout.read_text() == ""
    assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (DEBUG|INFO|WARNING) tenure", line) for line in log.splitlines())
    first = log.splitlines()[0]
    for part in (__version__, "worker A", "jobs.db (durable", "queues other, q", "tasks fail, wait", "in threads"):
        assert part in first
    assert "RuntimeError at " in log
    assert not [value for value in ("declared-secret", "plain-argument", "declined", "result-text") if value in log]


def test_a_worker_in_json_tells_its_banner_and_logs_lines(module: Module, processes: Processes) -> None:
    worker = start(processes, "worker", "--app", f"{module(SHOP)}:app", "--json", "--name", "A", "--slots", "3")
    wait_for(lambda: "worker started" in worker.stderr.read_text(), 20, "the worker to start")
    worker.signal(signal.SIGINT)
    assert worker.wait(20) == 0
    (banner,) = worker.stdout.read_text().splitlines()
    told = json.loads(banner)
    assert (told["worker"], told["queues"], told["slots"], told["pid"]) == ("A", ["default"], 3, worker.pid)
    log = [json.loads(line) for line in worker.stderr.read_text().splitlines()]
    assert {line["level"] for line in log} == {"INFO"}
    assert log[-1]["message"] == "worker stopped"


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("jobs", "list"), 0, None),
        (("jobs", "show", "nobody"), 3, "NotFound"),
        (("queues", "--store", "postgresql://u:p%40ss@127.0.0.1:1/x"), 4, "Unavailable"),
        (("workers", "--alive-within", "1"), 1, "Unhealthy"),
        (("worker",), 2, "Misuse"),
        (("worker", "--app", "nothing:app"), 2, "Misuse"),
        (("nonsense",), 2, "Usage"),
    ],
)
def test_exit_codes_and_pure_streams(
    processes: Processes, words: tuple[str, ...], code: int, error: str | None
) -> None:
    ended = start(processes, *words, "--json")
    assert ended.wait(30) == code
    assert ended.stdout.read_text() == ""
    told = [json.loads(line) for line in ended.stderr.read_text().splitlines()]
    assert [line["error"] for line in told] == ([] if error is None else [error])


def test_a_bad_setting_of_a_worker_names_its_numbers(module: Module, processes: Processes) -> None:
    ended = start(processes, "worker", "--app", f"{module(SHOP)}:app", "--beat", "30s")
    assert ended.wait() == 2
    assert "beat is 30 s and task" in ended.stderr.read_text()
    assert ended.stderr.read_text().count("\n") == 1
