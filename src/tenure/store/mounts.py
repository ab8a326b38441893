"""Where a folder lies: whether on a network file system, whose locks cannot be relied on."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre", "9p", "gfs2", "ocfs2"}
    | {"beegfs", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.davfs2"}
)
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-3][0-7]{2})")  # space, tab, line feed and backslash; all else stands as it is


def network_mount(folder: Path) -> str | None:
    """Name the network file system that `folder` lies on, such as "nfs4 at /srv"; None for a local one.

    None also where the system does not tell.
    """
    if not _MOUNTS.exists():
        return None
    where = os.fsencode(folder.resolve())
    best, kind = b"", ""
    for line in _MOUNTS.read_bytes().rstrip(b"\n").split(b"\n"):  # bytes: a name need not be text, and may hold a \r
        before, _, after = line.partition(b" - ")
        point = _ESCAPED.sub(lambda escape: bytes([int(escape[1], 8)]), before.split(b" ")[4])
        inside = where == point or where.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= len(best):
            best, kind = point, os.fsdecode(after.split(b" ")[0])
    return f"{kind} at {best.decode(errors='backslashreplace')}" if kind in _NETWORK else None
