"""A small file system that can be full: a tmpfs that nobody sees but this process and those that it starts.

The process leaves the mounts of its system for a set of its own, as root by right, as an ordinary user as the owner of
a user namespace. Nothing has to be undone: the file system vanishes with the last process that sees it.

Full is what its kernel says: it is made just as large as what is in it, so that the next page is refused with ENOSPC.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from tenure.errors import BadSettings

_NEW_MOUNTS, _NEW_USER = 0x0002_0000, 0x1000_0000
_REMOUNT, _RECURSIVE, _PRIVATE = 0x20, 0x4000, 0x0004_0000
_ROOMY = "size=50%"  # of the memory, of which it takes what is in it
_ATTEMPTS = 100


class Volume:
    """A file system at `folder`, an empty folder. Only a process with one thread can make one, as its first deed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            _leave()
            _mount("none", Path("/"), _RECURSIVE | _PRIVATE)
            _mount("tmpfs", folder, 0, f"{_ROOMY},mode=755")
        except (OSError, AttributeError) as error:  # AttributeError: not Linux
            raise BadSettings(
                f"disk needs a small file system of its own, and this system lets you mount none ({error}): run it on"
                " Linux as root, or as a user who may make user namespaces"
            ) from error

    def fill(self) -> None:
        """Leave no room, from now on."""
        for _ in range(_ATTEMPTS):
            room = os.statvfs(self.folder)
            with suppress(OSError):  # somebody has written in between, and it would be smaller than what is in it
                return _mount("tmpfs", self.folder, _REMOUNT, f"size={(room.f_blocks - room.f_bfree) * room.f_frsize}")
        raise BadSettings(f"the file system at {self.folder} could not be filled: others write too fast")

    def make_room(self) -> None:
        """Leave as much room as at first."""
        _mount("tmpfs", self.folder, _REMOUNT, _ROOMY)


def _leave() -> None:
    """Go into a new set of mounts; who is not root needs a new set of users too, to be its owner."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        return _check(ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS))
    _check(ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | _NEW_USER))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)
    return None


def _mount(kind: str, folder: Path, flags: int, options: str = "") -> None:
    mount = ctypes.CDLL(None, use_errno=True).mount
    _check(mount(kind.encode(), os.fsencode(folder), kind.encode(), ctypes.c_ulong(flags), options.encode()))


def _check(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
