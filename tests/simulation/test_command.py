from __future__ import annotations

import re
import shlex

import pytest

from tenure.fences import rule
from tenure.fences.rule import Bid, Mark
from tenure.testing.simulation import __main__ as command
from tenure.testing.simulation import runner


@pytest.fixture
def torn_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fences accept everything."""

    def accepts(_mark: Mark | None, bid: Bid) -> Mark:
        return bid.mark

    monkeypatch.setattr(rule, "judge", accepts)


def test_a_run_says_what_it_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--histories", "30", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "simulating on the memory store, seeds from 1 on" in out
    assert re.search(r"30 histories +[\d,]+ a minute \([\d,]+ of processor time\) +\d+ of \d+ marks +0 broken", out)
    assert re.search(r"^ +[1-9]\d*  takeover: a job whose lease had ended was taken over$", out, re.MULTILINE)
    assert out.endswith("nothing broke\n")


def test_a_run_ends_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seconds", "0.5"]) == 0
    assert "nothing broke" in capsys.readouterr().out


def test_a_long_run_that_misses_a_mark_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ENOUGH", 2)
    monkeypatch.setattr(command, "ENOUGH", 2)
    assert command.main(["--histories", "2"]) == 1
    assert re.search(r"^NOT REACHED: [\w ]+$", capsys.readouterr().out, re.MULTILINE)


def replayed(out: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command that the report of a broken history names."""
    found = re.search(r"replay: python -m tenure\.testing\.simulation (.+)$", out, re.MULTILINE)
    assert found is not None
    assert command.main(shlex.split(found[1])) == 1
    return capsys.readouterr().out


@pytest.mark.usefixtures("torn_fence")
def test_a_broken_history_can_be_replayed_by_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--histories", "200", "--first"]) == 1
    out = capsys.readouterr().out
    broken = re.search(r"^  (I[89]: scope .+)$", out, re.MULTILINE)
    assert broken is not None
    assert "1 histories broke" in out
    told = replayed(out, capsys)
    assert f"BROKEN {broken[1]}" in told
    assert re.search(r"^   0\.0000  w1\.1 +starts$", told, re.MULTILINE)


@pytest.mark.usefixtures("torn_fence")
def test_a_broken_history_of_a_search_can_be_replayed_by_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--exhaustive", "--program", "update", "--first"]) == 1
    told = replayed(capsys.readouterr().out, capsys)
    assert re.search(r"BROKEN I[89]: scope j0", told)


def test_a_search_that_is_cut_short_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--exhaustive", "--program", "step", "--seconds", "0.01"]) == 0
    out = capsys.readouterr().out
    assert "every history with at most 2 deviations among its first 24 choices" in out
    assert "NOT WHOLE" in out
