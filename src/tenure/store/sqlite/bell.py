"""A bell for a SQLite file: SQLite counts the commits of other connections, the kernel says when to ask for the count.

A commit writes to the log first and becomes visible when the disk has synced it, without a further write. So a written
log is asked about for a while, in pauses that grow with the time since: a ring comes late by a part of what the disk
took, be it quick or slow. Otherwise the thread sleeps. Where there is no inotify the count is asked for regularly.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tenure.errors import Unavailable
from tenure.store.sqlite import forks
from tenure.store.sqlite.connect import open_connection, translate
from tenure.store.sqlite.turnstile import turnstile_of

_SOON = 0.0002  # seconds after a write to the log before which no disk has synced it; also the shortest pause
_SYNCED = 5.0  # seconds in which a commit becomes visible, also on a disk that is slow, or busy
_PATIENT = 0.2  # of the time since the write: the pause between two questions
_OWN = 0.001  # seconds after a commit of this process, of which nobody waits to hear while its jobs are to begin
_FINE = 0.002  # seconds below which a pause is slept, as polling counts in milliseconds
_WITHOUT_INOTIFY = 0.005
_IN_MODIFY, _IN_NONBLOCK_CLOEXEC = 0x2, 0o2004000  # inotify(7)


class FileBell:
    """Rings when another connection has committed to the file (`PRAGMA data_version`).

    One thread waits, and closes the bell: others may only wake it. Its descriptors stay open until then, also over a
    fork, since a number that is closed under a thread that polls it may soon be somebody else's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        self._empty_for: Callable[[], float] = lambda: math.inf  # how long nobody of this process has had the lock
        self._lock = threading.Lock()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._log = inotify()
        self._stirs = False  # whether the kernel tells of writes to the log
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._poll = select.poll()
        for descriptor in self._descriptors():
            self._poll.register(descriptor, select.POLLIN)
        self._stirred_at = -math.inf
        forks.watch(self)
        try:
            self._seen = self._version()
        except BaseException:
            self.close()
            raise

    def _descriptors(self) -> list[int]:
        return [self._woken] if self._log is None else [self._woken, self._log]

    def _version(self) -> int:
        with self._lock:
            if self._closed:
                raise Unavailable("this bell is closed: open another one")
            connection = self._open() if self._connection is None else self._connection
            try:
                (version,) = connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error as error:
                raise translate(error, str(self._path)) from error
        return int(version)

    def _open(self) -> sqlite3.Connection:
        self._connection = open_connection(self._path)
        self._empty_for = turnstile_of(self._path).empty_for
        # Each time: the log is another file if nobody had it open meanwhile.
        self._stirs = self._log is not None and watch(self._log, self._path.with_name(self._path.name + "-wal"))
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        """Close the connection; the next look opens another, whose count differs: a ring too many."""
        self._lock.acquire()
        self._hang_up()

    def after_fork(self) -> None:
        """Let the connection be opened again, at once; in a child, where no thread waits, close the bell."""
        try:
            if self._pid == os.getpid():
                self.wake()
            else:
                self._shut()
        finally:
            self._lock.release()

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
        if not self._stirs:
            return _WITHOUT_INOTIFY
        since = now - self._stirred_at
        if since >= _SYNCED:
            return math.inf
        return max(_SOON, since * _PATIENT, _OWN - self._empty_for())

    def _sleep(self, seconds: float) -> bool:
        """Sleep until the log is written to, and note that; True when woken."""
        if seconds < _FINE:
            time.sleep(seconds)
            seconds = 0.0
        stirred = {descriptor for descriptor, _ in self._poll.poll(seconds * 1000)}
        if self._log in stirred:
            # Kept from one wait to the next: with what has become visible, word may have come of what follows it.
            self._stirred_at = time.monotonic()
            time.sleep(_SOON)  # a commit writes page by page, and each of them would wake this thread
        for descriptor in stirred:
            os.read(descriptor, 65536)
        return self._woken in stirred

    def wake(self) -> None:
        """Make a waiting thread return at once; nothing, once the bell is closed."""
        with forks.brief, suppress(BlockingIOError):  # a full pipe wakes as well
            if not self._closed:
                os.write(self._waker, b"!")

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            self._shut()

    def _shut(self) -> None:
        self._hang_up()
        forks.forget(self)
        with forks.brief:
            if self._closed:
                return
            self._closed = True
            for descriptor in (*self._descriptors(), self._waker):
                os.close(descriptor)


def inotify() -> int | None:
    """Return a descriptor for `watch`; None where the system has no inotify, or none to spare."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_IN_NONBLOCK_CLOEXEC) if hasattr(libc, "inotify_init1") else -1
    return None if descriptor < 0 else int(descriptor)


def watch(descriptor: int, log: Path) -> bool:
    """Have `descriptor` become readable when `log` is written to; False where that cannot be had."""
    return bool(ctypes.CDLL(None, use_errno=True).inotify_add_watch(descriptor, os.fsencode(log), _IN_MODIFY) >= 0)
