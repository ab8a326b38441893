from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tenure.fences import rule
from tenure.fences.rule import Bid, Mark
from tenure.proof.history import History, read
from tenure.proof.judge import judge
from tenure.testing.simulation import __main__ as command
from tenure.testing.simulation import runner


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make no forks, which tests with threads must not, whatever this host has."""
    monkeypatch.setattr(command, "processors", lambda: 1)


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--seconds 0", "'0' is no number of seconds, above 0 and finite"),
        ("--seconds nan", "'nan' is no number of seconds"),
        ("--seconds=-1", "'-1' is no number of seconds"),
        ("--seconds inf", "'inf' is no number of seconds"),
        ("--exhaustive --depth=-1", "argument --depth: '-1' is no number from 0 upwards"),
        ("--exhaustive --deviations=-1", "argument --deviations: '-1' is no number from 0 upwards"),
        ("--histories 0", "'0' is no number from 1 upwards"),
        ("--seconds 2 --write here.jsonl", "--trace and --write play one history alone"),
        ("--histories 2 --trace", "--trace and --write play one history alone"),
        ("--first --trace", "--trace and --write play one history alone"),
        ("--processes 0", "argument --processes: '0' is no number from 1 upwards"),
        ("--processes 2 --trace", "--trace and --write play one history alone"),
        ("--processes 2 --exhaustive", "--processes share none"),
        ("--program update", "add --exhaustive"),
        ("--choices 0 --trace", "add --exhaustive, and --trace or --write"),
        ("--exhaustive --choices 0", "add --exhaustive, and --trace or --write"),
        ("--exhaustive --choices 0,x --trace", "'x' is no number from 0 upwards"),
        ("--exhaustive --histories 3", "--histories ends no search"),
        ("--seed 5 --trace --write /nowhere/at/all", "cannot write /nowhere/at/all"),
        ("--seed 5 --write .", "cannot write ."),
    ],
)
def test_a_mistake_in_the_call_is_told_before_anything_is_played(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(shlex.split(words))
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert says in told.err


def test_choices_that_are_none_are_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--exhaustive", "--choices", "0,999", "--trace"]) == 2
    assert re.search(r"^--choices: choice 1 is between \d+ options, and 999 was asked for$", capsys.readouterr().err)


def test_a_history_is_written_for_the_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "5", "--write", str(tmp_path / "run.jsonl")]) == 0
    assert capsys.readouterr().out.startswith("history 5, digest ")
    assert judge(read([tmp_path / "run.jsonl"])).good


def test_a_history_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_history: History, _path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "write", full)
    assert command.main(["--seed", "5", "--write", str(tmp_path / "run.jsonl")]) == 2
    assert capsys.readouterr().err.endswith("run.jsonl: No space left on device\n")
