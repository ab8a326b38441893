"""The frame of an example: its common options, what it says while it goes on, and how it ends."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from tenure import TenureError
from tenure.demo.children import Stalled

Say = Callable[[str], None]

_INTERRUPTED = 130
_asked_to_end = threading.Event()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What every report has: how long it took, and what did not hold."""

    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


R = TypeVar("R", bound=Outcome)


def options_of(description: str, *, limit: int | None, limited: str) -> argparse.ArgumentParser:
    """Make a parser with the options that every example has; `limited` tells what --limit counts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--workers", type=_positive, default=3, help="worker processes at a time")
    parser.add_argument("--limit", type=_positive, default=limit, help=limited)
    parser.add_argument("--seed", type=int, default=1, help="what the attacks are drawn from")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")
    return parser


def play(act: Callable[[Path, Say], R], told: Callable[[R], str], *, as_json: bool) -> int:
    """Run an example in a folder of its own and print its report; return 0 if everything held."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    began = time.monotonic()
    say: Say = _mute if as_json else lambda text: print(f"{time.monotonic() - began:5.1f} s  {text}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tenure-example-") as folder:
            report = act(Path(folder), say)
    except (TenureError, TimeoutError, ChildProcessError, Stalled) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; every process has been ended", file=sys.stderr)
        return _INTERRUPTED
    report.seconds = round(time.monotonic() - began, 1)
    print(json.dumps({"ok": not report.problems, **asdict(report)}) if as_json else told(report))
    return 1 if report.problems else 0


def go_on() -> None:
    """Raise KeyboardInterrupt once a signal has asked to end: what it raised itself is lost inside a finalizer."""
    if _asked_to_end.is_set():
        raise KeyboardInterrupt


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 upwards")
    return int(text)


def _mute(_text: str) -> None:
    """Say nothing."""


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    _asked_to_end.set()
    raise KeyboardInterrupt
