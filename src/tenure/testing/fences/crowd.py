"""Part: eight writers at once, each through connections of its own; needs a fixture `destination`.

The writers meet before each round. The interpreter changes between them as often as it can, and a writer now and then
stands still for a moment between two lines of the destination's own code, unless a debugger or the like traces it. A
destination whose code here compares in one step and writes in another is found nearly always; one that does so in a
server, only by chance.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import tenure
from tenure.errors import Refused
from tenure.protocol.lease import Token
from tenure.testing.fences.destination import Destination

WRITERS = 8
ROUNDS = 12
TRIES = 2
PATIENCE = 60.0
SWITCH = 1e-5
ODDS, MOMENT = 0.2, 0.003
SCOPE = "shared"

Accepted = list[tuple[int, int, str]]
Meet = Callable[[], object]
Act = Callable[[Destination, int, Meet], Accepted]


def test_the_highest_write_of_a_crowd_is_what_stays(destination: Destination) -> None:
    def write(mine: Destination, number: int, meet: Meet) -> Accepted:
        accepted: Accepted = []
        for round_ in range(ROUNDS):
            generation, sequence = WRITERS * round_ + 1 + _place(round_, number), round_ + 1
            value = f"{generation}.{sequence} by {number}"
            meet()
            if _passes(mine, Token("job-1", generation), value, sequence):
                accepted.append((generation, sequence, value))
            meet()
            if generation % WRITERS == 0:  # the newest of its round, which nothing can have refused
                assert accepted[-1:] == [(generation, sequence, value)]
                assert mine.read(SCOPE) == value
        return accepted

    accepted = _crowd(destination, write)
    assert len({(generation, sequence) for generation, sequence, _ in accepted}) == len(accepted)
    assert destination.read(SCOPE) == max(accepted)[2]


def test_a_write_that_arrives_from_everywhere_is_applied_once(destination: Destination) -> None:
    def write(mine: Destination, number: int, meet: Meet) -> Accepted:
        accepted: Accepted = []
        for sequence in range(1, ROUNDS + 1):
            meet()
            if _passes(mine, Token("job-1", 7), f"{sequence} by {number}", sequence):
                accepted.append((7, sequence, f"{sequence} by {number}"))
        return accepted

    accepted = _crowd(destination, write)
    assert sorted(sequence for _, sequence, _ in accepted) == list(range(1, ROUNDS + 1))
    assert destination.read(SCOPE) == max(accepted)[2]


def test_after_the_announcement_nothing_older_gets_in(destination: Destination) -> None:
    raised = [threading.Event() for _ in range(ROUNDS)]

    def write(mine: Destination, number: int, meet: Meet) -> Accepted:
        accepted: Accepted = []
        for round_ in range(ROUNDS):
            old, new = Token("job-1", 2 * round_ + 1), Token("job-1", 2 * round_ + 2)
            meet()
            if number == 0:
                mine.raise_to(new, SCOPE)
                seen = mine.read(SCOPE)
                raised[round_].set()
                meet()
                assert mine.read(SCOPE) == seen  # what the new owner read is what it would have written over
                continue
            for sequence in range(number, number + TRIES * WRITERS, WRITERS):
                late = raised[round_].is_set()
                if _passes(mine, old, f"{old.generation}.{sequence}", sequence):
                    assert not late
                    accepted.append((old.generation, sequence, f"{old.generation}.{sequence}"))
            meet()
        return accepted

    _crowd(destination, write)
    destination.write(Token("job-1", 2 * ROUNDS), SCOPE, "new", 1)
    assert destination.read(SCOPE) == "new"


def _place(round_: int, number: int) -> int:
    """Return which generation of a round a writer has: another in each round, and no writer's always the newest."""
    places = list(range(WRITERS))
    random.Random(round_).shuffle(places)
    return places[number]


def _passes(destination: Destination, token: Token, value: str, sequence: int) -> bool:
    try:
        destination.write(token, SCOPE, value, sequence)
    except Refused:
        return False
    return True


def _crowd(destination: Destination, act: Act) -> Accepted:
    barrier = threading.Barrier(WRITERS, timeout=PATIENCE)

    def live(number: int) -> Accepted:
        try:
            with _faltering(number), destination.again() as mine:
                return act(mine, number, barrier.wait)
        except BaseException:
            barrier.abort()  # nobody need wait for this one
            raise

    with _switching_often(), ThreadPoolExecutor(WRITERS) as pool:
        living = [pool.submit(live, number) for number in range(WRITERS)]
    return [accepted for told in sorted(living, key=_was_left_alone) for accepted in told.result()]


def _was_left_alone(writer: Future[Accepted]) -> bool:
    """Tell whether a writer failed only because another one did, whose error says more."""
    return isinstance(writer.exception(), threading.BrokenBarrierError)


@contextmanager
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _faltering(number: int) -> Iterator[None]:
    """Let this thread stand still for a moment here and there between two lines of the destination's code."""
    if sys.gettrace() is not None:
        yield
        return
    chance = random.Random(number)

    def falter(frame: FrameType, event: str, _: Any) -> Any:
        if not _is_the_destinations(frame.f_code.co_filename):
            return None
        if event == "line" and chance.random() < ODDS:
            time.sleep(MOMENT)
        return falter

    sys.settrace(falter)
    try:
        yield
    finally:
        sys.settrace(None)


@cache
def _is_the_destinations(file: str) -> bool:
    """Tell whether code is neither Python's, nor an installed package's, nor Tenure's."""
    paths = sysconfig.get_paths()
    others = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {
        str(Path(tenure.__file__).parent)
    }
    return not file.startswith("<") and not any(Path(file).is_relative_to(other) for other in others)
