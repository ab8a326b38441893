"""`tenure prove` that is ended from outside: whoever cancels it finds nothing left behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenure.cli.prove import _ended_by_signals
from tenure.cli.root import app as command_line
from tenure.proof.prove.runner import Progress
from tests.proof.rooms import no_room_of_its_own
from tests.support.processes import Processes, wait_for

ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Give the signals their handlers back."""
    before = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "faults"), [(signal.SIGTERM, "pause"), (signal.SIGHUP, "pause"), (signal.SIGTERM, "disk,pause")]
)
def test_a_run_that_is_cancelled_leaves_nothing(number: signal.Signals, faults: str, tmp_path: Path) -> None:
    if "disk" in faults and no_room_of_its_own():
        return  # where the fault is refused
    made = tmp_path / "made"
    made.mkdir()
    with Processes(tmp_path) as processes:
        words = ("-m", "tenure", "prove", "--managed", "sqlite", "--faults", faults)
        run = processes.python(*words, environment={"TMPDIR": str(made)})
        wait_for(lambda: list(made.glob("tenure-prove-*/worker-1.jsonl")), 60, "the first worker to start")
        assert len(list(made.iterdir())) == 1 + ("disk" in faults)
        run.signal(number)
        assert run.wait() == 130
        assert run.stderr.read_text() == "tenure: interrupted\n"
    assert list(made.iterdir()) == []


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_it_is_cleared_away_interrupts_nothing(number: signal.Signals) -> None:
    with handlers_kept():
        before = signal.getsignal(number)
        with pytest.raises(KeyboardInterrupt), _ended_by_signals():
            try:
                signal.raise_signal(number)
            finally:
                for again in ENDING:
                    signal.raise_signal(again)
        assert signal.getsignal(number) is before


def test_an_interrupt_that_was_lost_is_made_up_for() -> None:
    with handlers_kept(), pytest.raises(KeyboardInterrupt), _ended_by_signals() as go_on:
        go_on()
        with suppress(KeyboardInterrupt):  # as a finalizer does
            signal.raise_signal(signal.SIGTERM)
        go_on()


def test_a_run_that_lost_its_interrupt_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_plan: object, _folder: object, *, progress: Progress) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        progress(1.0)

    monkeypatch.setattr("tenure.proof.prove.apart.prove", lost)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with handlers_kept():
        told = CliRunner().invoke(command_line, ["prove"], prog_name="tenure")
    assert (told.exit_code, told.stderr) == (130, "tenure: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_who_insists_is_heard() -> None:
    with handlers_kept(), pytest.raises(KeyboardInterrupt), _ended_by_signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_a_run_that_is_to_outlive_its_terminal_does() -> None:
    with handlers_kept():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with _ended_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_beside_the_main_thread_no_signal_is_handled() -> None:
    found: list[object] = []

    def look() -> None:
        with _ended_by_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]
