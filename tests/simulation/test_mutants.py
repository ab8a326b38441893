"""A few guards taken away, to see that the simulation notices; `python -m tests.mutants.simulation` tries all."""

from __future__ import annotations

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.simulation import ROOT, SIMULATION, find

QUICK = ("floor ignored", "fence does not compare", "claim of a job that is owned", "belief in claims from the answer")


@pytest.mark.parametrize("name", QUICK)
def test_a_guard_that_is_taken_away_is_missed(name: str) -> None:
    (mutant,) = (mutant for mutant in SIMULATION if mutant.name == f"simulation: {name}")
    found = find(mutant, histories=300)
    assert found.histories > 0
    assert found.what
    assert not found.what.startswith("not reached")


@pytest.mark.parametrize("mutant", SIMULATION, ids=lambda mutant: mutant.name)
def test_what_a_mutant_takes_away_stands_there_once(mutant: Mutant) -> None:
    text = (ROOT / "src" / "tenure" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in SIMULATION}) == len(SIMULATION) >= 20
