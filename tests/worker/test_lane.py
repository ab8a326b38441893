"""A lane goes on where its last claim ended, while there is more than it can take, and forgets nothing for that."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tenure.protocol.job import Claimed, Head, Wanted
from tenure.worker.lane import ANEW, MOST_HEADS, Lane
from tenure.worker.seldom import LONGEST, SHARE
from tests.worker.bench import claimed
from tests.worker.feeding import FeederBench

NOW = 1_000_000


@pytest.fixture
def lane() -> Lane:
    return FeederBench(queues=("default", "mail")).lane


def rows(*ages: int, queue: str = "default", **fields: Any) -> list[Claimed]:
    """Describe what a claim returned, in the order of its line."""
    return [claimed(f"{queue} {age}", queue=queue, run_at_ms=NOW - age, **fields) for age in ages]


def answer(lane: Lane, room: int, found: list[Claimed], *, now: float = 0.0, took: float = 0.0) -> Wanted:
    """Let a claim be sent and answered `now`, after `took` seconds; return what it asked for."""
    wanted = lane.want(room, now - took)
    lane.answered(wanted, found, now, took)
    return wanted


def test_after_a_filled_claim_the_next_one_goes_on_where_it_ended(lane: Lane) -> None:
    found = rows(9, 7) + rows(8, queue="mail") + rows(5, priority=-1)
    assert answer(lane, 4, found).heads == ()
    assert lane.hungry
    known = {Head("default", 0, NOW - 7), Head("mail", 0, NOW - 8), Head("default", -1, NOW - 5)}
    assert set(answer(lane, 1, rows(6)).heads) == known
    assert set(lane.want(1, 0.0).heads) == known - {Head("default", 0, NOW - 7)} | {Head("default", 0, NOW - 6)}


def test_a_claim_that_was_not_filled_is_followed_by_one_from_the_very_beginning(lane: Lane) -> None:
    answer(lane, 2, rows(9, 8))
    answer(lane, 2, rows(7))
    assert not lane.hungry
    assert answer(lane, 2, []).heads == ()


def slow(lane: Lane, took: float) -> None:
    """Let two claims from the very beginning have taken long, before the one that a test makes at 5.0."""
    for now in (-100.0, -50.0):
        assert answer(lane, 1, rows(9), now=now, took=took).heads == ()


def test_such_a_claim_waits_until_the_last_one_is_paid_for(lane: Lane) -> None:
    slow(lane, 0.2)
    answer(lane, 2, rows(9, 8), now=5.0, took=0.2)
    answer(lane, 2, rows(7), now=5.1)
    assert answer(lane, 2, rows(6), now=5.0 + 0.99 * 0.2 / SHARE).heads == (Head("default", 0, NOW - 7),)
    assert answer(lane, 2, rows(5), now=5.0 + 0.2 / SHARE).heads == ()


def test_a_ring_meanwhile_may_have_been_for_what_stands_before_the_place(lane: Lane) -> None:
    slow(lane, 0.2)
    answer(lane, 2, rows(9, 8), now=5.0, took=0.2)
    lane.ring()
    assert answer(lane, 2, rows(7), now=5.1).heads
    assert not lane.hungry
    assert lane.patience(5.1) == pytest.approx(0.2 / SHARE - 0.1)
    assert lane.patience(5.0 + 0.2 / SHARE) == 0.0
    assert answer(lane, 2, [], now=5.0 + 0.2 / SHARE).heads == ()
    assert lane.patience(100.0) == math.inf


def test_a_line_in_which_nothing_was_found_is_still_known(lane: Lane) -> None:
    """Its entries need not be walked over again to learn that nothing is there."""
    answer(lane, 2, [*rows(9), *rows(8, queue="mail")])
    assert answer(lane, 2, rows(7, 6), now=ANEW).heads == ()
    assert set(lane.want(2, ANEW).heads) == {Head("default", 0, NOW - 6), Head("mail", 0, NOW - 8)}


def test_of_many_lines_those_that_were_read_last_are_known(lane: Lane) -> None:
    lines = [row for number in range(MOST_HEADS) for row in rows(5, queue=f"q{number}")]
    answer(lane, MOST_HEADS, lines)
    answer(lane, 2, rows(4, queue="q0") + rows(4, queue="new"))
    known = {head.queue for head in lane.want(1, 0.0).heads}
    assert known == {f"q{number}" for number in range(MOST_HEADS)} - {"q1"} | {"new"}


@pytest.mark.parametrize(("took", "pause"), [(0.01, ANEW), (0.2, 0.2 / SHARE), (7.0, LONGEST)])
def test_from_time_to_time_a_claim_begins_at_the_very_beginning(lane: Lane, took: float, pause: float) -> None:
    slow(lane, took)
    answer(lane, 1, rows(9), now=5.0, took=took)
    assert answer(lane, 1, rows(8), now=5.0 + 0.99 * pause).heads
    assert answer(lane, 1, rows(11), now=5.0 + pause).heads == ()
    assert lane.want(1, 5.0 + 1.01 * pause).heads == (Head("default", 0, NOW - 11),)


def test_a_claim_that_was_slow_by_chance_delays_no_other(lane: Lane) -> None:
    """Its turn may have waited for the lock of a job that it was to settle."""
    answer(lane, 2, rows(9), now=5.0, took=7.0)
    lane.ring()
    assert lane.patience(5.0) == 0.0
    assert answer(lane, 2, [], now=5.0).heads == ()


def test_what_was_taken_over_says_nothing_about_the_line(lane: Lane) -> None:
    lane.behind = True
    answer(lane, 2, [*rows(4), *rows(1, lost_generation=3)])
    assert lane.want(2, 0.0).heads == (Head("default", 0, NOW - 4),)


def test_what_was_not_answered_is_asked_again(lane: Lane) -> None:
    lane.behind = True
    lane.unanswered(lane.want(2, 0.0))
    assert lane.hungry
    assert lane.want(2, 0.0).takeovers
    lane.unanswered(lane.want(2, 0.0))
    assert not lane.want(2, 0.0).takeovers
