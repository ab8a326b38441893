"""Plain lives are left out only where no invariant minds them: whatever is spoiled in a history, the same is found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from tenure.errors import Misuse
from tenure.proof.history import History, Line
from tenure.proof.judge import broken_in, judge
from tenure.proof.judge.evidence import Evidence
from tenure.proof.judge.plain import is_plain
from tenure.proof.judge.settled import settle
from tenure.testing.simulation import Theatre

LEFT_ALONE = {"place", "destination", "scope", "detail", "call", "act"}
SPOILED = 60  # times, for each history


@pytest.fixture(scope="module")
def histories() -> list[History]:
    theatre = Theatre("memory")
    with theatre.open():
        return [theatre.play(seed).history for seed in range(1, 26)]


def test_many_lives_are_plain(histories: list[History]) -> None:
    cases = plain = 0
    for history in histories:
        evidence = Evidence(history)
        settle(evidence)
        cases += len(evidence.cases)
        plain += sum(is_plain(evidence, case) for case in evidence.cases.values())
    assert plain > cases / 3


def test_what_is_spoiled_is_found_all_the_same(histories: list[History]) -> None:
    chance = random.Random(17)
    broken = 0
    for history in histories:
        for _ in range(SPOILED):
            spoiled = _spoiled(history, chance)
            try:
                judgement = judge(spoiled)
            except Misuse:
                continue
            told = [f"{one.invariant}: {violation}" for one in broken_in(spoiled) for violation in one.violations]
            assert sorted(told) == sorted(judgement.violations)
            broken += bool(told)
    assert broken > len(histories) * SPOILED / 5


def _spoiled(history: History, chance: random.Random) -> History:
    """Change one field of one line, drop a line, or tell it twice."""
    pile = chance.choice(("calls", "calls", "entries", "entries", "rows", "applied"))
    lines: list[Any] = list(getattr(history, pile))
    if not lines:
        return history
    place = chance.randrange(len(lines))
    luck = chance.random()
    if luck < 0.1:
        del lines[place]
    elif luck < 0.2:
        lines.insert(place, lines[place])
    else:
        lines[place] = _bent(lines, place, chance)
    if pile == "calls":
        lines.sort(key=lambda call: call.sent)
    piles: dict[str, Any] = {pile: lines}
    return changed(history, **piles)


def _bent(lines: Sequence[Line], place: int, chance: random.Random) -> Line:
    line = lines[place]
    name = chance.choice([name for name in line.__struct_fields__ if name not in LEFT_ALONE])
    old: Any = getattr(line, name)
    others = [getattr(other, name) for other in lines if getattr(other, name) != old]
    if isinstance(old, float) and chance.random() < 0.7:
        new: Any = old + chance.choice((-1.0, -0.3, -0.01, 0.01, 0.3, 1.0))
    elif isinstance(old, int) and not isinstance(old, bool) and chance.random() < 0.7:
        new = max(0, old + chance.choice((-1, 1)))
    else:
        new = chance.choice(others) if others else old
    return replace(line, **{name: new})
