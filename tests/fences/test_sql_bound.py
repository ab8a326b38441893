"""A SQL fence bound to its database, as `@app.task(fences=[...])` takes it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

import psycopg
import psycopg_pool
import pymysql
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from tenure import Misuse, StaleToken, Token
from tenure.fences import Mark, SQLFence
from tests.fences import sql_ways
from tests.fences.sql_servers import emptied, new_file
from tests.fences.sql_ways import BlockingWay, Database, Dialect, Django

SCOPE = "report/7"
SEVEN, EIGHT = Token("job-1", 7), Token("job-1", 8)

PLAIN: dict[Dialect, type[BlockingWay]] = {
    "sqlite": sql_ways.Sqlite3,
    "postgresql": sql_ways.Psycopg,
    "mysql": sql_ways.PyMySQL,
}


def mark(database: Database, scope: str = SCOPE) -> Mark | None:
    """Read a mark through a connection of one's own."""
    way = PLAIN[database.dialect](database)
    with closing(way.connect()) as connection:
        return SQLFence(database.dialect).current(connection, scope)


class Lent:
    """Counts the connections that are lent and given back."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.open = 0

    def __enter__(self) -> Any:
        self.open += 1
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.open -= 1


@pytest.fixture
def pool() -> Iterator[psycopg_pool.ConnectionPool]:
    with psycopg_pool.ConnectionPool(emptied("postgresql").address, min_size=1, open=True) as opened:
        yield opened


def by_url(call: Callable[[str], Any]) -> Callable[[Database], Callable[[], Any]]:
    return lambda database: lambda: call(database.address)


BOUND: dict[str, tuple[Any, Callable[[Database], Callable[[], Any]]]] = {
    "sqlite3": ("sqlite", by_url(sqlite3.connect)),
    "psycopg": ("postgresql", by_url(psycopg.connect)),
    "psycopg in autocommit": ("postgresql", by_url(lambda url: psycopg.connect(url, autocommit=True))),
    "psycopg async": ("postgresql", by_url(psycopg.AsyncConnection.connect)),
    "asyncpg": ("postgresql", by_url(lambda url: import_module("asyncpg").connect(url))),
    "aiosqlite": ("sqlite", by_url(lambda path: import_module("aiosqlite").connect(path))),
    "PyMySQL": ("mysql", lambda database: lambda: pymysql.connect(**database.parts)),
    "asyncmy": ("mysql", lambda database: lambda: import_module("asyncmy").connect(**database.parts)),
    "SQLAlchemy": (
        "sqlite",
        lambda database: sqlalchemy.create_engine(database.url("pysqlite"), poolclass=NullPool).connect,
    ),
    "SQLAlchemy begun": (
        "postgresql",
        lambda database: sqlalchemy.create_engine(database.url("psycopg"), poolclass=NullPool).begin,
    ),
    "SQLAlchemy async": (
        "postgresql",
        lambda database: create_async_engine(database.url("asyncpg"), poolclass=NullPool).connect,
    ),
    "Django": ("postgresql", lambda database: Django(database).connect),
}


@pytest.mark.parametrize(("dialect", "way"), BOUND.values(), ids=BOUND)
def test_a_bound_fence_is_raised_and_committed(dialect: Any, way: Callable[[Database], Callable[[], Any]]) -> None:
    database = new_file() if dialect == "sqlite" else emptied(dialect)
    bound = SQLFence(dialect).bound(way(database), scope=SCOPE)
    bound.raise_to(SEVEN)
    asyncio.run(bound.raise_to_async(EIGHT))
    with pytest.raises(StaleToken):
        bound.raise_to(SEVEN)
    with pytest.raises(StaleToken):
        asyncio.run(bound.raise_to_async(SEVEN))
    assert mark(database) == Mark("job-1", 8, 0)


def test_a_pool_lends_to_a_bound_fence(pool: psycopg_pool.ConnectionPool) -> None:
    fence = SQLFence("postgresql")
    fence.bound(pool.connection).raise_to(SEVEN)
    with pool.connection() as connection:
        assert fence.current(connection, SEVEN.job) == Mark("job-1", 7, 0)


def test_what_lends_without_committing_is_committed_and_given_back() -> None:
    database = new_file()
    with closing(sqlite3.connect(database.address)) as connection:
        lent = Lent(connection)
        SQLFence("sqlite").bound(lambda: lent).raise_to(SEVEN)
        assert (lent.open, connection.in_transaction) == (0, False)
        with pytest.raises(Misuse):
            SQLFence("mysql").bound(lambda: lent).raise_to(SEVEN)
        assert lent.open == 0


def test_what_is_neither_connection_nor_lends_one_is_refused() -> None:
    with pytest.raises(Misuse, match="pass a connection"):
        SQLFence("sqlite").bound(lambda: "jobs.db").raise_to(SEVEN)
