"""The host's own clock for leases, and the identity of its boot.

`boot_clock` counts seconds since the host started, suspends included, and is never stepped: not by an operator, not by
a time service, not by daylight saving (R14). Every process of a host reads the same one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tenure.errors import Misuse

Clock = Callable[[], float]
"""A clock in seconds; tests inject their own."""

_ID = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_clock() -> float:
    """Read the seconds since this host booted."""
    return time.clock_gettime(_ID)


def boot_id() -> str:
    """Name this boot of this host; a reboot changes it. Raises Misuse on a platform that has no such name."""
    platform: str = sys.platform
    if platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    if platform == "darwin":
        told = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=True, timeout=5
        )
        return told.stdout.strip()
    raise Misuse(f"Tenure runs on Linux and macOS; {platform} has no boot identity that it could use")
