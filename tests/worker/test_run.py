"""The end of a run: whatever a handler raises or returns, there is one, and its slot is free."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import Backoff, Snooze
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tenure.worker import run as module
from tenure.worker.run import Run, Stop
from tests.worker.bench import APP, Clock, IdleExecutor, new_run


class Classless(Exception):
    @property
    def __class__(self) -> type:
        raise SystemExit(3)

    @__class__.setter
    def __class__(self, _: type) -> None:
        """Satisfy the type checker."""


class Limited(Snooze):
    def __init__(self, seconds: Any) -> None:
        self.seconds, self.reason = seconds, None


class Unfinished(list[int]):
    """A result whose own code ends whoever looks at it."""

    def __iter__(self) -> Any:
        raise KeyboardInterrupt


@APP.task
def anything() -> Any:
    """Return anything."""


class Erratic(Backoff):
    def delay(self, failures: int, chance: float) -> float:
        raise RuntimeError(f"{failures}, {chance}")


@APP.task(backoff=Erratic())
def erratic() -> None:
    """Have a back-off that gives no delay."""


@pytest.fixture
def run() -> Run:
    return new_run(Clock(), IdleExecutor(), task=anything)


def failed(ending: Ending | None) -> tuple[str, str]:
    assert ending is not None
    assert ending.verb is Verb.FAIL
    assert ending.failure is not None
    return ending.failure.type, ending.failure.message


def test_an_error_whose_class_cannot_be_asked_for_is_a_failed_attempt(run: Run) -> None:
    assert failed(run.raised(Classless("words"))) == ("Classless", "words")


def test_a_snooze_that_was_never_checked_is_a_failed_attempt(run: Run) -> None:
    kind, message = failed(run.raised(Limited("30")))
    assert kind == "BadSettings"
    assert message.startswith("Snooze: seconds is '30'")


def test_a_result_that_ends_whoever_looks_at_it_is_a_failed_attempt(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(_: object) -> str:
        raise SystemExit(3)

    monkeypatch.setattr(run, "task", _Coded(encode))
    assert failed(run.returned(None)) == ("SystemExit", "3")


class _Coded:
    """A task whose codec encodes a result by `encode`."""

    def __init__(self, encode: Any) -> None:
        self.codec, self.encode_result, self.backoff = self, encode, Backoff()


@pytest.mark.parametrize("completes", [False, True])
def test_whatever_happens_while_an_end_is_described_there_is_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, *, completes: bool
) -> None:
    def broken(*_: object, **__: object) -> Ending:
        raise SystemExit(3)

    run.job.completes = completes
    monkeypatch.setattr(module, "ended_by", broken)
    ending = run.raised(ValueError("words"))
    assert failed(ending) == ("ValueError", "the error cannot be described (SystemExit)")
    assert ending is not None
    assert ending.confirms is completes


def test_a_time_limit_fails_the_attempt_whatever_the_back_off_says() -> None:
    run = new_run(Clock(), IdleExecutor(), task=erratic)
    run.stop = Stop("took longer than 1 s", Verb.FAIL)
    assert failed(run.obeyed()) == ("TimeLimit", "took longer than 1 s")
