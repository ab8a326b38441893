"""How often a process that is there to work looks for cycles of dead objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 10_000
"""New objects between two looks. By default CPython looks after 700 to 2,000, which a few dozen jobs make; runs and
leases are freed without it, and the looks would cost as much as a fifth of the work on very short jobs."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Raise the collector's first threshold to `SELDOM`; one that is higher, or switched off, is left alone."""
    before = gc.get_threshold()
    if 0 < before[0] < SELDOM:
        gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
