"""The end of a lease's trust in memory that a worker and a child process share, and the lease that a child reads there.

The worker writes the end when a renewal is confirmed; the child compares it with the clock at the moment of asking
(R21). Nobody is asked, so a frozen worker changes nothing: the end simply comes. Both processes read the boot clock of
their host, so the end can be shared as it is (R14).
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile

from tenure.clock import boot_clock
from tenure.hold import Lease, Renew
from tenure.protocol.lease import Token

_SIZE = 8  # one double: aligned, so that it is read and written whole


class SharedEnd:
    """One moment on the boot clock, in seconds, read and written by two processes; 0.0 at first, which is long over.

    `fd` is that of the memory, which `shared_memory` makes; it may be closed when this exists.
    """

    def __init__(self, fd: int) -> None:
        self._moment = memoryview(mmap.mmap(fd, _SIZE)).cast("d")

    def get(self) -> float:
        """Read the moment."""
        return self._moment[0]

    def put(self, lease: Lease) -> None:
        """Write the end of the trust in `lease`, which may count it on another clock: only what remains counts."""
        now = boot_clock()
        self._moment[0] = now + lease.remaining()


def shared_memory() -> int:
    """Make memory for one `SharedEnd`, without a name that others could open; returns its file descriptor."""
    if sys.platform == "linux":
        fd = os.memfd_create("tenure-lease")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, _SIZE)
    return fd


class SharedLease(Lease):
    """A lease that its worker holds and renews, as the child process that runs the job sees it."""

    __slots__ = ("_end",)

    def __init__(self, token: Token, owner: str, duration: float, end: SharedEnd, *, renew: Renew) -> None:
        self._end = end
        super().__init__(token, owner, duration, 0.0, renew=renew)

    @property
    def _until(self) -> float:
        return self._end.get()

    @_until.setter
    def _until(self, moment: float) -> None:
        """Leave the end alone: only the worker knows what the store confirmed."""
