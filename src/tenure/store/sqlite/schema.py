"""The schema of a SQLite file: applied by itself to a fresh file, by `tenure migrate` to an older one.

Nothing here begins or ends a transaction, so that all of it can also happen inside a caller's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tenure.errors import BadSettings, TenureError
from tenure.store.migrate import Migration, load_migrations, pending
from tenure.store.sqlite.clocks import Clocks

_PACKAGE = "tenure.store.sqlite"

Executes = sqlite3.Connection | sqlite3.Cursor
"""On a caller's connection a cursor of our own, whose rows are tuples whatever the caller's are."""


def latest() -> int:
    """Return the number of the last migration that this release knows."""
    return load_migrations(_PACKAGE)[-1].number


def is_ready(connection: Executes, clocks: Clocks, path: Path, name: str) -> bool:
    """Whether the file may be used as it is; raises BadSettings for one of an older release."""
    if is_fresh(connection):  # asked once: another process may be making it ready just now
        return False
    if lacks := missing(connection):
        names = ", ".join(migration.name for migration in lacks)
        raise BadSettings(f"{path} lacks {names}: run `tenure migrate --store {name}`")
    return is_of_this_boot(connection, clocks)


def make_ready(connection: Executes, clocks: Clocks) -> None:
    """Bring a fresh file up to date and end the leases of another boot, in the open transaction."""
    apply(connection, clocks)
    end_leases_of_another_boot(connection, clocks)


def is_fresh(connection: Executes) -> bool:
    """Whether no migration was ever applied to this file."""
    # Of all files that a caller may have attached, where sqlite_master would be that of the first.
    return connection.execute("PRAGMA table_list(tenure_migrations)").fetchone() is None


def missing(connection: Executes) -> list[Migration]:
    """List the migrations that this file lacks."""
    if is_fresh(connection):
        return pending(_PACKAGE, ())
    return pending(_PACKAGE, {row[0] for row in connection.execute("SELECT number FROM tenure_migrations")})


def apply(connection: Executes, clocks: Clocks) -> list[str]:
    """Apply what is missing in the open transaction, and return the names."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS tenure_migrations"
        " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    migrations = missing(connection)
    for migration in migrations:
        for statement in _split(migration.sql):
            connection.execute(statement)
        row = (migration.number, migration.name, clocks.read()[0])
        connection.execute("INSERT INTO tenure_migrations VALUES (?, ?, ?)", row)
    return [migration.name for migration in migrations]


def is_of_this_boot(connection: Executes, clocks: Clocks) -> bool:
    """Whether the leases in this file count in the boot that this host is in."""
    return bool(connection.execute("SELECT boot IS ? FROM tenure_store", (clocks.boot_id(),)).fetchone()[0])


def end_leases_of_another_boot(connection: Executes, clocks: Clocks) -> None:
    """End every lease that counts in another boot of this host, whose clock began again at zero."""
    if not is_of_this_boot(connection, clocks):
        connection.execute("UPDATE tenure_jobs SET lease_until = 0 WHERE state = 'running'")
        connection.execute("UPDATE tenure_store SET boot = ?", (clocks.boot_id(),))


def _split(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if any(line.strip() and not line.startswith("--") for line in statement.splitlines()):
        raise TenureError(f"a migration ends in the middle of a statement: {statement[:60]!r}")
