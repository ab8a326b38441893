"""Standard streams that are closed or full, or whose reader has gone: what was not told is never called done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenure import App, State
from tenure.cli import main
from tests.cli.conftest import Module
from tests.support.processes import wait_for

FULL, CLOSED, GONE = ">/dev/full", ">&-", "gone"
SHOP = """
from tenure import App
app = App(STORE)
@app.task(max_attempts=1)
def greet() -> None:
    print("hello", flush=True)
"""


def tenure(*words: str, streams: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tenure` in a process of its own whose streams the shell has laid out."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m tenure "$@" {streams}', sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environment,
        check=False,
    )


@pytest.mark.parametrize("words", [("jobs", "list"), ("--version",), ("--help",), ("jobs",)])
@pytest.mark.parametrize(("streams", "why"), [(FULL, "No space left on device"), (CLOSED, "it is closed")])
def test_an_answer_that_cannot_be_written_is_one_line_and_a_code(
    store: str, words: tuple[str, ...], streams: str, why: str
) -> None:
    assert store
    ended = tenure(*words, streams=streams)
    said = f"tenure: cannot write to standard output: {why}; what was asked for may be done\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (74, "", said)


@pytest.mark.parametrize("words", [("jobs", "list"), ("version",), ("demo",), ("enqueue", "any", "--id", "one")])
def test_in_json_it_is_one_document(app: App, words: tuple[str, ...]) -> None:
    app.tasks["charge"].enqueue(7)
    ended = tenure(*words, "--json", streams=FULL)
    assert (ended.returncode, ended.stdout) == (74, "")
    told = json.loads(ended.stderr)
    assert (told["error"], told["exit"]) == ("Unheard", 74)
    if "one" in words:
        assert app.client.get("one").state is State.AVAILABLE


def test_a_reader_that_has_gone_is_told_nothing_and_the_code_tells_of_it(app: App) -> None:
    app.tasks["charge"].enqueue(7)
    for words in (("jobs", "list"), ("jobs", "list", "--json"), ("--help",)):
        reader, writer = os.pipe()
        os.close(reader)
        with subprocess.Popen([sys.executable, "-m", "tenure", *words], stdout=writer, stderr=subprocess.PIPE) as child:
            os.close(writer)
            assert (child.communicate(timeout=60)[1], child.returncode) == (b"", 141), words


def test_what_is_done_in_steps_tells_how_far_it_got(app: App) -> None:
    app.tasks["charge"].options(id="one").enqueue(7)
    ended = tenure("jobs", "cancel", "one", "--json", streams=FULL)
    assert ended.returncode == 74
    assert json.loads(ended.stderr.splitlines()[0]) == {"so_far": "1 cancelled"}


@pytest.mark.parametrize(
    ("words", "streams", "code"),
    [
        ("version", "2>&-", 0),
        ("jobs show nobody", "2>&-", 3),
        ("jobs show nobody", "<&- 2>&-", 3),
        ("jobs show nobody", "2>/dev/full", 3),
        ("nonsense", "2>&-", 2),
    ],
)
def test_without_standard_error_the_code_is_the_same(
    app: App, tmp_path: Path, words: str, streams: str, code: int
) -> None:
    app.tasks["charge"].options(id="one").enqueue(7)
    ended = tenure(*words.split(), streams=streams)
    assert (ended.returncode, ended.stdout[:7], ended.stderr) == (code, "" if code else "Tenure ", "")
    assert (tmp_path / "jobs.db").read_bytes().startswith(b"SQLite format 3"), "nothing is written into the store"


def test_without_any_stream_nothing_is_written_into_the_store(app: App, tmp_path: Path) -> None:
    ended = tenure("enqueue", "charge", "order=7", "--id", "one", streams="<&- >&- 2>&-")
    assert ended.returncode == 74
    assert app.client.get("one").state is State.AVAILABLE
    assert (tmp_path / "jobs.db").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("words", [("enqueue", "any", "-"), ("jobs", "cancel", "--all")])
def test_a_standard_input_that_is_closed_is_empty(store: str, words: tuple[str, ...]) -> None:
    assert store
    ended = tenure(*words, streams="<&-")
    assert ended.returncode == 2
    assert ended.stderr.count("tenure: ") == 1
    assert "unexpected" not in ended.stderr


def test_a_character_that_the_encoding_lacks_is_escaped(app: App) -> None:
    app.tasks["charge"].options(queue="naïve 🐢").enqueue(7)
    told = tenure("queues", PYTHONIOENCODING="ascii:strict")
    assert told.returncode == 0, told.stderr
    assert "na\\xefve \\U0001f422" in told.stdout


def test_a_worker_without_standard_output_lets_its_handlers_print(app: App, module: Module, tmp_path: Path) -> None:
    name = module(SHOP)
    assert tenure("enqueue", "greet", "--app", f"{name}:app", "--id", "one").returncode == 0
    words = [sys.executable, "-m", "tenure", "worker", "--app", f"{name}:app"]
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" "$@" >&-', *words], stderr=log)
    try:
        wait_for(lambda: app.client.get("one").finished_at, 30, "the job to end")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.wait()
    assert app.client.get("one").state is State.COMPLETED


def test_streams_that_somebody_has_replaced_stay(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdin, sys.stdout, sys.stderr
    assert main(["version"]) == 0
    assert (sys.stdin, sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out.startswith("Tenure ")
