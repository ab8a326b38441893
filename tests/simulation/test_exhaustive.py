from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from tenure.errors import Misuse
from tenure.testing.simulation import Theatre, exhaustive
from tenure.testing.simulation.exhaustive import PROGRAMS, Choices, replay, search


def test_a_search_breaks_nothing(theatre: Theatre) -> None:
    for program in PROGRAMS:
        report = search(theatre, program, depth=16, deviations=1)
        assert report.broken == []
        assert report.whole


def test_a_search_plays_every_history_once(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (2, 3, 2, 2)
    seen: list[tuple[int, ...]] = []

    def play(theatre: Theatre, program: str, choices: Choices) -> object:
        seen.append(tuple(choices.pick(size) for size in sizes))
        return theatre.play(1)

    monkeypatch.setattr(exhaustive, "_play", play)
    search(theatre, "update", depth=3, deviations=2)
    within = [made for made in possible(sizes[:3]) if sum(choice > 0 for choice in made) <= 2]
    assert sorted(made[:3] for made in seen) == sorted(within)
    assert {made[3] for made in seen} == {0}


def possible(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*(range(size) for size in sizes))


def test_choices_make_the_difference(theatre: Theatre) -> None:
    plain = replay(theatre, "update", (), trace=True)
    assert plain.digest() == replay(theatre, "update", (0, 0, 0), trace=False).digest()
    assert "takeover" not in plain.reached
    # The first claim's answer is lost with its worker: somebody takes the job over.
    crashed = next(
        played
        for played in (replay(theatre, "update", (*(0,) * place, 4), trace=True) for place in range(6))
        if "takeover" in played.reached
    )
    assert any("crash" in what for _, _, what in crashed.trace or ())


def test_a_choice_that_is_not_there_is_refused(theatre: Theatre) -> None:
    with pytest.raises(Misuse, match="choice 0 is between 6 options, and 9 was asked for"):
        replay(theatre, "update", (9,), trace=False)
