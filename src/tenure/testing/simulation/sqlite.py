"""The SQLite store as a server of the simulation: one file for all histories, emptied in between, in the host's memory.

Triggers of our own note each change of a row, in the transaction that makes it. A failover is what it is for a file: an
older copy takes its place, and the store has to notice by itself that this is another file (R44).
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tenure.errors import TenureError
from tenure.proof.history import Entry, Row
from tenure.protocol.lifecycle import State, Verb
from tenure.protocol.op import Op, run
from tenure.store.contract import Verbs
from tenure.store.sql import SqlVerbs
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.clocks import Clocks
from tenure.testing.simulation.network import Answer
from tenure.testing.simulation.server import EPOCH, Change, stands, told

_SQL: Final = files("tenure.testing.simulation")
_NOTING: Final = _SQL.joinpath("noting.sql").read_text(encoding="utf-8")
_EMPTYING: Final = _SQL.joinpath("emptying.sql").read_text(encoding="utf-8")
_STANDING: Final = _SQL.joinpath("standing.sql").read_text(encoding="utf-8")
_READ: Final = "SELECT * FROM simulated_changes ORDER BY rowid"
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- a private folder is made inside


@dataclass(slots=True)
class Stood:
    """How a job stood in the file."""

    id: str
    state: State
    generation: int
    owner: str | None
    worker: str | None
    lease_until: float | None
    attempts: int
    takeovers: int
    max_attempts: int | None
    max_takeovers: int | None
    result: str | None
    progress: str | None
    ended: Verb | None


class File:
    """A SQLite file that histories use one after the other."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None)
        self.path = Path(self._folder.name) / "simulated.db"
        self.clock: Callable[[], float] = lambda: 0.0
        self._clocks = Clocks(
            wall=lambda: EPOCH.timestamp() + self._read_clock(), boot=self._read_clock, boot_id=lambda: "simulated"
        )
        self.store = self.open()
        self.connection = self._connect()
        self.connection.executescript(_NOTING)

    def open(self) -> SqliteStore:
        """Open the file as a store, which makes it when it is not there."""
        store = SqliteStore(str(self.path), clocks=self._clocks)
        with store.session(1.0) as execute:
            run(store.verbs.admit(), execute)
        return store

    def _read_clock(self) -> float:
        return self.clock()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None)

    def empty(self, clock: Callable[[], float]) -> None:
        """Remove everything, for a history with a clock of its own."""
        self.clock = clock
        self.connection.executescript(_EMPTYING)

    def keep(self) -> None:
        """Copy the file as it is."""
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(self.path, self.path.with_suffix(".kept"))

    def restore(self) -> None:
        """Put the copy in the place of the file."""
        self.close()
        self.path.with_suffix(".kept").replace(self.path)
        self.store = self.open()
        self.connection = self._connect()

    def close(self) -> None:
        """Close every connection."""
        self.store.close()
        self.connection.close()

    def remove(self) -> None:
        """Remove the file."""
        self.close()
        self._folder.cleanup()


class SqliteServer:
    """The SQLite store's operations on a file."""

    name = "sqlite"
    verbs: Verbs = SqlVerbs()

    def __init__(self, file: File, clock: Callable[[], float]) -> None:
        self.entries: list[Entry] = []
        self.heard: Callable[[list[Change]], object] = lambda _changes: None
        self._file = file
        self._clock = clock
        self._told_of = 0
        file.empty(clock)

    def execute(self, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Drive one operation as one transaction."""
        try:
            with self._file.store.session(1.0) as execute:
                result = run(verb(*args, **kwargs), execute)
        except TenureError as error:
            return False, error
        changes = self._changes()
        if changes:
            at = int(self._clock() * 1000) / 1000
            self.entries += [told(before, after, at) for before, after in changes]
            self.heard(changes)
        return True, result

    def _changes(self) -> list[Change]:
        found = self._file.connection.execute(_READ).fetchall()
        if found:
            self._file.connection.execute("DELETE FROM simulated_changes")
        half = len(fields(Stood))
        return [(_stood(row[:half]), _stood(row[half:])) for row in found]

    def rows(self) -> list[Row]:
        """Tell how every job stands."""
        now_ms = (EPOCH.timestamp() + self._clock()) * 1000
        found = self._file.connection.execute(_STANDING).fetchall()
        rows = [(run_at, _stood(values)) for run_at, *values in found]
        return [stands(row, max(0.0, (run_at - now_ms) / 1000)) for run_at, row in rows if row is not None]

    def all_over(self) -> bool:
        """Say whether no job waits or runs any more."""
        query = "SELECT 1 FROM tenure_jobs WHERE state IN ('available', 'running') LIMIT 1"
        return self._file.connection.execute(query).fetchone() is None

    def keep(self) -> None:
        """Remember how everything stands."""
        self._file.keep()
        self._told_of = len(self.entries)

    def fail_over(self) -> None:
        """Go on from what was kept; that the floor must be raised is for the store to notice."""
        self._file.restore()
        del self.entries[self._told_of :]


def _stood(values: Sequence[Any]) -> Stood | None:
    if values[0] is None:
        return None
    given = dict(zip((field.name for field in fields(Stood)), values, strict=True))
    given["state"] = State(given["state"])
    given["lease_until"] = None if given["lease_until"] is None else given["lease_until"] / 1000
    given["ended"] = None if given["ended"] is None else Verb(given["ended"])
    return Stood(**given)
