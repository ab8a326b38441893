"""A handler that rolls its transaction back and goes on: refused, undone, and done anew when it is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from tenure import Misuse
from tenure.fences.connections import Query, asynchronous, blocking
from tenure.fences.http import Answer, Call, FencedService
from tenure.fences.http.django import atomic, fenced
from tenure.fences.http.messages import make_answer
from tenure.fences.http.serve import Endpoint
from tests.fences import sql_openers as by
from tests.fences import sql_servers, sql_ways
from tests.fences.http import SCOPE, SQLiteValues, facts
from tests.fences.sql_ways import Database, Dialect

BLOCKING: dict[str, tuple[Dialect, by.Held]] = {
    "PyMySQL": ("mysql", by.pymysql_with()),
    "SQLAlchemy over PyMySQL": ("mysql", by.core("pymysql")),
    "psycopg": ("postgresql", by.psycopg_with()),
    "a session over psycopg": ("postgresql", by.session("psycopg")),
}
ASYNCHRONOUS: dict[str, tuple[Dialect, by.Awaited]] = {
    "psycopg": ("postgresql", by.async_psycopg),
    "SQLAlchemy over psycopg": ("postgresql", by.async_core("psycopg")),
    "a session over psycopg": ("postgresql", by.async_session("psycopg")),
    "SQLAlchemy over asyncpg": ("postgresql", by.async_core("asyncpg")),
    "asyncmy": ("mysql", by.asyncmy_one),
    "SQLAlchemy over asyncmy": ("mysql", by.async_core("asyncmy")),
}
GONE = "has ended before its handler did"


class Shop:
    """A service on a server, with what it has sold."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.database: Database = sql_servers.emptied(dialect)
        self.service = FencedService(dialect)
        with self.look() as connection:
            self.service.create(connection)
            for statement in ("CREATE TABLE IF NOT EXISTS sold (text TEXT)", "DELETE FROM sold"):
                self.ask(connection, statement)
            self.ask(connection, "DELETE FROM tenure_http_responses")
            connection.commit()

    @contextmanager
    def look(self) -> Iterator[Any]:
        if self.dialect == "postgresql":
            connection: Any = psycopg.connect(self.database.address)
        else:
            connection = pymysql.connect(**self.database.parts)
        with closing(connection):
            yield connection

    def ask(self, connection: Any, statement: str) -> list[Any]:
        return blocking(connection, self.dialect)(Query(statement, {}))

    async def ask_async(self, connection: Any, statement: str) -> list[Any]:
        return await (await asynchronous(connection, self.dialect))(Query(statement, {}))

    def state(self) -> tuple[list[str], int, bool]:
        """Tell what was sold, how many answers are kept, and whether the fence has met anybody."""
        with self.look() as connection:
            sold = [row[0] for row in self.ask(connection, "SELECT text FROM sold")]
            kept = self.ask(connection, "SELECT COUNT(*) FROM tenure_http_responses")[0][0]
            return sold, int(kept), self.service.fence.current(connection, SCOPE) is not None


NOTHING: tuple[list[str], int, bool] = ([], 0, False)


@pytest.mark.parametrize("way", BLOCKING)
def test_r31_what_follows_a_rollback_is_undone(way: str) -> None:
    dialect, opened = BLOCKING[way]
    shop = Shop(dialect)

    @contextmanager
    def begin() -> Iterator[Any]:
        with ExitStack() as stack:
            connection = opened(shop.database, stack)
            yield connection
            connection.commit()

    def act(call: Call, *, goes_back: bool) -> Answer:
        if goes_back:
            shop.ask(call.connection, "INSERT INTO sold VALUES ('undone')")
            call.connection.rollback()
        shop.ask(call.connection, "INSERT INTO sold VALUES ('a')")
        return make_answer(201)

    endpoint = Endpoint(shop.service, begin)
    with pytest.raises(Misuse, match=GONE):
        endpoint.serve(facts(), SCOPE, lambda call: act(call, goes_back=True))
    assert shop.state() == NOTHING
    assert endpoint.serve(facts(), SCOPE, lambda call: act(call, goes_back=False)).status == 201
    assert shop.state() == (["a"], 1, True)


@pytest.mark.parametrize("way", ASYNCHRONOUS)
def test_r31_what_follows_a_rollback_is_undone_on_an_asynchronous_connection(way: str) -> None:
    dialect, opened = ASYNCHRONOUS[way]
    shop = Shop(dialect)

    @asynccontextmanager
    async def begin() -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            connection = await opened(shop.database, stack)
            yield connection
            await connection.commit()

    async def act(call: Call, *, goes_back: bool) -> Answer:
        if goes_back:
            await shop.ask_async(call.connection, "INSERT INTO sold VALUES ('undone')")
            await call.connection.rollback()
        await shop.ask_async(call.connection, "INSERT INTO sold VALUES ('a')")
        return make_answer(201)

    def going(*, back: bool) -> Callable[[Call], Awaitable[Answer]]:
        return lambda call: act(call, goes_back=back)

    endpoint = Endpoint(shop.service, begin)
    with pytest.raises(Misuse, match=GONE):
        asyncio.run(endpoint.serve_async(facts(), SCOPE, going(back=True)))
    assert shop.state() == NOTHING
    assert asyncio.run(endpoint.serve_async(facts(), SCOPE, going(back=False))).status == 201
    assert shop.state() == (["a"], 1, True)


# -- Django, whose connection to SQLite is in autocommit after a rollback


@pytest.fixture
def values() -> SQLiteValues:
    made = SQLiteValues(Path(sql_servers.new_sqlite_path()))
    made.create()
    return made


@pytest.fixture
def alias(values: SQLiteValues) -> Iterator[str]:
    way = sql_ways.Django(Database("sqlite", str(values.file)))
    yield way._alias
    way.connect().close()


@pytest.mark.parametrize("statement", ["INSERT INTO log (value) VALUES ('unguarded')", "BEGIN", None])
def test_r31_django_does_nothing_after_a_rollback_of_the_views_own(
    values: SQLiteValues, alias: str, statement: str | None
) -> None:
    from django.db import connections
    from django.http import HttpResponse
    from django.test import RequestFactory

    @fenced(values.service, using=alias)
    def view(_request: Any, call: Call) -> HttpResponse:
        connection = connections[alias]
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO log (value) VALUES ('undone')")
            cursor.execute("ROLLBACK")
            if statement is not None:
                cursor.execute(statement)
        return HttpResponse(status=201)

    given = facts()
    request = RequestFactory().post("/charges", given.body, "text/plain", headers=dict(given.headers))
    with pytest.raises(Misuse, match="this statement belongs to has ended"):
        view(request)
    assert values.written() == []
    with values.begin() as connection:
        assert values.service.fence.current(connection, SCOPE) is None


def test_a_transaction_that_django_leaves_to_sqlite_is_one(values: SQLiteValues, alias: str) -> None:
    from django.db import transaction

    transaction.set_autocommit(False, using=alias)
    with atomic(alias) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")  # nothing has begun yet
        cursor.execute("INSERT INTO log (value) VALUES ('a')")
    transaction.commit(using=alias)
    assert values.written() == ["a"]


def test_djangos_own_savepoints_stay_inside(values: SQLiteValues, alias: str) -> None:
    from django.db import transaction

    with atomic(alias) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO log (value) VALUES ('a')")
        with pytest.raises(ZeroDivisionError), transaction.atomic(using=alias):
            cursor.execute("INSERT INTO log (value) VALUES ('undone')")
            raise ZeroDivisionError
        cursor.execute("INSERT INTO log (value) VALUES ('b')")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO log (value) VALUES ('outside, where nothing is refused')")
    assert values.written()[:2] == ["a", "b"]
