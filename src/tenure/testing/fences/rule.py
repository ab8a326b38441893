"""Part: one write after the other, against the rule in `tenure.fences.rule`; needs a fixture `destination`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.errors import BadToken, Misuse, OutOfSequence, StaleToken
from tenure.fences.rule import LEAP
from tenure.protocol.lease import Token
from tenure.store.contract import MAX_GENERATION
from tenure.testing.fences.destination import Destination

SCOPE = "report/7"
SIX, SEVEN, EIGHT = (Token("job-1", generation) for generation in (6, 7, 8))

NO_GENERATIONS: dict[str, Any] = {
    "zero": 0,
    "negative": -8,
    "a float": 8.0,
    "a truth": True,
    "text": "8",
    "too many digits": MAX_GENERATION + 1,
    "far too many digits": 10**40,
    "one that nobody issued": MAX_GENERATION,
}
BAD_TOKENS: dict[str, Any] = {
    "no token": None,
    "text for a token": "8",
    "a number for a token": 8,
    **{name: Token("job-1", generation) for name, generation in NO_GENERATIONS.items()},
}

NO_REASONS: dict[str, Any] = {
    "empty": "",
    "blank": " ",
    "blank lines": " \n\t\u3000",
    "none": None,
    "a number": 5,
    "half a surrogate pair": "because \ud800",
    "with a NUL": "a\0b",
}


def test_r31_an_older_generation_is_refused_and_told_what_it_met(destination: Destination) -> None:
    destination.write(EIGHT, SCOPE, "new", 1)
    with pytest.raises(StaleToken) as refused:
        destination.write(SEVEN, SCOPE, "late", 99)
    assert (refused.value.generation, refused.value.current) == (7, 8)
    assert destination.read(SCOPE) == "new"


def test_r31_without_the_fence_the_late_write_does_its_damage(destination: Destination) -> None:
    destination.write(EIGHT, SCOPE, "new", 1)
    destination.write_unfenced(SCOPE, "late")
    assert destination.read(SCOPE) == "late"


def test_a_newer_generation_passes_and_may_skip(destination: Destination) -> None:
    for generation, value in ((1, "a"), (2, "b"), (1_000_000_007, "c")):
        destination.write(Token("job-1", generation), SCOPE, value, 1)
        assert destination.read(SCOPE) == value


def test_r32_a_late_write_before_the_new_owners_first_is_refused(destination: Destination) -> None:
    destination.write(SEVEN, SCOPE, "old", 1)
    destination.raise_to(EIGHT, SCOPE)
    assert destination.read(SCOPE) == "old"
    with pytest.raises(StaleToken) as refused:
        destination.write(SEVEN, SCOPE, "late", 2)
    assert refused.value.current == 8
    assert destination.read(SCOPE) == "old"
    destination.write(EIGHT, SCOPE, "new", 1)
    assert destination.read(SCOPE) == "new"


def test_r32_without_the_announcement_it_would_have_passed(destination: Destination) -> None:
    destination.write(SEVEN, SCOPE, "old", 1)
    destination.write(SEVEN, SCOPE, "late", 2)
    assert destination.read(SCOPE) == "late"


def test_r32_an_older_announcement_is_refused_and_lowers_nothing(destination: Destination) -> None:
    destination.raise_to(EIGHT, SCOPE)
    with pytest.raises(StaleToken):
        destination.raise_to(SEVEN, SCOPE)
    with pytest.raises(StaleToken):
        destination.write(SEVEN, SCOPE, "late", 1)
    assert destination.read(SCOPE) is None


def test_r32_an_announcement_before_anything_was_written_counts(destination: Destination) -> None:
    destination.raise_to(SEVEN, SCOPE)
    with pytest.raises(StaleToken):
        destination.write(SIX, SCOPE, "late", 1)
    destination.write(SEVEN, SCOPE, "mine", 1)
    assert destination.read(SCOPE) == "mine"


def test_r33_a_repeated_write_is_applied_once(destination: Destination) -> None:
    destination.write(SEVEN, SCOPE, "once", 1)
    with pytest.raises(OutOfSequence) as refused:
        destination.write(SEVEN, SCOPE, "twice", 1)
    assert (refused.value.sequence, refused.value.highest) == (1, 1)
    assert destination.read(SCOPE) == "once"


def test_r33_a_write_that_was_overtaken_is_refused(destination: Destination) -> None:
    destination.write(SEVEN, SCOPE, "third", 3)
    with pytest.raises(OutOfSequence) as refused:
        destination.write(SEVEN, SCOPE, "second", 2)
    assert (refused.value.sequence, refused.value.highest) == (2, 3)
    assert destination.read(SCOPE) == "third"
    destination.write(SEVEN, SCOPE, "fourth", 4)
    assert destination.read(SCOPE) == "fourth"


def test_r33_an_owner_that_announces_itself_again_loses_nothing(destination: Destination) -> None:
    destination.raise_to(SEVEN, SCOPE)
    destination.write(SEVEN, SCOPE, "second", 2)
    destination.raise_to(SEVEN, SCOPE)
    with pytest.raises(OutOfSequence):
        destination.write(SEVEN, SCOPE, "again", 2)
    assert destination.read(SCOPE) == "second"


def test_r33_a_new_generation_begins_to_count_anew(destination: Destination) -> None:
    destination.write(SEVEN, SCOPE, "old", 50)
    destination.write(EIGHT, SCOPE, "new", 1)
    assert destination.read(SCOPE) == "new"


def test_r35_the_fence_outlives_what_it_protects(destination: Destination) -> None:
    destination.write(EIGHT, SCOPE, "new", 1)
    destination.delete(SCOPE)
    assert destination.read(SCOPE) is None
    with pytest.raises(StaleToken):
        destination.write(SEVEN, SCOPE, "late", 1)
    assert destination.read(SCOPE) is None


def test_r36_scopes_do_not_touch_each_other(destination: Destination) -> None:
    destination.write(EIGHT, SCOPE, "new", 1)
    destination.write(SEVEN, "another", "mine", 1)
    assert (destination.read(SCOPE), destination.read("another")) == ("new", "mine")


def test_r36_tokens_of_two_jobs_are_never_compared(destination: Destination) -> None:
    destination.write(Token("job-5", 900), SCOPE, "five", 1)
    for other in (Token("job-6", 3), Token("job-6", 901)):
        with pytest.raises(BadToken, match="job-5"):
            destination.write(other, SCOPE, "six", 1)
        with pytest.raises(BadToken, match="lease on the resource"):
            destination.raise_to(other, SCOPE)
    assert destination.read(SCOPE) == "five"


def test_r36_a_lease_on_the_resource_orders_two_jobs(destination: Destination) -> None:
    destination.write(Token(SCOPE, 1), SCOPE, "five", 1)
    destination.write(Token(SCOPE, 2), SCOPE, "six", 1)
    with pytest.raises(StaleToken):
        destination.write(Token(SCOPE, 1), SCOPE, "five again", 2)
    assert destination.read(SCOPE) == "six"


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_r37_a_write_without_a_fit_token_is_refused(destination: Destination, token: Any) -> None:
    destination.write(SEVEN, SCOPE, "good", 1)
    for act in (lambda: destination.write(token, SCOPE, "bad", 2), lambda: destination.raise_to(token, SCOPE)):
        _refused(act)
    assert destination.read(SCOPE) == "good"
    destination.write(SEVEN, SCOPE, "better", 2)
    assert destination.read(SCOPE) == "better"


@pytest.mark.parametrize("sequence", [0, -1, 1.0, "1", True, 10**15, 10**40])
def test_r37_a_write_without_a_fit_sequence_is_refused(destination: Destination, sequence: Any) -> None:
    _refused(lambda: destination.write(SEVEN, SCOPE, "bad", sequence))
    assert destination.read(SCOPE) is None


@pytest.mark.parametrize("scope", ["", "a\nb", "a\0b", "x" * 201])
def test_r37_a_scope_is_a_name(destination: Destination, scope: str) -> None:
    with pytest.raises(Misuse):
        destination.write(SEVEN, scope, "bad", 1)


def test_odd_names_are_kept_apart(destination: Destination) -> None:
    scopes = ["a/../b", "../a", "a b", "a%2Fb", "ä", "A", "a", "'; DROP TABLE x; --", "{a}", "x" * 200, ".", "日本"]
    for number, scope in enumerate(scopes):
        destination.write(SEVEN, scope, str(number), 1)
    assert [destination.read(scope) for scope in scopes] == [str(number) for number in range(len(scopes))]


def test_r38_a_leap_of_a_few_restores_passes_and_a_bogus_one_does_not(destination: Destination) -> None:
    destination.write(Token("job-1", LEAP), SCOPE, "after restores", 1)
    destination.write(Token("job-1", LEAP + LEAP), SCOPE, "after more", 1)
    with pytest.raises(BadToken, match="reset"):
        destination.write(Token("job-1", 3 * LEAP + 1), SCOPE, "bogus", 1)
    destination.write(Token("job-1", LEAP + LEAP), SCOPE, "goes on", 2)
    assert destination.read(SCOPE) == "goes on"


def test_r38_a_reset_frees_a_scope_and_leaves_its_reason(destination: Destination) -> None:
    destination.write(Token("job-1", LEAP), SCOPE, "bogus", 1)
    with pytest.raises(StaleToken):
        destination.write(SEVEN, SCOPE, "refused", 1)
    destination.reset(SCOPE, "a test wrote here")
    destination.write(SEVEN, SCOPE, "mine", 1)
    assert destination.read(SCOPE) == "mine"
    assert destination.resets(SCOPE) == ["a test wrote here"]
    with pytest.raises(StaleToken):
        destination.write(SIX, SCOPE, "late", 1)


@pytest.mark.parametrize("reason", NO_REASONS.values(), ids=NO_REASONS)
def test_r38_a_reset_needs_a_reason(destination: Destination, reason: Any) -> None:
    destination.write(EIGHT, SCOPE, "new", 1)
    with pytest.raises(Misuse, match="reason"):
        destination.reset(SCOPE, reason)
    assert destination.resets(SCOPE) == []
    with pytest.raises(StaleToken):
        destination.write(SEVEN, SCOPE, "late", 1)


def test_r38_a_reason_may_say_anything(destination: Destination) -> None:
    reasons = ["'; DROP TABLE x; --", "line 1\nline 2\t", "\u65e5\u672c \U0001f512", ' {"a": "\\"} ']
    for reason in reasons:
        destination.write(EIGHT, SCOPE, "bogus", 1)
        destination.reset(SCOPE, reason)
    assert destination.resets(SCOPE) == reasons


def _refused(act: Callable[[], None]) -> None:
    with pytest.raises(BadToken):
        act()
