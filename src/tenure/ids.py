"""Identities made by the client: job ids that sort by time, and owners that nobody can guess or repeat."""

from __future__ import annotations

import os
import struct
import threading
import time

_VERSION, _VARIANT = 7 << 76, 2 << 62
_lock = threading.Lock()
_last = 0


def new_job_id() -> str:
    """Make a job id: 32 hexadecimal digits laid out as UUID version 7 (RFC 9562), rising within one process."""
    return new_job_ids(1)[0]


def new_job_ids(count: int) -> list[str]:
    """Make `count` job ids that sort in the order made.

    The first 60 free bits are a millisecond clock and a counter that never goes back, the rest is random, so that ids
    made by a client before the store was asked cannot collide and a repeated enqueue is harmless (R26).
    """
    global _last  # noqa: PLW0603 -- the counter is what makes the ids of one process rise
    with _lock:
        first = max(_last + 1, time.time_ns() // 1_000_000 << 12)
        _last = first + count
    noise = struct.unpack(f"{count}Q", os.urandom(8 * count))
    return [
        f"{(ticks >> 12) << 80 | _VERSION | (ticks & 0xFFF) << 64 | _VARIANT | bits >> 2:032x}"
        for ticks, bits in enumerate(noise, first)
    ]


def earliest_id(seconds: float) -> str:
    """Make the smallest id that any client could have made at `seconds` since the epoch; ids below it are older."""
    return f"{max(0, int(seconds * 1000)):012x}" + "0" * 20


def new_owner() -> str:
    """Make the random identity of one start of one worker (R24)."""
    return os.urandom(12).hex()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 -- a forked child may inherit the lock held by a thread that it lacks
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
