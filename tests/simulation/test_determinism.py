"""The same seed is the same history: in one process, in another, and whatever was played before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tenure.testing.simulation import Theatre

SEEDS = (1, 7, 42, 50)


def test_a_seed_gives_the_same_history_twice(any_theatre: Theatre) -> None:
    first = [any_theatre.play(seed, trace=True) for seed in SEEDS]
    again = [any_theatre.play(seed, trace=True) for seed in reversed(SEEDS)]
    assert [played.digest() for played in first] == [played.digest() for played in reversed(again)]
    assert [played.trace for played in first] == [played.trace for played in reversed(again)]


def test_seeds_give_different_histories(theatre: Theatre) -> None:
    assert len({theatre.play(seed).digest() for seed in range(20)}) == 20


def test_a_trace_changes_nothing(theatre: Theatre) -> None:
    assert theatre.play(7).digest() == theatre.play(7, trace=True).digest()


def told(seed: int, hash_seed: str, *words: str) -> str:
    command = [sys.executable, "-m", "tenure.testing.simulation", "--trace", f"--seed={seed}", *words]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("words", [("--seed=50",), ("--exhaustive", "--program=fail", "--choices=0,0,1,0,0,1")])
def test_another_process_with_other_hashes_plays_the_same(words: tuple[str, ...]) -> None:
    assert told(7, "1", *words) == told(7, "2", *words)
