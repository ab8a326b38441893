"""Durations and moments as people write and read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import typer

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_STEPS = (("d", 2 * 86_400.0, 86_400.0), ("h", 2 * 3600.0, 3600.0), ("min", 120.0, 60.0), ("s", 10.0, 1.0))


def read_duration(text: str) -> float:
    """Read a duration such as ``30``, ``30s``, ``5m``, ``2h`` or ``7d`` as seconds; raises BadParameter for another."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no duration: write 30 or 30s, 5m, 2h, 7d")
    return float(found[1]) * _UNITS[found[2]]


def read_moment(text: str) -> datetime:
    """Read a moment in ISO 8601 with its time zone; raises BadParameter for another."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no moment: write it as 2030-01-31T09:00:00Z") from None
    if moment.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone: add Z for UTC, or an offset such as +01:00")
    return moment


def span(seconds: float) -> str:
    """Tell a length of time in its natural unit: ``0.4 s``, ``12 s``, ``3 min``, ``5 h``, ``7 d``."""
    length = abs(seconds)
    for unit, least, size in _STEPS:
        if length >= least:
            return f"{length / size:.0f} {unit}"
    return f"{round(length, 1):g} s"


def relative(moment: datetime, now: datetime) -> str:
    """Tell a moment from now: ``3 min ago``, ``in 2 h``."""
    seconds = (moment - now).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else f"{span(seconds)} ago"


def absolute(moment: datetime) -> str:
    """Tell a moment in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def both(moment: datetime | None, now: datetime) -> str:
    """Tell a moment in UTC and from now; a dash for none."""
    return "-" if moment is None else f"{absolute(moment)} ({relative(moment, now)})"
