"""How a run ends, as a value: what user code raises can be stored, and numbers that make no delay are refused."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tenure import BadResult, BadSettings, Cancel, Discard, Retry, Snooze, Token
from tenure.protocol.ending import EndRun, ended_by, failure_of, unfit
from tenure.protocol.lifecycle import Verb
from tenure.protocol.retry import LONGEST_DELAY, Backoff

TOKEN = Token("job", 7)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    ("message", "stored"),
    [("caf\udce9.txt", r"caf\udce9.txt"), ("a\0b", r"a\x00b"), ("plain é", "plain é"), ("", "")],
)
def test_a_message_that_is_no_text_is_written_out(message: str, stored: str) -> None:
    failure = failure_of(raised(ValueError(message)))
    assert (failure.type, failure.message) == ("ValueError", stored)
    for text in (failure.message, failure.traceback, failure.where):
        assert "\0" not in text
        text.encode("utf-8")


def test_b35_of_a_long_message_the_beginning_is_kept_and_of_its_traceback_the_end() -> None:
    failure = failure_of(raised(ValueError("x" * 50_000)))
    assert failure.message == "x" * 16_384 + "… (the first 16384 of 50000 characters)"
    assert failure.traceback == ("x" * 16_383) + "\n"


@pytest.mark.parametrize("end", [Cancel, Discard, partial(Retry, 1.0), partial(Snooze, 1.0)])
def test_b35_a_long_reason_is_cut(end: Any) -> None:
    told = ended_by(end("x" * 50_000), TOKEN, failures=0, backoff=Backoff(), chance=0.0)
    assert told.reason == "x" * 16_384 + "… (the first 16384 of 50000 characters)"


def test_b35_the_reason_of_a_result_that_cannot_be_stored_is_cut() -> None:
    assert len(unfit(BadResult("task", "x" * 50_000, "no"), TOKEN).reason or "") < 17_000


def test_an_error_that_cannot_be_read_is_an_end_like_any_other() -> None:
    failure = failure_of(raised(Unreadable()))
    assert (failure.type, failure.message) == ("Unreadable", "its message cannot be read (RuntimeError)")


class Careless(Snooze):
    def __init__(self) -> None:
        pass


class Stubborn(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(Careless(), "AttributeError"), (Discard(Unreadable()), "RuntimeError"), (Stubborn(), "Stubborn")],  # type: ignore[arg-type]  # what users may do
)
def test_whatever_an_error_does_when_it_is_looked_at_its_run_has_failed(error: Exception, kind: str) -> None:
    end = ended_by(raised(error), TOKEN, failures=0, backoff=Backoff(), chance=0.0)
    assert end.verb is Verb.FAIL
    assert end.failure is not None
    assert end.failure.type == kind


def test_a_place_that_is_no_text_is_written_out() -> None:
    code = compile("def broken():\n    raise ValueError", "caf\udce9.py", "exec")
    place: dict[str, Any] = {}
    exec(code, place)
    place["broken"].__code__ = place["broken"].__code__.replace(co_name="a\0b")
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- it has no message
        place["broken"]()
    assert failure_of(caught.value).where == r"caf\udce9.py:2 in a\x00b"


def test_a_reason_that_is_no_text_is_written_out() -> None:
    end = ended_by(Cancel("caf\udce9"), TOKEN, failures=0, backoff=Backoff(), chance=0.0)
    assert (end.verb, end.reason) == (Verb.CANCEL, r"caf\udce9")


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e15, "5", timedelta(hours=1), None, True])
def test_what_is_no_delay_is_refused_where_it_is_said(seconds: Any) -> None:
    with pytest.raises(BadSettings, match="Snooze: seconds is"):
        Snooze(seconds)
    if seconds is not None:
        with pytest.raises(BadSettings, match="Retry: after is"):
            Retry(after=seconds)


def test_a_delay_may_be_long() -> None:
    assert Snooze(LONGEST_DELAY).seconds == LONGEST_DELAY
    assert Retry().after is None


class Loud(str):
    """A text whose methods are a user's own."""

    __slots__ = ()

    def __len__(self) -> int:
        raise SystemExit(3)

    __getitem__ = __format__ = encode = __len__  # type: ignore[assignment]  # what users may do


class Classless(Exception):
    @property
    def __class__(self) -> type:
        raise KeyboardInterrupt

    @__class__.setter
    def __class__(self, _: type) -> None:
        """Satisfy the type checker."""


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]  # what users may do
        raise RuntimeError("no name")


class Numbered(type):
    __name__ = 5  # type: ignore[assignment]  # what users may do


class OfNoName(Exception, metaclass=Nameless):
    pass


class OfANumber(Exception, metaclass=Numbered):
    pass


class Worded(Exception):
    def __str__(self) -> str:
        return Loud("words")


class Traceless(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(3)


def named(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Classless("words"), "Classless"),
        (lambda: OfNoName("words"), "OfNoName"),
        (lambda: OfANumber("words"), "OfANumber"),
        (Worded, "Worded"),
        (lambda: Traceless("words"), "Traceless"),
        (lambda: named(Loud("Renamed"))("words"), "Renamed"),
    ],
    ids=lambda given: given if isinstance(given, str) else "error",
)
def test_whatever_an_error_is_its_failure_is_plain_text(make: Callable[[], Exception], name: str) -> None:
    end = ended_by(make(), TOKEN, failures=0, backoff=Backoff(), chance=0.0)
    assert end.verb is Verb.FAIL
    assert end.failure is not None
    assert (end.failure.type, end.failure.message) == (name, "words")
    for text in (end.failure.type, end.failure.where, end.failure.message, end.failure.traceback):
        assert type(text) is str


def test_b35_of_the_long_name_of_an_error_the_beginning_is_kept() -> None:
    failure = failure_of(named("X" * 50_000)())
    assert failure.type == "X" * 200 + "\u2026 (the first 200 of 50000 characters)"


def test_an_error_from_a_file_whose_name_is_no_text_is_told_like_any_other() -> None:
    with pytest.raises(ValueError, match="words") as caught:
        exec(compile("raise ValueError('words')", "caf\ud800.py\n", "exec"))
    failure = failure_of(caught.value)
    assert (failure.type, failure.message) == ("ValueError", "words")
    assert failure.where == "caf\\ud800.py\n:1 in <module>"


class Limited(Snooze):
    def __init__(self, seconds: Any) -> None:
        self.seconds, self.reason = seconds, None


class Again(Retry):
    def __init__(self, after: Any) -> None:
        self.after, self.reason = after, None


NO_DELAYS = ["30", float("nan"), float("inf"), 1e300, -1.0, True]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        *((Limited(some), "Snooze: seconds is") for some in [*NO_DELAYS, None]),
        *((Again(some), "Retry: after is") for some in NO_DELAYS),
    ],
)
def test_a_number_that_was_never_checked_fails_the_attempt(error: EndRun, told: str) -> None:
    end = ended_by(error, TOKEN, failures=0, backoff=Backoff(), chance=0.0)
    assert (end.verb, end.delay) == (Verb.FAIL, 5.0)
    assert end.failure is not None
    assert end.failure.type == "BadSettings"
    assert told in end.failure.message


def test_a_reason_whose_text_has_methods_of_its_own_is_kept_as_plain_text() -> None:
    class Reason:
        def __str__(self) -> str:
            return Loud("words")

    end = ended_by(Cancel(Reason()), TOKEN, failures=0, backoff=Backoff(), chance=0.0)  # type: ignore[arg-type]  # what users may do
    assert (end.verb, end.reason, type(end.reason)) == (Verb.CANCEL, "words", str)


class Erratic(Backoff):
    def delay(self, failures: int, chance: float) -> float:
        return float("nan") if failures == 1 else 1 / 0


@pytest.mark.parametrize(
    ("backoff", "failures", "delay"),
    [(Erratic(), 0, 5.0), (Erratic(), 1, 15.0), (Backoff(first=1.0, factor=1e10), 64, 3600.0)],
)
def test_a_back_off_that_gives_no_delay_is_replaced_by_the_usual_one(
    backoff: Backoff, failures: int, delay: float
) -> None:
    end = ended_by(raised(ValueError()), TOKEN, failures=failures, backoff=backoff, chance=0.0)
    assert (end.verb, end.delay) == (Verb.FAIL, delay)
    assert end.failure is not None
    assert end.failure.type == "ValueError"
