"""A lane goes on where its last claim ended, while there is more than it can take, and forgets nothing for that."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.protocol.job import Claimed, Head
from tenure.worker.lane import Lane
from tests.worker.bench import claimed
from tests.worker.feeding import FeederBench

NOW = 1_000_000


@pytest.fixture
def lane() -> Lane:
    return FeederBench(queues=("default", "mail")).lane


def rows(*ages: int, queue: str = "default", **fields: Any) -> list[Claimed]:
    """Describe what a claim returned, in the order of its line."""
    return [claimed(f"{queue} {age}", queue=queue, run_at_ms=NOW - age, **fields) for age in ages]


def test_after_a_filled_claim_the_next_one_goes_on_where_it_ended(lane: Lane) -> None:
    first = lane.want(4)
    assert first.heads == ()
    lane.answered(first, rows(9, 7) + rows(8, queue="mail") + rows(5, priority=-1))
    assert lane.hungry
    second = lane.want(1)
    assert set(second.heads) == {
        Head("default", 0, NOW - 7), Head("mail", 0, NOW - 8), Head("default", -1, NOW - 5)
    }  # fmt: skip
    lane.answered(second, rows(6))
    assert Head("default", 0, NOW - 6) in lane.want(1).heads
    assert Head("mail", 0, NOW - 8) in lane.want(1).heads


def test_a_claim_that_was_not_filled_is_followed_by_one_from_the_very_beginning(lane: Lane) -> None:
    lane.answered(lane.want(2), rows(9, 8))
    lane.answered(lane.want(2), rows(7))
    assert lane.hungry
    last = lane.want(2)
    assert last.heads == ()
    lane.answered(last, [])
    assert not lane.hungry


def test_a_look_begins_at_the_very_beginning(lane: Lane) -> None:
    lane.answered(lane.want(1), rows(9))
    lane.behind = True
    look = lane.want(1)
    assert (look.takeovers, look.heads) == (True, ())
    lane.answered(look, rows(11))
    assert lane.want(1).heads == (Head("default", 0, NOW - 11),)


def test_what_was_taken_over_says_nothing_about_the_line(lane: Lane) -> None:
    lane.behind = True
    lane.answered(lane.want(2), rows(1, 0, lost_generation=3))
    again = lane.want(2)
    assert (again.takeovers, again.heads) == (True, ())


def test_what_was_not_answered_is_asked_again(lane: Lane) -> None:
    lane.behind = True
    lane.unanswered(lane.want(2))
    assert lane.hungry
    assert lane.want(2).takeovers
    lane.unanswered(lane.want(2))
    assert not lane.want(2).takeovers
