"""The clocks of a SQLite store, and the identity of its file.

Leases are judged by the host's boot clock, which all its processes share and nobody can step; the wall clock only says
when a job is due. A reboot starts the boot clock again, so another boot ends every lease.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tenure.clock import Clock, boot_clock, boot_id
from tenure.errors import BadSettings
from tenure.store.mounts import network_mount

_AT_FDCWD, _STATX_BTIME, _STATX_BTIME_OFFSET, _STATX_SIZE = -100, 0x800, 80, 256  # statx(2)


@dataclass(slots=True)
class Clocks:
    """Both clocks in milliseconds; `shift_ms` moves them forward in tests."""

    wall: Clock = time.time
    boot: Clock = boot_clock
    boot_id: Callable[[], str] = boot_id
    shift_ms: int = field(default=0)

    def read(self) -> tuple[int, int]:
        """Read (wall, boot) in milliseconds."""
        return int(self.wall() * 1000) + self.shift_ms, int(self.boot() * 1000) + self.shift_ms


def file_identity(path: Path) -> str:
    """Name the file behind `path` by its inode and its birth, so that a copy of it can be told from the original (R44).

    The file is not opened: closing any descriptor of a SQLite file drops the locks that this process holds on it.
    """
    return f"{path.stat().st_ino}:{_born(path)}"


def _born(path: Path) -> int:
    """Return the moment in nanoseconds at which a file was made; 0 where its file system does not tell."""
    told = getattr(path.stat(), "st_birthtime", None)
    if told is not None:
        return int(told * 1e9)
    statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    buffer = ctypes.create_string_buffer(_STATX_SIZE)
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, buffer) != 0:
        return 0
    (mask,) = struct.unpack_from("I", buffer, 0)
    seconds, nanoseconds = struct.unpack_from("qI", buffer, _STATX_BTIME_OFFSET)
    return int(seconds * 1_000_000_000 + nanoseconds) if mask & _STATX_BTIME else 0


def refuse_network(path: Path) -> None:
    """Raise BadSettings when `path` lies on a network file system, where locks and shared memory do not hold (B09)."""
    mount = network_mount(path.parent)
    if mount is not None:
        raise BadSettings(
            f"{path} lies on a network file system ({mount}), where SQLite's locks do not hold and the file"
            " can be damaged: use a local disk, or PostgreSQL for several hosts"
        )
