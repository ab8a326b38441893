"""What may leave through a screen: no user data of addresses, no control characters, no hidden values (B30)."""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path

from tenure.errors import BadSettings, OutcomeUnknown, TenureError, Unavailable

_USER_DATA = re.compile(r"(\w+:/+)\S*@")
_QUERY = re.compile(r"([?&]\w*(?:pass|secret|token|key)\w*=)[^&\s'\"]*", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BYTES = range(0xDC80, 0xDD00)
"""How Python writes a byte of an argument or of a file's name that is no text."""

_ABOUT_CODE = (ImportError, SyntaxError, NameError, AttributeError)
"""Errors whose message holds names of the program, not values."""

_FROM_A_STORE = (Unavailable, OutcomeUnknown, BadSettings)
"""Errors whose cause may be a client library's, which may quote the address that it was given."""


def without_user_data(text: str) -> str:
    """Take user names and passwords out of every address in `text`."""
    return _QUERY.sub(r"\1•••", _USER_DATA.sub(r"\1", text))


def printable(text: str) -> str:
    """Escape what a terminal would obey instead of showing, and bytes that are no text; line breaks and tabs stay."""
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code & 0xFF if code in _BYTES else code:02x}"


def one_line(text: str) -> str:
    """Bring text on one line that is fit to be shown."""
    return printable(without_user_data(" ".join(text.split())))


def place(error: BaseException) -> str:
    """Tell where an error was raised: the last line of a file below the current directory, or else the last line."""
    if isinstance(error, SyntaxError):
        return f"{os.path.relpath(error.filename or '?')}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    here = Path.cwd()
    ours = (frame for frame in reversed(frames) if Path(frame.filename).is_relative_to(here))
    frame = next(ours, frames[-1])
    path = Path(frame.filename)
    return f"{path.relative_to(here) if path.is_relative_to(here) else path.name}:{frame.lineno}"


def brief(error: BaseException) -> str:
    """Tell an error on one line: type and place, and its message only where that cannot hold a value."""
    message = f": {error}" if isinstance(error, (TenureError, *_ABOUT_CODE)) else ""
    return one_line(f"{type(error).__name__} at {place(error)}{message}")


def full(error: BaseException) -> str:
    """Tell an error with its traceback and its causes; a client library's error below a store's keeps its message."""
    parts: list[str] = []
    hidden = False
    cause: BaseException | None = error
    while cause is not None:
        message = "" if hidden else f": {cause}"
        parts.append("".join(traceback.format_tb(cause.__traceback__)) + type(cause).__name__ + message)
        hidden = hidden or isinstance(cause, _FROM_A_STORE)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return printable(without_user_data("\ncaused by\n".join(parts)))
