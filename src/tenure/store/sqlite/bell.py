"""A bell for a SQLite file: SQLite counts the commits of other connections, the kernel says when to ask for the count.

A commit writes to the log first and becomes visible when the disk has synced it, without a further write. So a written
log is asked about for a while, often at first, and otherwise the thread sleeps. Where there is no inotify the count is
asked for regularly.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import sqlite3
import threading
import time
from pathlib import Path

from tenure.store.sqlite.connect import open_connection, translate
from tenure.store.sqlite.forks import watch

_ALERT = 0.05  # seconds after a write to the log in which most commits become visible
_SYNCED = 5.0  # seconds in which they do on a disk that is slow, or busy
_WHILE_ALERT = 0.001
_PATIENT = 0.1  # of the time since the write: the pause between two questions after the alert
_WITHOUT_INOTIFY = 0.005
_IN_MODIFY, _IN_NONBLOCK_CLOEXEC = 0x2, 0o2004000  # inotify(7)


class FileBell:
    """Rings when another connection has committed to the file (`PRAGMA data_version`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._log: int | None = None
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._stirred_at = -math.inf
        self._seen = self._version()
        watch(self)

    def _version(self) -> int:
        with self._lock:
            connection = self._open() if self._connection is None else self._connection
            try:
                (version,) = connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error as error:
                raise translate(error, str(self._path)) from error
        return int(version)

    def _open(self) -> sqlite3.Connection:
        self._connection = open_connection(self._path)
        self._log = _watch(self._path.with_name(self._path.name + "-wal"))
        if self._log is not None:
            self._poll.register(self._log, select.POLLIN)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._log is not None:
            self._poll.unregister(self._log)
            os.close(self._log)
            self._log = None

    def before_fork(self) -> None:
        """Close the connection; the next look opens another, whose count differs: a ring too many."""
        self._lock.acquire()
        self._hang_up()

    def after_fork(self) -> None:
        """Let the connection be opened again, at once."""
        self._lock.release()
        self.wake()

    def wait(self, seconds: float) -> bool:
        """Wait until somebody has committed, or `seconds` have passed."""
        deadline = time.monotonic() + seconds
        while True:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            now = time.monotonic()
            if now >= deadline:
                return False
            if self._sleep(min(deadline - now, self._pause(now))):
                return False

    def _pause(self, now: float) -> float:
        """Tell when to ask again though nothing stirs."""
        since = now - self._stirred_at
        if since < _ALERT:
            return _WHILE_ALERT
        if self._log is None:
            return _WITHOUT_INOTIFY
        return since * _PATIENT if since < _SYNCED else math.inf

    def _sleep(self, seconds: float) -> bool:
        """Sleep until the log is written to, and note that; True when woken."""
        stirred = {descriptor for descriptor, _ in self._poll.poll(seconds * 1000)}
        for descriptor in stirred:
            os.read(descriptor, 65536)
        if stirred - {self._woken}:
            # Kept from one wait to the next: with what has become visible, word may have come of what follows it.
            self._stirred_at = time.monotonic()
        return self._woken in stirred

    def wake(self) -> None:
        """Make a waiting thread return at once."""
        os.write(self._waker, b"!")

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            self._hang_up()
        os.close(self._woken)
        os.close(self._waker)


def _watch(log: Path) -> int | None:
    """Return a descriptor that becomes readable when `log` is written to; None where the system has no inotify."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return None
    descriptor: int = libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
    if descriptor >= 0 and libc.inotify_add_watch(descriptor, os.fsencode(log), _IN_MODIFY) >= 0:
        return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    return None
