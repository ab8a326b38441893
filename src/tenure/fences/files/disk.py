"""What a file fence asks of the system: names, locks, and that what was written stays written."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenure.errors import BadSettings, TenureError, Unavailable
from tenure.store.mounts import network_mount

_LONGEST_NAME = 150
_QUOTED = re.compile(rb"[^a-z0-9_-]")
_IDENTITY = "+identity"  # no scope has files of this name: a plus sign is quoted
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.03


def file_name(scope: str) -> str:
    """Return the name of a scope's files: no two scopes share one, on no file system, however long they are."""
    quoted = _QUOTED.sub(lambda found: b"%%%02x" % found[0][0], scope.encode()).decode()
    return quoted if len(quoted) <= _LONGEST_NAME else f"{quoted[:_LONGEST_NAME]}~{digest(scope)}"


def digest(scope: str) -> str:
    """Return a short name for a scope in which no dot stands."""
    return hashlib.sha256(scope.encode()).hexdigest()[:32]


def identify(folder: Path, patience: float) -> bytes:
    """Return what tells a folder from one that is made anew under its name, and give it one where it has none."""
    if there := identity(folder):
        return there
    with locked(folder / f"{_IDENTITY}.lock", patience):
        if not identity(folder):
            replace_file(folder / _IDENTITY, folder / f"{_IDENTITY}.new", secrets.token_hex(16).encode())
            sync_folder(folder)
        return identity(folder)


def identity(folder: Path) -> bytes:
    """Return the identity of a folder, nothing where there is none."""
    try:
        return (folder / _IDENTITY).read_bytes()
    except FileNotFoundError:
        return b""


def replace_file(path: Path, aside: Path, data: bytes) -> None:
    """Replace a file by `data`, written aside and synced first."""
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder written to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_network_folder(folder: Path) -> None:
    """Raise BadSettings when a folder lies on a network file system, where locks and renames do not hold."""
    mount = network_mount(folder)
    if mount is not None:
        raise BadSettings(
            f"{folder} lies on a network file system ({mount}), where locks and renames do not hold for a fence: use a"
            " local disk"
        )


@contextmanager
def failing_as(kind: type[TenureError], what: str) -> Iterator[None]:
    """Turn an error of the system into one that says what it means for the caller."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error}") from error


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock on a file, waiting `patience` seconds for it; raises Unavailable that names who has it.

    It is flock: it belongs to what was opened here, so threads of one process exclude each other too, and closing other
    descriptors of the file does not drop it, as it would drop a lock of fcntl. It ends with its process.
    """
    with failing_as(Unavailable, "nothing was changed"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with failing_as(Unavailable, "nothing was changed"):
            _take(descriptor, path, patience)
        with suppress(OSError):  # only for whoever has to wait: a full disk refuses no one because of it
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        # A process forked meanwhile has the descriptor too, and closing it here alone would not let go.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _take(descriptor: int, path: Path, patience: float) -> None:
    deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(descriptor, 20, 0).decode("ascii", "replace") or "unknown"
                raise Unavailable(
                    f"process {holder} has held {path} for more than {patience:g} s; nothing was changed. A writer"
                    " holds it for milliseconds: if that process is stopped, let it go on or kill it; nothing is lost"
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
