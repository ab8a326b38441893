"""The suite of fences over every kind of SQL connection, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tenure.testing.fences import Destination
from tenure.testing.fences.crowd import *  # noqa: F403 -- a part of the suite
from tenure.testing.fences.rule import *  # noqa: F403 -- a part of the suite
from tests.fences import sql_ways
from tests.fences.sql import AsyncSQLDestination, SQLDestination
from tests.fences.sql_servers import database, emptied, loop, new_file
from tests.fences.sql_ways import AsyncWay, BlockingWay, Dialect

WAYS: dict[str, tuple[Dialect, type[BlockingWay | AsyncWay]]] = {
    "psycopg": ("postgresql", sql_ways.Psycopg),
    "psycopg async": ("postgresql", sql_ways.AsyncPsycopg),
    "SQLAlchemy Core": ("postgresql", sql_ways.SQLAlchemyCore),
    "SQLAlchemy session": ("postgresql", sql_ways.SQLAlchemySession),
    "asyncpg": ("postgresql", sql_ways.AsyncPG),
    "Django": ("postgresql", sql_ways.Django),
    "PyMySQL": ("mysql", sql_ways.PyMySQL),
    "aiomysql": ("mysql", sql_ways.AioMySQL),
}


@cache
def way(name: str) -> BlockingWay | AsyncWay:
    dialect, kind = WAYS[name]
    return kind(database(dialect))


@pytest.fixture(params=["sqlite3", *WAYS])
def destination(request: pytest.FixtureRequest) -> Iterator[Destination]:
    if request.param == "sqlite3":
        found: BlockingWay | AsyncWay = sql_ways.Sqlite3(new_file())
    else:
        emptied(WAYS[request.param][0])
        found = way(request.param)
    opened = SQLDestination(found) if isinstance(found, BlockingWay) else AsyncSQLDestination(found, loop())
    yield opened
    opened.close()
