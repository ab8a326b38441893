"""One job as a panel, and its life as a table: for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tenure.cli.safe import printable
from tenure.cli.screen import phase_text
from tenure.cli.story import Scene
from tenure.cli.times import absolute, both, relative, span
from tenure.cli.views import HIDDEN, PAYLOAD
from tenure.protocol.job import JobRecord
from tenure.protocol.lifecycle import State

_MASKED = f"{HIDDEN} (--reveal shows it)"


def job_panel(record: JobRecord, shown: dict[str, Any], *, reveal: bool) -> Panel:
    """Lay out what is known of a job; `shown` is its view, in which hidden values are hidden already."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _facts(record):
        grid.add_row(name, printable(value))
    grid.add_row("phase", phase_text(record.phase))
    for name in PAYLOAD:
        if shown[name] is not None:
            grid.add_row(name, _MASKED if not reveal else _text(shown[name]))
    failure = shown["failure"]
    if failure is not None:
        grid.add_row("message", _MASKED if failure.message == HIDDEN and not reveal else printable(failure.message))
    return Panel(grid, title=Text(f"job {record.id}"), title_align="left", box=box.ROUNDED, expand=False)


def life_table(scenes: Iterable[Scene], now: datetime) -> Table:
    """Lay out a job's life, a line for each turn."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for scene in scenes:
        when = "now" if scene.at == now else relative(scene.at, now)
        table.add_row(absolute(scene.at), when, printable(scene.text))
    return table


def out_of(count: int, most: int | None) -> str:
    """Tell a count with its bound."""
    return str(count) if most is None else f"{count} of {most}"


def _facts(record: JobRecord) -> list[tuple[str, str]]:
    facts = [
        ("id", record.id),
        ("task", record.task or "(a bare lease)"),
        ("queue", record.queue or "-"),
        ("priority", str(record.priority)),
        ("due", both(record.run_at if record.state is State.AVAILABLE else None, record.now)),
        ("failed", out_of(record.attempts, record.max_attempts)),
        ("takeovers", out_of(record.takeovers, record.max_takeovers)),
        ("lease", span(record.lease)),
        ("time limit", "-" if record.timeout is None else span(record.timeout)),
        ("unique key", record.unique_key or "-"),
        ("generation", str(record.generation)),
    ]
    return facts + ([("secret", ", ".join(record.secret))] if record.secret else [])


def _text(value: object) -> str:
    return printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())
