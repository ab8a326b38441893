"""What counts as a finding beside what the judge says, and what a run says of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tenure.testing.simulation import MARKS, Theatre, run, threads
from tenure.testing.simulation.marks import Marks
from tenure.worker.feeder import Feeder
from tenure.worker.warden import Warden

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"


def test_a_part_of_a_worker_that_fails_is_a_finding(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_feeder: Feeder) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(Feeder, "round", fails)
    played = theatre.play(1)
    assert any("a part of the worker failed: ValueError('unforeseen')" in found for found in played.violations)


def test_an_error_in_shutdown_is_a_finding(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_warden: Warden) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(Warden, "stop", fails)
    report = run(theatre, 1, histories=60, most_findings=1)
    ((played, _),) = report.broken
    assert any(": ValueError: unforeseen" in found for found in played.violations)
    assert not report.good


def test_a_history_that_comes_to_no_end_is_a_finding(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_MOST_STEPS", 50)
    assert any("steps were planned by" in found for found in theatre.play(1).violations)


def test_a_simulation_that_fails_names_its_seed(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_marks: Marks, _changes: object, _tick: float) -> None:
        raise ValueError("a mistake of the simulation")

    monkeypatch.setattr(Marks, "changed", fails)
    with pytest.raises(ValueError, match="a mistake of the simulation") as caught:
        theatre.play(7)
    assert caught.value.__notes__ == ["while playing the history of seed 7"]


def test_a_mark_that_stands_for_nothing_is_a_mistake() -> None:
    with pytest.raises(LookupError, match="there is no mark 'typo'"):
        Marks().reach("typo")


def test_every_mark_is_told_of() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [mark for mark, meaning in MARKS.items() if f"| {mark} | {meaning} |" not in page] == []


def test_without_greenlet_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['greenlet'] = None; import tenure.testing.simulation"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "ImportError: the simulation needs greenlet: pip install 'tenure[simulation]'" in ran.stderr
