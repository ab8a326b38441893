"""The table of mutants fits the code: what each takes away stands there exactly once.

Code that moves takes its guards along, and a mutant whose text is gone proves nothing; running them all tells so only
after half an hour.
"""

from pathlib import Path

import tenure
from tests.mutants.mutant import Mutant
from tests.mutants.simulation import SIMULATION
from tests.mutants.table import MUTANTS

SOURCE = Path(tenure.__file__).parent
ALL = (*MUTANTS, *SIMULATION)


def test_what_a_mutant_takes_away_stands_there_once() -> None:
    assert [mutant.name for mutant in ALL if _count(mutant) != 1] == []


def test_mutants_have_names_of_their_own() -> None:
    names = [mutant.name for mutant in ALL]
    assert sorted(names) == sorted(set(names))


def test_a_mutant_changes_something() -> None:
    assert [mutant.name for mutant in ALL if mutant.old == mutant.new] == []


def _count(mutant: Mutant) -> int:
    return (SOURCE / mutant.file).read_text(encoding="utf-8").count(mutant.old)
