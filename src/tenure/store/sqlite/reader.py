"""Looking at a store in a file: nothing is made, and where possible without the right to write.

Whoever only looks may have mistyped the path: neither a new file nor tables in somebody else's database must come of
it. And it may be another user than the workers'. SQLite can read a file in write-ahead mode without writing as long as
its -wal and -shm files are there, which is while any process has it open, or after one was killed: it then takes the
same locks as every reader. When nobody has it open, these files are gone. They cannot be made in a folder that cannot
be written; in one that can, they would belong to the wrong user and lock the workers out. Opening the file as
`immutable` would need neither, but takes no lock: a worker that starts meanwhile makes the answers wrong, and a log
that was left behind is not read at all. So that is refused.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.errors import BadSettings, Unavailable
from tenure.store.contract import Execute
from tenure.store.sqlite import schema
from tenure.store.sqlite.clocks import Clocks, refuse_network
from tenure.store.sqlite.connect import Transaction, translate

_UNABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_PATIENCE = 1.0  # seconds that a look may wait for whoever recovers the log


def may_write(path: Path) -> bool:
    """Tell whether this user may write to the file and beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def refuse_what_is_no_store(path: Path) -> None:
    """Raise BadSettings for a file that is not there, or that holds no tables of Tenure; changes nothing."""
    if not path.exists():
        raise BadSettings(f"there is no store {path}: check the path, or make it with `tenure migrate`")
    with _opened(path) as connection:
        if schema.is_fresh(connection):
            raise BadSettings(
                f"{path} holds no tables of Tenure: check the path, or make them there with `tenure migrate`"
            )


class Reader:
    """A file that this user cannot write: each session opens it anew, and reads it as it stands."""

    def __init__(self, path: Path, clocks: Clocks) -> None:
        self._path = path
        self._clocks = clocks

    @contextmanager
    def session(self) -> Iterator[Execute]:
        """Open the file for one look."""
        with _opened(self._path) as connection:
            missing = schema.missing(connection)
            if missing:
                names = ", ".join(migration.name for migration in missing)
                raise BadSettings(f"{self._path} lacks {names}: run `tenure migrate` as a user who may write to it")
            if not schema.is_of_this_boot(connection, self._clocks):
                raise Unavailable(
                    f"nobody who may write to {self._path} has opened it since this host started, so it does not tell"
                    " which leases have ended: start a worker, or look as its user"
                )
            yield Transaction(connection, self._clocks, str(self._path), {})


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    refuse_network(path)
    writes = may_write(path)
    if not writes and os.access(path.parent, os.W_OK):
        raise _refused(path)
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode={'rw' if writes else 'ro'}", uri=True, timeout=_PATIENCE, isolation_level=None
        )
    except sqlite3.Error as error:
        raise _explained(error, path) from error
    try:
        yield connection
    except sqlite3.Error as error:
        raise _explained(error, path) from error
    finally:
        connection.close()


def _explained(error: sqlite3.Error, path: Path) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return _refused(path) if code in _UNABLE and not may_write(path) else translate(error, str(path))


def _refused(path: Path) -> BadSettings:
    if not os.access(path, os.R_OK):
        return BadSettings(f"{path} cannot be read by this user: run this as the user of the workers")
    return BadSettings(
        f"{path} can be read by this user but not written, and that is enough only while a process has it open: SQLite"
        " needs its -wal and -shm files then. Run this while a worker runs, or as the user of the workers"
    )
