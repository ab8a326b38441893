"""The judge finds each kind of broken promise, tells it in one sentence, and complains of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.proof.history import read, write
from tenure.proof.judge import INVARIANTS, judge
from tests.proof.bad_histories import BAD


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_found_and_told(name: str, tmp_path: Path) -> None:
    bad = BAD[name]
    write(bad.history, tmp_path / "bad.jsonl")
    judgement = judge(read([tmp_path / "bad.jsonl"]))
    assert [violation.partition(":")[0] for violation in judgement.violations] == [bad.invariant], judgement.violations
    [violation] = judgement[bad.invariant].violations
    for part in bad.says:
        assert part in violation.sentence
    assert violation.lines
    assert not judgement.good


def test_every_invariant_is_broken_by_hand() -> None:
    assert {bad.invariant for bad in BAD.values()} == {invariant.number for invariant in INVARIANTS}
