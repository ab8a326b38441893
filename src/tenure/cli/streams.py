"""The streams of the process: what is said on them arrives, or it is known that it did not.

A failure of standard output is told apart from every other error, and a failure of standard error hides none. A stream
that was closed is nobody's: where its number was free, the next file that is opened, such as a store, would get it, and
whatever is written there. So the null device takes its place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from tenure.errors import Misuse

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Unheard(OSError):
    """Standard output takes nothing more; `gone` where its reader has left. No errno, which typer would act upon."""

    def __init__(self, why: str, *, gone: bool = False) -> None:
        super().__init__(f"cannot write to standard output: {why}; what was asked for may be done")
        self.gone = gone


class _Output(FileIO):
    """Standard output."""

    deaf = False  # nobody asks any more whether what is left arrives

    def __init__(self, *, closed: bool) -> None:
        super().__init__(1, "w", closefd=False)
        self._was_closed = closed

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or raise Unheard."""
        if self.deaf:
            return memoryview(data).nbytes
        if self._was_closed:
            raise Unheard("it is closed")
        try:
            return super().write(data)
        except OSError as error:
            raise Unheard(str(error.strerror), gone=isinstance(error, BrokenPipeError)) from error


class _Errors(FileIO):
    """Standard error: where nothing can be written, an error goes on, and its exit code tells of it."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what can be written."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


@contextmanager
def own_streams() -> Iterator[None]:
    """Make the streams of this process safe for one command; those that somebody has replaced stay as they are."""
    before = sys.stdin, sys.stdout, sys.stderr
    for number in range(3):
        _occupy(number)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 -- it is for the whole command
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output(closed=sys.stdout is None), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Errors(2, "w", closefd=False), sys.stderr)
    try:
        yield
    finally:
        leave_output()
        sys.stdin, sys.stdout, sys.stderr = before


def leave_output() -> None:
    """Leave standard output as it was found: what is printed from now on is the program's own affair."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Output):
        try:
            flush()
        except Unheard:
            raw.deaf = True
        sys.stdout = sys.__stdout__  # None where it was closed, and then print() is silent


def flush() -> None:
    """Send what somebody has printed and not flushed; raises Unheard."""
    if sys.stdout is not None:
        sys.stdout.flush()


def read_input(*, line: bool = False) -> str:
    """Read standard input to its end, or one `line`; raises Misuse where it cannot be read or is no text."""
    try:
        return (sys.stdin.buffer.readline() if line else sys.stdin.buffer.read()).decode()
    except OSError as error:
        raise Misuse(f"standard input cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise Misuse("standard input is not text: it holds bytes that are not UTF-8") from None


def _occupy(number: int) -> None:
    """Put the null device where a stream was closed; child processes get it, too."""
    try:
        os.fstat(number)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, so this one
        os.set_inheritable(null, True)  # noqa: FBT003 -- it has no name there


def _text(raw: FileIO, before: TextIO | None) -> TextIOWrapper:
    """Write text as `before` does, but no character is an error: what the encoding lacks is escaped."""
    buffered = BufferedWriter(raw)
    if not isinstance(before, TextIOWrapper):
        return TextIOWrapper(buffered, "utf-8", "backslashreplace")
    return TextIOWrapper(
        buffered,
        before.encoding,
        "backslashreplace",
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
