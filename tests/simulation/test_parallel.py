"""A run in several processes comes to what it comes to in one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.testing.simulation.parallel import _parts, processors
from tenure.testing.simulation.runner import Report
from tenure.testing.simulation.theatre import Theatre

TORN = """
import sys
from tenure.fences import rule
rule.judge = lambda _mark, bid: bid.mark
from tenure.testing.simulation.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def ran(program: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, since it makes forks."""
    command = [sys.executable, *program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def told(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a run said, without how fast it was and in how many processes."""
    return "".join(line for line in done.stdout.splitlines(keepends=True)[1:] if " a minute " not in line)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_run_in_two_processes_comes_to_the_same(store: str) -> None:
    words = ("--histories=50", "--seed=7", f"--store={store}")
    runs = [ran(["-m", "tenure.testing.simulation"], *words, f"--processes={number}") for number in (1, 2)]
    assert [done.returncode for done in runs] == [0, 0]
    assert [done.stdout.splitlines()[0].rpartition(", in ")[2] for done in runs] == ["1 process", "2 processes"]
    assert told(runs[0]) == told(runs[1])
    assert all(re.search(r" 50 histories ", done.stdout) for done in runs)


def test_a_run_in_two_processes_finds_the_same_first(tmp_path: Path) -> None:
    program = tmp_path / "torn.py"
    program.write_text(TORN, encoding="utf-8")
    one, two = (ran([str(program)], "--histories=200", "--first", f"--processes={number}") for number in (1, 2))
    assert (one.returncode, two.returncode) == (1, 1)
    assert "1 histories broke" in one.stdout
    assert told(one) == told(two)


def test_a_run_in_two_processes_ends_with_its_time() -> None:
    done = ran(["-m", "tenure.testing.simulation"], "--seconds=0.5", "--processes=2")
    assert (done.returncode, done.stdout.endswith("nothing broke\n")) == (0, True)


def test_parts_are_all_that_was_asked_for() -> None:
    parts = list(_parts(7, 50))
    assert [seed + n for seed, number in parts for n in range(number)] == list(range(7, 57))


def test_no_more_is_reported_than_is_enough(theatre: Theatre) -> None:
    report, part = Report("memory", 3), Report("memory", 3)
    part.broken = [(theatre.play(1), ())] * 2
    report.join(part)
    report.join(part)
    assert (len(report.broken), report.ends_early(None)) == (3, True)


def test_there_is_a_processor() -> None:
    assert processors() >= 1
