"""A bell for a SQLite file: SQLite counts the commits of other connections, the kernel says when to ask for the count.

A commit writes to the log first and becomes visible a moment later, without a further write. So a written log is asked
about for a while, often, and otherwise the thread sleeps. Where there is no inotify the count is asked for regularly.
"""

from __future__ import annotations

import ctypes
import os
import select
import sqlite3
import threading
import time
from pathlib import Path

from tenure.store.sqlite.connect import open_connection, translate
from tenure.store.sqlite.forks import watch

_ALERT = 0.05  # seconds after a write to the log in which a commit may become visible
_WHILE_ALERT = 0.001
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
        now = time.monotonic()
        deadline, alert_until = now + seconds, now
        while True:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            now = time.monotonic()
            if now >= deadline:
                return False
            stirred = self._sleep(deadline - now, alert=now < alert_until)
            if self._woken in stirred:
                return False
            if stirred:
                alert_until = time.monotonic() + _ALERT

    def _sleep(self, left: float, *, alert: bool) -> set[int]:
        if alert:
            left = min(left, _WHILE_ALERT)
        elif self._log is None:
            left = min(left, _WITHOUT_INOTIFY)
        stirred = {descriptor for descriptor, _ in self._poll.poll(left * 1000)}
        for descriptor in stirred:
            os.read(descriptor, 65536)
        return stirred

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
