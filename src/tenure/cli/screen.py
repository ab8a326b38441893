"""The one place where a command's answer leaves: text for people, JSON for machines.

With ``--json`` standard output carries JSON only: one document for one thing, one line an item for lists. Everything
else (errors, notes, prompts, progress) goes to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tenure.cli.exits import Exit, exit_for
from tenure.cli.safe import brief, full, one_line, printable
from tenure.cli.streams import read_input
from tenure.errors import Misuse, TenureError

_WIDE = 10_000  # columns where there is no terminal, so that nothing is cut for `grep`

_LEAST = {"ID": 32, "TASK": 6, "QUEUE": 6}  # an id that Tenure made has 32 characters
_SHORT = {"PHASE", "FAILED", "WHEN", "DUE", "SCHEDULED", "RUNNING", "EXPIRED", "PID", "SLOTS", "HELD"}

STYLES = {
    "available": "cyan",
    "scheduled": "blue",
    "retryable": "yellow",
    "running": "green",
    "expired": "red",
    "completed": "dim",
    "cancelled": "magenta",
    "discarded": "red",
}
"""The colour of each phase."""


class Screen:
    """Where one call of a command answers."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.out = _console(sys.stdout)
        self.err = _console(sys.stderr)

    def emit(self, value: Any) -> None:
        """Write one JSON document on one line, where JSON was asked for."""
        if self.as_json:
            typer.echo(_json(value))

    def say(self, *lines: object) -> None:
        """Show something to people; nothing where JSON was asked for."""
        if not self.as_json:
            for line in lines:
                self.out.print(printable(line) if isinstance(line, str) else line, soft_wrap=isinstance(line, str))

    def note(self, line: str, value: dict[str, Any]) -> None:
        """Add something beside the answer, on standard error."""
        if self.as_json:
            typer.echo(_json(value), err=True)
        else:
            self.err.print(printable(line), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
        """Show rows to people, or the sentence `empty`; nothing where JSON was asked for."""
        if self.as_json:
            return
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in columns:
            # What people copy, and what is short, keeps its place; the other columns share what is left.
            table.add_column(Text(column), overflow="fold", min_width=_LEAST.get(column), no_wrap=column in _SHORT)
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else printable(str(cell)) for cell in row))
        self.say(table if table.row_count else empty)

    def confirm(self, question: str) -> bool:
        """Ask a person on standard error; raises Misuse where nobody can answer."""
        if self.as_json:
            raise Misuse("nothing was done: with --json nobody is asked, so add --yes")
        sys.stderr.write(printable(f"{question} [y/N] "))
        sys.stderr.flush()
        answer = read_input(line=True)
        if not answer:
            raise Misuse("nothing was done: nobody was there to confirm it, so add --yes")
        return answer.strip().lower() in {"y", "yes"}

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Show a bar on standard error while a person watches; yields the function that advances it."""
        if self.as_json or not self.err.is_terminal:
            yield lambda _: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn(what, markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda steps: bar.advance(task, steps)

    def fail(self, error: BaseException, *, traceback: bool = False) -> Exit:
        """Tell an error in one line on standard error and return its exit code."""
        code = exit_for(error)
        message = one_line(str(error)) if isinstance(error, TenureError) else f"unexpected error, {brief(error)}"
        hint = "" if traceback or code is not Exit.FAULT else "; add --traceback to see it whole"
        self.complain(type(error).__name__, message + hint, code, trace=full(error) if traceback else None)
        return code

    def complain(self, kind: str, message: str, code: Exit, *, trace: str | None = None) -> None:
        """Write one error to standard error."""
        if self.as_json:
            told = {"error": kind, "message": message, "exit": int(code)} | ({"traceback": trace} if trace else {})
            typer.echo(_json(told), err=True)
            return
        if trace is not None:
            self.err.print(trace, soft_wrap=True)
        self.err.print(Text.assemble(("tenure: ", "bold red"), message), soft_wrap=True)


def phase_text(phase: object) -> Text:
    """Show a phase in its colour."""
    return Text(str(phase), style=STYLES[str(phase)])


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a file may be any bytes
        return msgspec.json.encode(_printable(msgspec.to_builtins(value)))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_printable(name): _printable(part) for name, part in value.items()}
    return [_printable(part) for part in value] if isinstance(value, list | tuple) else value


def _console(file: TextIO) -> Console:
    # Names may look like markup or emoji codes; nothing that is shown is ever interpreted (B29).
    width = None if file.isatty() else _WIDE
    return Console(file=file, width=width, markup=False, emoji=False, highlight=False)
