"""What is told of a store's floor when it was raised: from where, to where and why; whoever does it, and wherever."""

from __future__ import annotations

from tenure.protocol.events import Event, Kind, log
from tenure.store.contract import Admission

COPIED = "the store is another one than before (a copy, a backup that was put back, a failover)"
LIFTED = "a destination has met that generation"
RECOVERED = "an operator asked for it, as after a restore"


def moved(store: str, before: int, after: int, why: str) -> Admission:
    """Answer for a verb that may have raised the floor, and log it if it did: so it is told on any connection."""
    if after != before:
        detail = f"{store}: from {before} to {after}, as {why}"
        log.warning("%s", Event(Kind.FLOOR_RAISED, detail=detail))
    return Admission(after, raised=after != before, before=before)
