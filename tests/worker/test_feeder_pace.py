"""How many jobs a feeder settles and claims at a time, after turns that were quick, late or lost."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.errors import Unavailable
from tenure.protocol.events import Kind
from tenure.protocol.job import Turn
from tenure.protocol.lifecycle import Verb
from tenure.worker.pace import FIRST, MOST
from tests.worker.bench import claimed, quiet_turn
from tests.worker.feeding import FeederBench


def test_many_ends_are_settled_twice_as_many_at_a_time_and_at_most_a_thousand() -> None:
    bench = FeederBench(slots=3500)
    for run in [bench.run(f"j{number}") for number in range(3500)]:
        bench.finish(run)
    while len(bench.settled) < 3500:
        bench.feeder.round()
    settled = [len(endings) for endings, _ in bench.turns()]
    assert settled == [16, 32, 64, 128, 256, 512, MOST, MOST, 3500 - 1008 - 2 * MOST]


def late(bench: FeederBench, count: int, seconds: float) -> None:
    """Answer a claim of `count` jobs after `seconds`, with leases of 10 s."""

    def turn(*_: Any, **__: Any) -> Turn:
        bench.clock.advance(seconds)
        return Turn([], [claimed(f"j{number}", lease=10.0) for number in range(count)])

    bench.store.script["turn"] = turn
    bench.feeder.round()
    bench.store.script["turn"] = quiet_turn


def test_what_is_claimed_at_a_time_grows_with_what_was_answered_quickly() -> None:
    bench = FeederBench(slots=100)
    bench.answers(Turn([], [claimed(f"j{number}") for number in range(FIRST)]))
    bench.feeder.round()
    bench.feeder.round()
    assert [wanted.limit for _, [wanted] in bench.turns()] == [FIRST, 2 * FIRST]


def test_b35_after_a_claim_that_was_answered_late_fewer_are_claimed_and_that_is_told() -> None:
    bench = FeederBench(slots=100)
    late(bench, FIRST, 10.0)
    bench.feeder.round()
    assert [wanted.limit for _, [wanted] in bench.turns()] == [FIRST, 4]
    [event] = bench.told.events
    assert (event.kind, event.detail) == (
        Kind.STORE_SLOW,
        "to settle 0 jobs and claim 16 took 10.0 s, and must not take more than 2.5 s: at most 4 at a time now",
    )


def test_b35_what_came_too_late_is_given_back_before_anything_is_claimed_again() -> None:
    """Else the worker takes over from itself what it is about to give back, and that counts against the job."""
    bench = FeederBench(slots=100)
    late(bench, FIRST, 10.0)
    for run in bench.runs.all():
        bench.finish(run, Verb.RELEASE)
    for _ in range(3):
        bench.feeder.ring()
        bench.feeder.round()
    moved = [(len(endings), [want.limit for want in wanted]) for endings, wanted in bench.turns()]
    assert moved == [(0, [FIRST]), (4, []), (8, []), (4, [16])]


def test_a_claim_that_fails_late_is_followed_by_a_smaller_one_and_one_that_fails_at_once_is_not() -> None:
    bench = FeederBench(slots=100, request_limit=5.0)

    def fails_after(seconds: float) -> None:
        def turn(*_: Any, **__: Any) -> Turn:
            bench.clock.advance(seconds)
            raise Unavailable("the request took longer than its timeout")

        bench.store.script["turn"] = turn
        with pytest.raises(Unavailable):
            bench.feeder.round()

    fails_after(0.1)
    fails_after(5.0)
    fails_after(0.1)
    assert [wanted.limit for _, [wanted] in bench.turns()] == [FIRST, FIRST, 4]
    [event] = bench.told.events
    assert event.detail == "to settle 0 jobs and claim 16 failed after 5.0 s: at most 4 at a time now"
