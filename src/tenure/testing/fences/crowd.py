"""Part: eight writers at once, each through connections of its own; needs a fixture `destination`."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tenure.errors import Refused
from tenure.protocol.lease import Token
from tenure.testing.fences.destination import Destination

WRITERS = 8
ROUNDS = 12
SCOPE = "shared"

Accepted = list[tuple[int, int, str]]
Act = Callable[[Destination, int], Accepted]


def test_the_highest_write_of_a_crowd_is_what_stays(destination: Destination) -> None:
    def write(mine: Destination, number: int) -> Accepted:
        chance = random.Random(number)
        accepted: Accepted = []
        for round_ in range(ROUNDS):
            generation, sequence = 40 * round_ + chance.randint(1, 40), round_ + 1
            value = f"{generation}.{sequence} by {number}"
            if _passes(mine, Token("job-1", generation), value, sequence):
                accepted.append((generation, sequence, value))
        return accepted

    accepted = _crowd(destination, write)
    assert len(accepted) >= 2
    assert len({(generation, sequence) for generation, sequence, _ in accepted}) == len(accepted)
    assert destination.read(SCOPE) == max(accepted)[2]


def test_a_write_that_arrives_from_everywhere_is_applied_once(destination: Destination) -> None:
    def write(mine: Destination, number: int) -> Accepted:
        return [
            (7, sequence, f"{sequence} by {number}")
            for sequence in range(1, ROUNDS + 1)
            if _passes(mine, Token("job-1", 7), f"{sequence} by {number}", sequence)
        ]

    accepted = _crowd(destination, write)
    assert len({sequence for _, sequence, _ in accepted}) == len(accepted)
    assert max(accepted)[1] == ROUNDS
    assert destination.read(SCOPE) == max(accepted)[2]


def test_after_the_announcement_nothing_older_gets_in(destination: Destination) -> None:
    raised, new = threading.Event(), Token("job-1", 8)
    seen: list[str | None] = []

    def write(mine: Destination, number: int) -> Accepted:
        if number == 0:
            mine.raise_to(new, SCOPE)
            seen.append(mine.read(SCOPE))
            raised.set()
            return []
        accepted: Accepted = []
        for sequence in range(1, 10 * ROUNDS):
            late = raised.is_set()
            if _passes(mine, Token("job-1", 7), f"{sequence} by {number}", sequence):
                assert not late
                accepted.append((7, sequence, f"{sequence} by {number}"))
            if late:
                break
        return accepted

    _crowd(destination, write)
    assert destination.read(SCOPE) == seen[0]  # what the new owner read is what it would have written over
    destination.write(new, SCOPE, "new", 1)
    assert destination.read(SCOPE) == "new"


def _passes(destination: Destination, token: Token, value: str, sequence: int) -> bool:
    try:
        destination.write(token, SCOPE, value, sequence)
    except Refused:
        return False
    return True


def _crowd(destination: Destination, act: Act) -> Accepted:
    barrier = threading.Barrier(WRITERS, timeout=30)

    def live(number: int) -> Accepted:
        with destination.again() as mine:
            barrier.wait()
            return act(mine, number)

    with ThreadPoolExecutor(WRITERS) as pool:
        return [accepted for told in pool.map(live, range(WRITERS)) for accepted in told]
