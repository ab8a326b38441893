"""A store that the run starts itself, and what is done to it: a SQLite file, or a PostgreSQL server."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

from tenure.errors import BadSettings, Misuse, Unavailable
from tenure.proof.prove.plan import Plan
from tenure.proof.prove.volume import Volume
from tenure.store.sqlite.connect import open_connection
from tenure.testing.servers import Postgres

_PATIENCE = 60.0
_LOOK = 0.1
_ATTEMPTS, _NEXT = 300, 0.003
_BEHIND = -3600.0
_LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1")

Wait = Callable[[float], object]
"""Waits for so many seconds, or for the end of all faults."""


class ManagedStore:
    """The store of a run that starts it. Who does something to it holds `alone`: each deed has to be undone."""

    def __init__(self, plan: Plan, folder: Path, stack: ExitStack, volume: Volume | None) -> None:
        self._volume = volume
        self._clock: ServerClock | None = None
        self._server: Postgres | None = None
        self.alone = threading.Lock()
        home = folder if volume is None else volume.folder
        if plan.managed == "postgres":
            self._clock = stack.enter_context(ServerClock()) if "jump" in plan.faults else None
            self._server = stack.enter_context(
                Postgres.start(
                    folder=None if volume is None else home / "server",
                    settings={} if volume is None else {"wal_recycle": False},  # else there is always a file left
                    environment={} if self._clock is None else self._clock.environment,
                )
            )
            self.address = self._server.create_database()
            if self._clock is not None:
                check_clock(self._clock, self._told_time)
        else:
            self._file = home.resolve() / "store.db"
            self.address = f"sqlite:///{self._file}"

    def crash(self, wait: Wait, seconds: float) -> None:
        """Kill the server with everything in it, and start it again."""
        assert self._server is not None  # noqa: S101 -- a plan with this fault has one
        self._server.kill()
        wait(seconds)
        self._server.restart()

    def fill_disk(self, wait: Wait, seconds: float, *, end_log: bool) -> None:
        """Leave no room in the file system of the store for a while.

        A store goes on for as long as its log has room in the file that it has begun. `end_log` takes that away: a
        server has to begin another file and panics, and SQLite has to let its own grow.
        """
        assert self._volume is not None  # noqa: S101 -- a plan with this fault has one
        if end_log and self._server is None:
            self._cut_log()
        self._volume.fill()
        try:
            if end_log and self._server is not None:
                with suppress(Unavailable):
                    self._server.run("psql", "-Xqc", "SELECT pg_switch_wal()")
            wait(seconds)
        finally:
            self._volume.make_room()
        self._revive()

    def set_clock(self, ahead: float) -> None:
        """Set the server's clock, so many seconds ahead of how it was at first."""
        assert self._clock is not None  # noqa: S101 -- a plan with this fault has one
        self._clock.set(ahead)

    def _told_time(self) -> float:
        assert self._server is not None  # noqa: S101 -- only one with a server has a clock
        return float(self._server.run("psql", "-XAtc", "SELECT extract(epoch FROM clock_timestamp())"))

    def _cut_log(self) -> None:
        """Write what is in the log of the SQLite file into the file, and leave it empty, if nobody is in the way."""
        with closing(open_connection(self._file)) as connection:
            for _ in range(_ATTEMPTS):
                (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return
                time.sleep(_NEXT)

    def _revive(self) -> None:
        """Start a server again that has ended for want of room, and wait until it answers."""
        until = time.monotonic() + _PATIENCE
        while self._server is not None:
            try:
                self._server.run("psql", "-Xqc", "SELECT 1")
            except Unavailable:
                if time.monotonic() > until:
                    raise
                if not self._server.running:
                    self._server.restart()
                time.sleep(_LOOK)
            else:
                return


def find_library() -> Path | None:
    """Find libfaketime, the one for programs with threads."""
    found = (path for pattern in _LIBRARIES for path in Path("/").glob(pattern.lstrip("/")))
    return min(found, default=None)


class ServerClock:
    """The wall clock of a server that runs under libfaketime, which reads at every look how far it is off.

    It is an hour behind, whatever is set: of a clock that is ahead of that of its host, PostgreSQL's timeouts are lost
    under libfaketime.
    """

    def __init__(self) -> None:
        library = find_library()
        if library is None:
            raise BadSettings(
                "jump sets the clock of the store's server by libfaketime, which is not here: install the package"
                " faketime of your system"
            )
        self._folder = tempfile.TemporaryDirectory(prefix="tenure-clock-")
        self._file = Path(self._folder.name, "clock")
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        Path(self._folder.name).chmod(0o755)  # so that the server can look, whoever it runs as
        self.set(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def set(self, ahead: float) -> None:
        """Set it, so many seconds ahead of how it was at first."""
        new = self._file.with_name("new")
        new.write_text(f"{_BEHIND + ahead:+.3f}\n", encoding="ascii")
        new.chmod(0o644)
        os.replace(new, self._file)  # noqa: PTH105 -- at once: nobody may meet half a file


def check_clock(clock: ServerClock, told_time: Callable[[], float]) -> None:
    """Look whether a server believes in the clock that it is given: a fault that is none shows nothing."""
    for ahead in (100.0, 0.0):
        clock.set(ahead)
        wrong = told_time() - time.time() - _BEHIND - ahead
        if abs(wrong) > _PATIENCE:
            raise Misuse(f"jump: the clock of the server was to be set, and it is wrong by {wrong:.0f} s")
