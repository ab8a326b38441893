"""The database servers of the tests of SQL fences: each started when it is first asked for, and once a session."""

from __future__ import annotations

import atexit
import os
import secrets
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from tenure.testing.mariadb import MariaDB
from tenure.testing.servers import Postgres
from tests.fences.sql import SQLDestination
from tests.fences.sql_ways import BlockingWay, Database, Dialect, Loop, Psycopg, PyMySQL, Sqlite3


@cache
def quick_folder() -> Path:
    """Make a folder in memory where the system has one: what a sync costs is not what these tests ask about."""
    memory = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(prefix="tenure-", dir=memory if os.access(memory, os.W_OK) else None)
    atexit.register(folder.cleanup)
    Path(folder.name).chmod(0o711)  # PostgreSQL may run as another user
    return Path(folder.name)


@cache
def postgres() -> Postgres:
    server = Postgres.start(folder=quick_folder() / "postgres")
    atexit.register(server.close)
    return server


@cache
def mariadb() -> MariaDB:
    server = MariaDB.start(folder=quick_folder() / "mariadb")
    atexit.register(server.close)
    return server


@cache
def loop() -> Loop:
    made = Loop()
    atexit.register(made.close)
    return made


@cache
def database(dialect: Dialect) -> Database:
    """Give the session's database on a server, with the tables of the destination."""
    if dialect == "postgresql":
        made = Database(dialect, postgres().create_database())
        way: BlockingWay = Psycopg(made)
    else:
        made = Database(dialect, tuple(mariadb().arguments(mariadb().create_database()).items()))
        way = PyMySQL(made)
    with closing(SQLDestination(way)) as destination:
        destination.create()
    return made


@cache
def _janitor(dialect: Dialect) -> Any:
    given = database(dialect)
    if dialect == "postgresql":
        connection: Any = psycopg.connect(given.address, autocommit=True)
    else:
        connection = pymysql.connect(**given.parts, autocommit=True)
    atexit.register(connection.close)
    return connection


def emptied(dialect: Dialect) -> Database:
    """Give the session's database, without any row that a test before has left."""
    with _janitor(dialect).cursor() as cursor:
        for table in ("tenure_fences", "tenure_fence_resets", "things"):
            cursor.execute(f"DELETE FROM {table}")
    return database(dialect)


def new_sqlite_path() -> str:
    """Give the path of a file that does not exist yet."""
    return str(quick_folder() / f"{secrets.token_hex(6)}.db")


def new_file() -> Database:
    """Give a file of SQLite with the tables of the destination."""
    made = Database("sqlite", new_sqlite_path())
    with closing(SQLDestination(Sqlite3(made))) as destination:
        destination.create()
    return made
