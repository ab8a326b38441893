"""How many jobs a turn may move follows from how long the last ones took."""

from __future__ import annotations

import pytest

from tenure.protocol.lease import BEATS, DRIFT, MARGIN
from tenure.worker.pace import FIRST, MOST, PART, Pace

ALLOWED = 0.5  # seconds for a turn


@pytest.fixture
def pace() -> Pace:
    return Pace()


def grow(pace: Pace, to: int) -> None:
    """Let filled turns be quick until the limit is `to` or more."""
    for _ in range(10):
        if pace.limit < to:
            assert not pace.answered(pace.limit, 0.0, ALLOWED)
    assert pace.limit >= to


def test_a_turn_its_renewal_and_the_turn_before_that_fit_into_the_belief() -> None:
    assert PART + 1 / BEATS + PART < 1 - DRIFT - MARGIN


def test_a_turn_may_take_a_part_of_the_shortest_lease_and_half_of_what_a_request_may() -> None:
    assert Pace(1.0).allowed() == 0.5
    assert Pace(1.0).allowed(2.0) == 0.5
    assert Pace(1.0).allowed(1.0) == 0.25


def test_it_begins_with_few_and_is_out_of_the_way_soon(pace: Pace) -> None:
    assert pace.limit == FIRST
    for _ in range(5):
        pace.answered(pace.limit, 0.001, ALLOWED)
    assert pace.limit == 512


def test_there_is_an_end_to_it(pace: Pace) -> None:
    grow(pace, MOST)
    pace.answered(MOST, 0.0, ALLOWED)
    assert pace.limit == MOST


def test_what_was_not_filled_proves_nothing_about_more(pace: Pace) -> None:
    pace.answered(FIRST - 1, 0.0, ALLOWED)
    assert pace.limit == FIRST


def test_what_was_in_time_but_not_quick_is_not_raised(pace: Pace) -> None:
    pace.answered(FIRST, ALLOWED * 0.51, ALLOWED)
    assert pace.limit == FIRST


@pytest.mark.parametrize(
    ("took", "limit"),
    [(ALLOWED, 256), (ALLOWED * 1.01, 128), (ALLOWED * 4, 64), (ALLOWED * 100, 2), (ALLOWED * 1000, 1)],
)
def test_after_a_late_answer_it_is_what_would_have_been_in_time_and_at_most_half(
    pace: Pace, took: float, limit: int
) -> None:
    grow(pace, 256)
    pace.answered(256, took, ALLOWED)
    assert pace.limit == limit


def test_a_late_answer_that_moved_nothing_says_nothing_about_jobs(pace: Pace) -> None:
    assert not pace.answered(0, ALLOWED * 10, ALLOWED)
    assert pace.limit == FIRST


def test_one_is_the_least(pace: Pace) -> None:
    for _ in range(10):
        pace.answered(1, ALLOWED * 10, ALLOWED)
    assert pace.limit == 1


@pytest.mark.parametrize("cost", [0.001, 0.03, 0.06, 0.12, 0.24])
def test_whatever_a_job_costs_it_settles_where_turns_are_in_time(pace: Pace, cost: float) -> None:
    """A job costs `cost` seconds, and there is no end of jobs."""
    grow(pace, 256)
    for _ in range(20):
        pace.answered(pace.limit, pace.limit * cost, ALLOWED)
    assert ALLOWED / 4 < pace.limit * cost <= ALLOWED or pace.limit == MOST


def test_it_recovers_when_turns_are_quick_again(pace: Pace) -> None:
    pace.answered(FIRST, ALLOWED * 100, ALLOWED)
    limits = [pace.limit]
    for _ in range(5):
        pace.answered(pace.limit, 0.0, ALLOWED)
        limits.append(pace.limit)
    assert limits == [1, 2, 4, 8, 16, 32]


def test_a_turn_that_was_never_answered_counts_as_late() -> None:
    pace = Pace(1.0)
    assert pace.unanswered(1.0)
    assert pace.limit == FIRST // 4


def test_a_turn_that_failed_at_once_says_nothing_about_jobs() -> None:
    pace = Pace(1.0)
    assert not pace.unanswered(0.001)
    assert pace.limit == FIRST


def test_a_fall_is_told_once_for_each_limit_until_it_has_recovered(pace: Pace) -> None:
    late, quick = ALLOWED * 1.5, 0.0

    def answered(took: float) -> bool:
        return pace.answered(pace.limit, took, ALLOWED)

    assert answered(late)  # 8
    assert answered(late)  # 4
    assert not answered(quick)  # 8
    assert not answered(late)  # 4
    assert answered(late)  # 2
    grow(pace, 16)
    assert answered(late)
