"""How a run ends: what a handler may raise, and the pure rule that turns its end into a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType

from tenure.errors import BadArguments, BadResult
from tenure.protocol.job import Ending, Failure
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.retry import Backoff, check_delay

LONGEST_TEXT = 16_384
"""Characters that are kept of a message, a reason or a traceback: no store can settle a run whose error quotes 200 MB
within a request's time, and its worker would try for ever (B35)."""

LONGEST_NAME = 200
"""Characters that are kept of the name of an error's class."""

_name: Callable[[type], str] = type.__dict__["__name__"].__get__  # a metaclass may say what it likes


class EndRun(Exception):
    """What a handler raises to end its run in another way than by returning."""


class Retry(EndRun):
    """End this attempt as failed and try again `after` seconds from now; without a number, by the task's back-off."""

    def __init__(self, after: float | None = None, reason: str | None = None) -> None:
        self.after = None if after is None else check_delay("Retry: after", after)
        self.reason = reason
        super().__init__(reason or "retry")


class Snooze(EndRun):
    """Come back in `seconds`; no attempt is spent."""

    def __init__(self, seconds: float, reason: str | None = None) -> None:
        self.seconds = check_delay("Snooze: seconds", seconds)
        self.reason = reason
        super().__init__(reason or "snooze")


class Cancel(EndRun):
    """End the job for good, as cancelled."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(reason or "cancel")


class Discard(EndRun):
    """End the job for good, among the dead letters."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(reason or "discard")


def completed(token: Token, result: str | None) -> Ending:
    """Describe the end of a run that returned; `result` is JSON text."""
    return Ending(token, Verb.COMPLETE, result=result)


def ended_by(error: BaseException, token: Token, *, failures: int, backoff: Backoff, chance: float) -> Ending:
    """Describe the end of a run that raised.

    `failures` counts failed attempts before this one and `chance`, from [0, 1), is the jitter's draw. An error whose
    own code raises when it is looked at has failed its run like any other: its slot must not wait for an end.
    """
    delay = pause_after(failures + 1, backoff, chance)
    try:
        asked = _asked_by(error, token, delay)
    except BaseException as broken:  # noqa: BLE001 -- such as a subclass of Snooze without its seconds
        error, asked = broken, None
    return asked or Ending(token, Verb.FAIL, delay=delay, failure=failure_of(error))


def _asked_by(error: BaseException, token: Token, delay: float) -> Ending | None:
    if not issubclass(type(error), EndRun):
        return None
    match error:  # a subclass need not have called `__init__`, which checks the numbers
        case Snooze():
            seconds = check_delay("Snooze: seconds", error.seconds)
            return Ending(token, Verb.SNOOZE, delay=seconds, reason=kept_reason(error.reason))
        case Cancel():
            return Ending(token, Verb.CANCEL, reason=kept_reason(error.reason))
        case Discard():
            return Ending(token, Verb.DISCARD, reason=kept_reason(error.reason))
        case Retry():
            delay = check_delay("Retry: after", error.after) if error.after is not None else delay
            return Ending(token, Verb.RETRY, delay=delay, reason=kept_reason(error.reason))
    return None


def unfit(error: BadArguments | BadResult, token: Token) -> Ending:
    """Describe the end of a run whose arguments do not fit the running code, or whose result cannot be stored.

    It is not tried again by itself: that would not help, and would repeat the effect (B25, B28).
    """
    failure = failure_of(error)
    return Ending(token, Verb.DISCARD, reason=failure.message, failure=failure)


def pause_after(failures: int, backoff: Backoff, chance: float) -> float:
    """Compute the seconds to wait after a failed attempt; by the usual back-off where this one gives no delay."""
    try:
        return check_delay("the back-off's delay", backoff.delay(failures, chance))
    except BaseException:  # noqa: BLE001 -- a back-off of the user's own; what is to be stored is why the attempt failed
        return Backoff().delay(failures, chance)


def failure_of(error: BaseException) -> Failure:
    """Describe an error: its type, where it was raised, its message, and its traceback without any values.

    Whatever the error's own code does, there is a description, and every store can keep it.
    """
    told = _read("traceback", lambda: "".join(traceback.format_exception(error)))
    return Failure(
        name_of(type(error)),
        _kept(_read("place", lambda: _where(error.__traceback__))),
        _kept(_read("message", lambda: str(error))),
        _storable(told[-LONGEST_TEXT:]),
    )


def name_of(kind: type) -> str:
    """Return what the store keeps of the name of an error's class."""
    return _kept(_plain(_name(kind)), LONGEST_NAME)


def kept_reason(reason: object) -> str | None:
    """Return what the store keeps of a reason that a person, or a person's code, has given."""
    return None if reason is None else _kept(_plain(str(reason)))


def _read(what: str, look: Callable[[], str]) -> str:
    try:
        return _plain(look())
    except BaseException as unreadable:  # noqa: BLE001 -- an error's own code may raise anything, SystemExit too
        return f"its {what} cannot be read ({name_of(type(unreadable))})"


def _plain(text: str) -> str:
    """Return a text whose methods are those of `str`."""
    return str.__str__(text)


def _kept(text: str, most: int = LONGEST_TEXT) -> str:
    return _storable(text if len(text) <= most else f"{text[:most]}… (the first {most} of {len(text)} characters)")


def _storable(text: str) -> str:
    """Write out what no store can keep as text: lone surrogates, such as those of undecodable file names, and NUL."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def _where(trace: TracebackType | None) -> str:
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{_plain(code.co_filename).rpartition('/')[2]}:{trace.tb_lineno} in {_plain(code.co_name)}"
