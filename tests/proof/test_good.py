"""Legal histories are judged good, whatever got lost on the way; one line spoiled is found; and it takes seconds."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.proof.history import AnyLine, History, read, write
from tenure.proof.judge import INVARIANTS, Verdict, judge
from tests.proof.acting import Stage
from tests.proof.tampering import SPOILS, Spoil

SEEDS = st.integers(min_value=0, max_value=2**32)
LINES = 100_000


@settings(max_examples=60)
@given(seed=SEEDS, told=st.sampled_from(["full", "abnormal", "none"]), jobs=st.integers(1, 5))
def test_a_legal_history_is_good(seed: int, told: str, jobs: int) -> None:
    judgement = judge(Stage(seed, history=told, jobs=jobs).play(150))
    assert judgement.violations == []
    assert judgement.good


def test_every_invariant_but_the_liveness_is_asserted_by_legal_histories() -> None:
    judgement = judge(Stage(11, jobs=8).play(1500))
    kept = {result.invariant for result in judgement.results if result.verdict is Verdict.KEPT}
    assert kept == {invariant.number for invariant in INVARIANTS} - {"I14"}
    assert min(judgement.counts[what] for what in ("takeovers", "completions", "refused as stale", "answers lost")) > 5


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@settings(max_examples=15)
@given(seed=SEEDS)
def test_one_spoiled_line_is_found(spoil: Spoil, seed: int) -> None:
    history = Stage(seed, jobs=2).play(250)
    spoiled = spoil(history, random.Random(seed))
    assume(spoiled is not None)
    assert spoiled is not None
    judgement = judge(spoiled)
    broken = {result.invariant for result in judgement.results if not result.good}
    assert broken & SPOILS[spoil], judgement.violations


@pytest.mark.parametrize("jobs", [1, 300])
def test_a_hundred_thousand_lines_are_judged_in_seconds(jobs: int, tmp_path: Path) -> None:
    history = Stage(5, jobs=jobs).play(8000)
    lines = list(history.lines())
    copies = 1 + LINES // len(lines)
    many = [history.meta, *(_renamed(line, copy) for copy in range(copies) for line in lines[1:])]
    write(History.of(many), tmp_path / "long.jsonl")
    began = time.process_time()
    judgement = judge(read([tmp_path / "long.jsonl"]))
    assert judgement.violations == []
    assert len(many) >= LINES
    assert time.process_time() - began < 10


def test_a_single_job_with_a_long_life_is_judged_in_seconds() -> None:
    history = Stage(5, jobs=1).play(30_000)
    began = time.process_time()
    assert judge(history).violations == []
    assert time.process_time() - began < 5


def _renamed(line: AnyLine, copy: int) -> AnyLine:
    """Make a line one of another run beside the first, with jobs, owners and destinations of its own."""
    names = ("job", "owner", "process", "scope", "key")
    fields = {name: f"{getattr(line, name)}#{copy}" for name in names if getattr(line, name, None) is not None}
    return replace(line, **fields)
