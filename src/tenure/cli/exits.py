"""Exit codes: what a script learns from a command's end."""

from __future__ import annotations

from enum import IntEnum

from tenure.errors import Misuse, NotFound, OutcomeUnknown, Refused, TenureError, Unavailable


class Exit(IntEnum):
    """How a command ended; 70 and 74 are numbers of sysexits.h, 130 and 141 those of SIGINT and SIGPIPE."""

    DONE = 0
    REFUSED = 1
    MISTAKE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    UNKNOWN = 5
    FAULT = 70
    UNWRITTEN = 74
    INTERRUPTED = 130
    UNREAD = 141


MEANINGS: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.REFUSED: "some of it was refused or declined; or a probe found nothing healthy",
    Exit.MISTAKE: "a mistake in the call, in its settings, or in the app that it names",
    Exit.NOT_FOUND: "there is no such job",
    Exit.UNAVAILABLE: "nothing was done, the store could not be asked: try again later",
    Exit.UNKNOWN: "the answer was lost, it may or may not be done: ask, or repeat the call",
    Exit.FAULT: "an error that Tenure did not expect: repeat with --traceback and report it",
    Exit.UNWRITTEN: "standard output was full or closed: what was asked for may be done, the answer is lost",
    Exit.INTERRUPTED: "interrupted",
    Exit.UNREAD: "whoever read standard output left before its end, as head does: what was left to do was not done",
}

_BY_ERROR: tuple[tuple[type[TenureError], Exit], ...] = (
    (NotFound, Exit.NOT_FOUND),
    (Refused, Exit.REFUSED),
    (Misuse, Exit.MISTAKE),
    (Unavailable, Exit.UNAVAILABLE),
    (OutcomeUnknown, Exit.UNKNOWN),
)


def exit_for(error: BaseException) -> Exit:
    """Choose the exit code for an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.FAULT)


def epilog() -> str:
    """Write the codes for the end of a help text, a line each."""
    return "Exit codes:\n" + "\n".join(f"{code:>3}  {meaning}" for code, meaning in MEANINGS.items())
