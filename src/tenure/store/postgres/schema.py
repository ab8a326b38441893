"""The schema looked after: migrations, each in a transaction of its own that gives up rather than hold anybody up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from tenure.store.migrate import Migration, load_migrations, pending
from tenure.store.postgres.admission import NotPrimary, check_version
from tenure.store.postgres.connect import Connection, connect
from tenure.store.postgres.target import Target
from tenure.store.postgres.translate import translate

PACKAGE = "tenure.store.postgres"

_PATIENT = "SET LOCAL lock_timeout = '10s'"  # waiting for another migrator holds nobody up
_HASTY = "SET LOCAL lock_timeout = '1s'"  # whoever waits for a table makes all others wait behind it
_RECORD = (
    "CREATE TABLE tenure_migrations"
    " (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
)
# Keeps two migrators apart, and ends with its transaction; nobody else locks this table.
_APART = "LOCK TABLE tenure_migrations IN SHARE ROW EXCLUSIVE MODE"


def migrate(target: Target, timeout: float) -> list[str]:
    """Apply what is missing, in order, and return the names.

    Raises Unavailable when a lock could not be had within a second, or another migrator was not done within ten:
    nothing of that migration was done, run it again (B28). Each migration may take `timeout` seconds.
    """
    with _administration(target, timeout) as connection:
        _make_record(connection)
        return [migration.name for migration in load_migrations(PACKAGE) if _apply(connection, migration)]


def pending_migrations(target: Target, timeout: float) -> list[tuple[str, str]]:
    """Return (name, SQL) of what is missing."""
    with _administration(target, timeout) as connection:
        rows = connection.execute("SELECT number FROM tenure_migrations").fetchall() if _has_record(connection) else []
        return [(migration.name, migration.sql) for migration in pending(PACKAGE, {number for (number,) in rows})]


@contextmanager
def _administration(target: Target, timeout: float) -> Iterator[Connection]:
    connection = connect(target, timeout)
    try:
        check_version(target, connection.info.server_version)
        connection.begin()
        if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
            raise NotPrimary(f"{target.label} is a standby, which cannot be changed: connect to the primary (R11)")
        yield connection
    except psycopg.Error as error:
        raise translate(error, target, changing=True) from error
    finally:
        connection.close()


def _make_record(connection: Connection) -> None:
    if _has_record(connection):
        return
    try:
        connection.execute(_RECORD)
    except (errors.ProgrammingError, errors.IntegrityError):
        # Another migrator was faster? The server names the loser's error after the catalogue in which it lost, so
        # only a look tells. From here on the lock keeps the two apart.
        if not _has_record(connection):
            raise


def _has_record(connection: Connection) -> bool:
    return connection.execute("SELECT to_regclass('tenure_migrations') IS NOT NULL").fetchone() == (True,)


def _apply(connection: Connection, migration: Migration) -> bool:
    connection.begin()
    with connection.transaction():
        connection.execute(_PATIENT)
        connection.execute(_APART)
        connection.execute(_HASTY)
        found = connection.execute("SELECT FROM tenure_migrations WHERE number = %s", (migration.number,)).fetchone()
        if found is not None:
            return False
        connection.execute(migration.sql.encode())
        connection.execute("INSERT INTO tenure_migrations VALUES (%s, %s)", (migration.number, migration.name))
    return True
