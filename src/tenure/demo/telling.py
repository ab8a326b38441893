"""How the play is told: in plain text with one table at the end, or as JSON lines."""

from __future__ import annotations

import itertools
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from tenure.demo.events import Event, Summary

_WIDTH = 100
_HEAD = ("who", "generation", "tries to", "answered by", "answer")

_SAFE = """
A slept through its lease under generation {a}. When it woke up, B had done the job under generation {b}. A's own clock
kept it from starting another effect, the store refused its completion, and the destination refused the two writes that
it had begun before it slept: the one that came when B had only read, and the one that came when B had written. A late
worker changes nothing. Writes applied: {writes}; the destination holds "{holds}".
"""
_DAMAGE = """
This is the damage that a fence prevents. The destination cannot tell late from current: A's draft was made while B
worked with what it had read before, and A's page came after B's and overwrote it. The job is completed by B under
generation {b}, and the destination holds "{holds}". No lease could have helped; only the place where the effect happens
can compare generations. Play it again with the fence, and these writes are refused.
"""
_NEXT = """Now put README's first use into shop.py here, enqueue a job, and run a worker of your own:

    {python} shop.py
    {tenure} worker --app shop:app --log-level debug"""


class Teller(Protocol):
    """Tells a play to somebody."""

    def begin(self, store: str, job: str, destination: str, *, fence: bool) -> None:
        """Say what is about to be played, and where."""
        ...

    def event(self, event: Event) -> None:
        """Tell what has just happened."""
        ...

    def end(self, summary: Summary) -> None:
        """Tell what became of it."""
        ...

    def broken_off(self, problem: str) -> None:
        """Tell why there is no end."""
        ...


class PlainTeller:
    """Tells people: lines while it happens, a table when it is over."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def begin(self, store: str, job: str, destination: str, *, fence: bool) -> None:
        """Say what is about to be played, and where."""
        guard = "with a fence" if fence else "WITHOUT a fence"
        _say(f"One job, eight workers, and a destination {guard}.")
        _say(f"Store: {store}\nDestination: {destination}\nJob: {job}\n")

    def event(self, event: Event) -> None:
        """Tell what has just happened, in one line."""
        self._events.append(event)
        _say(f"{event.at:5.1f} s  {event.who:<2}  generation {event.generation}  {event.tried}: {event.answer}")

    def end(self, summary: Summary) -> None:
        """Show the table, the conclusion and the next step."""
        _say(f"\n{table(self._events)}\n")
        _say(textwrap.fill(conclusion(summary), _WIDTH))
        _say("\n" + _NEXT.format(python=_here(Path(sys.executable)), tenure=_command()) if summary.ok else "")

    def broken_off(self, problem: str) -> None:
        """Tell why there is no end; every process of the play has been ended."""
        _say(f"\nThe play was broken off: {problem}")


class JsonTeller:
    """Tells programs: one JSON object a line, the summary last."""

    def begin(self, store: str, job: str, destination: str, *, fence: bool) -> None:
        """Say what is about to be played, and where."""
        _say_json({"event": "began", "store": store, "destination": destination, "job": job, "fence": fence})

    def event(self, event: Event) -> None:
        """Tell what has just happened."""
        _say_json(event)

    def end(self, summary: Summary) -> None:
        """Give the summary."""
        _say_json({"summary": {"ok": summary.ok, **msgspec.structs.asdict(summary)}})

    def broken_off(self, problem: str) -> None:
        """Tell why there is no end."""
        _say_json({"summary": {"ok": False, "problem": problem}})


def table(events: Iterable[Event]) -> str:
    """Lay the events out as a table; neighbours to whom the same happened share a line."""
    lines: list[tuple[str, ...]] = [_HEAD]
    for what, neighbours in itertools.groupby(events, lambda event: (event.tried, event.answered_by, event.answer)):
        first, *others = neighbours
        last = others[-1] if others else first
        lines.append((_span(first.who, last.who), _span(first.generation, last.generation), *what))
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def conclusion(summary: Summary) -> str:
    """Say in one paragraph what has been seen."""
    if not summary.ok:
        return f"This is not as it should be: {', '.join(summary.failed)}."
    text = _SAFE if summary.fence else _DAMAGE
    words = {
        "a": summary.generation_a,
        "b": summary.generation_b,
        "holds": summary.holds,
        "writes": summary.effects_applied,
    }
    return text.strip().replace("\n", " ").format(**words)


def _command() -> str:
    """Name the command as it can be typed here: `make demo` leaves it in an environment that is not activated."""
    beside = Path(sys.executable).with_name("tenure")
    if shutil.which("tenure") or not beside.exists():
        return "tenure"
    return _here(beside)


def _here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _span(first: object, last: object) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _say_json(value: object) -> None:
    _say(msgspec.json.encode(value).decode())
