"""Deterministic simulation: the real worker and the real operations in virtual time, one thread, one seed, one history.

    with Theatre("memory").open() as theatre:
        played = theatre.play(seed=17)
    assert not played.violations

`python -m tenure.testing.simulation` plays as many histories as fit into a minute and says what they reached and what
broke. It needs the package `greenlet` (``pip install tenure[simulation]``).
"""

from __future__ import annotations

from tenure.testing.simulation.marks import MARKS
from tenure.testing.simulation.runner import Report, run
from tenure.testing.simulation.theatre import STORES, Played, Theatre

__all__ = ["MARKS", "STORES", "Played", "Report", "Theatre", "run"]
