"""Runs: many histories one after the other, with what they reached and what broke, and how fast they were."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tenure.testing.simulation.marks import MARKS
from tenure.testing.simulation.theatre import Played, Theatre

ENOUGH: Final = 2000
"""Histories from which on every mark has to be reached."""


@dataclass(slots=True)
class Report:
    """What a run of histories came to."""

    store: str
    most_findings: int = 5
    program: str | None = None  # of an exhaustive search
    whole: bool = True  # whether everything was played that was asked for
    histories: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    reached: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[Played, tuple[int, ...]]] = field(default_factory=list)  # each with its choices

    def add(self, played: Played, choices: tuple[int, ...] = ()) -> None:
        """Count one history."""
        self.histories += 1
        self.reached.update(played.reached)
        if played.violations:
            self.broken.append((played, choices))

    def join(self, part: Report) -> None:
        """Count the histories of a part of the same run, which come after those that were counted."""
        self.histories += part.histories
        self.processor_seconds += part.processor_seconds
        self.reached.update(part.reached)
        self.broken += part.broken[: self.most_findings - len(self.broken)]

    def ends_early(self, seconds: float | None) -> bool:
        """Say whether enough was found, or the time is over."""
        return len(self.broken) >= self.most_findings or (seconds is not None and self.seconds >= seconds)

    @property
    def missing(self) -> list[str]:
        """The marks that no history reached."""
        return [mark for mark in MARKS if not self.reached[mark]]

    @property
    def a_minute(self) -> float:
        """Histories a minute of one processor's time."""
        return 60.0 * self.histories / max(self.processor_seconds, 1e-9)

    @property
    def good(self) -> bool:
        """Whether nothing broke and, in a run that is long enough to say so, every mark was reached."""
        return not self.broken and (self.program is not None or self.histories < ENOUGH or not self.missing)


def run(
    theatre: Theatre,
    seed: int,
    *,
    histories: int | None = None,
    seconds: float | None = None,
    most_findings: int = 5,
    tell: Callable[[Report], object] = lambda _report: None,
) -> Report:
    """Play the histories of `seed` and the seeds after it, as many as are asked for or as fit into the time.

    The theatre must be open. Ends early once `most_findings` histories were found broken; `tell` hears of every one.
    """
    report = Report(theatre.store, most_findings)
    began, processor = time.monotonic(), time.process_time()
    for number in _seeds(seed, histories):
        report.add(theatre.play(number))
        report.seconds, report.processor_seconds = time.monotonic() - began, time.process_time() - processor
        tell(report)
        if report.ends_early(seconds):
            break
    return report


def _seeds(first: int, histories: int | None) -> Iterator[int]:
    number = first
    while histories is None or number < first + histories:
        yield number
        number += 1


class CollectedBetween:
    """Let the garbage collector look only at what a history left, right after it, and not at what was there before."""

    def __enter__(self) -> None:
        gc.collect()
        gc.freeze()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.enable()
        gc.unfreeze()
