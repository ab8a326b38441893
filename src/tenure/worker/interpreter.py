"""How the interpreter of a process that is there to work is set, unless its program has set it otherwise."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 10_000
"""New objects between two looks of the collector. By default CPython looks after 700 to 2,000, which a few dozen jobs
make; runs and leases are freed without it, and the looks would cost as much as a fifth of the work on very short
jobs."""

OFTEN = 0.001
"""Seconds after which a thread lets another one run that waits for its turn. With the default of 5 ms keeper, feeder
and settler would wait that long after each answer of the store while handlers keep the interpreter busy."""

_DEFAULT = 0.005


@contextmanager
def set_for_work() -> Iterator[None]:
    """Look for cycles `SELDOM` and change threads `OFTEN`; what the program has chosen itself is left alone.

    A collector that is switched off, or has a higher threshold, counts as chosen, and so does any other interval than
    CPython's default.
    """
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    if 0 < threshold[0] < SELDOM:
        gc.set_threshold(SELDOM, *threshold[1:])
    if interval == _DEFAULT:
        sys.setswitchinterval(OFTEN)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
