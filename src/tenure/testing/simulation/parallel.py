"""Runs in several processes: each plays a part of the seeds, and the report is that of one that played all in order."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Final

from tenure.testing.simulation.runner import CollectedBetween, Report, run
from tenure.testing.simulation.theatre import Theatre

_PART: Final = 20  # histories that a process plays before it tells what they came to
_AHEAD: Final = 3  # parts that are given out for each process, so that none waits for work

_theatre: Theatre  # that of a process which plays parts


def processors() -> int:
    """Count the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_in(
    processes: int,
    store: str,
    seed: int,
    *,
    histories: int | None = None,
    seconds: float | None = None,
    most_findings: int = 5,
    tell: Callable[[Report], object] = lambda _report: None,
) -> Report:
    """Play the histories of `seed` and the seeds after it as `run` does, in so many processes.

    They are forks, so no other thread may be under way here. What was found does not depend on how many there are.
    """
    report = Report(store, most_findings)
    began = time.monotonic()
    parts = _parts(seed, histories)
    with ProcessPoolExecutor(processes, get_context("fork"), _begin, (store,)) as pool:

        def play(parts: Iterator[tuple[int, int]]) -> Iterator[Future[Report]]:
            return (pool.submit(_play, *part, most_findings) for part in parts)

        under_way = deque(play(islice(parts, _AHEAD * processes)))
        while under_way:
            report.join(under_way.popleft().result())
            report.seconds = time.monotonic() - began
            tell(report)
            if report.ends_early(seconds):
                break
            under_way.extend(play(islice(parts, 1)))
        pool.shutdown(cancel_futures=True)
    return report


def _parts(seed: int, histories: int | None) -> Iterator[tuple[int, int]]:
    """List parts, each by its first seed and its number of histories; without end where no number is asked for."""
    end = None if histories is None else seed + histories
    while end is None or seed < end:
        yield seed, _PART if end is None else min(_PART, end - seed)
        seed += _PART


def _begin(store: str) -> None:
    """Get ready to play parts."""
    global _theatre  # noqa: PLW0603 -- a process that plays parts has one theatre for all of them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever gave out the parts hears it too, and ends this process
    _theatre = Theatre(store)
    CollectedBetween().__enter__()


def _play(seed: int, histories: int, most_findings: int) -> Report:
    with _theatre.open():
        return run(_theatre, seed, histories=histories, most_findings=most_findings)
