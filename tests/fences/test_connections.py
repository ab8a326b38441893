"""Which connections a SQL fence can use, how each is recognised, and what is said of those that it cannot."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, closing
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from pymysql.cursors import DictCursor
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tenure import Misuse, OutOfSequence, StaleToken, Token
from tenure.fences import Mark, SQLFence, connections
from tenure.store.caller import unwrapped
from tests.fences import sql_openers as by
from tests.fences.sql_servers import emptied, new_file
from tests.fences.sql_ways import Database

SCOPE = "report/7"
SEVEN, EIGHT = Token("job-1", 7), Token("job-1", 8)


BLOCKING: dict[str, tuple[str, by.Held]] = {
    "sqlite3": ("sqlite", by.sqlite_with()),
    "sqlite3 of one's own class": ("sqlite", by.sqlite_with(factory=by.Renamed)),
    "psycopg with dictionaries": ("postgresql", by.psycopg_with(row_factory=dict_row)),
    "psycopg with raw cursors": ("postgresql", by.psycopg_with(cursor_factory=psycopg.RawCursor)),
    "psycopg2": ("postgresql", by.psycopg2_one),
    "PyMySQL with dictionaries": ("mysql", by.pymysql_with(cursorclass=DictCursor)),
    "PyMySQL in another character set": ("mysql", by.pymysql_with(charset="latin1")),
    "MySQL Connector": ("mysql", by.connector_with()),
    "MySQL Connector, pooled": ("mysql", by.pooled_connector),
    "SQLAlchemy over sqlite3": ("sqlite", by.core("pysqlite")),
    "SQLAlchemy that begins by itself": ("sqlite", by.core_that_begins),
    "SQLAlchemy over psycopg2": ("postgresql", by.core("psycopg2")),
    "SQLAlchemy over PyMySQL": ("mysql", by.core("pymysql")),
    "SQLAlchemy's session over sqlite3": ("sqlite", by.session("pysqlite")),
    "SQLAlchemy's session over psycopg": ("postgresql", by.session("psycopg")),
    "SQLAlchemy's scoped session": ("postgresql", by.scoped),
    "SQLAlchemy's pooled connection": ("postgresql", by.fairy),
}


def database_of(dialect: Any) -> Database:
    return new_file() if dialect == "sqlite" else emptied(dialect)


@pytest.mark.parametrize(("dialect", "opened"), BLOCKING.values(), ids=BLOCKING)
def test_a_blocking_connection_carries_the_fence(dialect: Any, opened: by.Held) -> None:
    fence, database = SQLFence(dialect), database_of(dialect)
    with ExitStack() as stack:
        connection = opened(database, stack)
        fence.create(connection)
        fence.raise_to(connection, SEVEN, scope="ä " + SCOPE)
        connection.commit()
        fence.apply(connection, EIGHT, scope="ä " + SCOPE, sequence=3)
        connection.rollback()
        assert fence.current(connection, "ä " + SCOPE) == Mark("job-1", 7, 0)
        fence.apply(connection, EIGHT, scope="ä " + SCOPE, sequence=3)
        connection.commit()
        with pytest.raises(OutOfSequence):
            fence.apply(connection, EIGHT, scope="ä " + SCOPE, sequence=3)
        with pytest.raises(StaleToken):
            fence.apply(connection, SEVEN, scope="ä " + SCOPE, sequence=4)
        assert fence.reset(connection, "ä " + SCOPE, reason="日本") == Mark("job-1", 8, 3)
        connection.commit()
        assert fence.current(connection, "ä " + SCOPE) is None
        [reset] = fence.resets(connection, "ä " + SCOPE)
        assert reset.mark == Mark("job-1", 8, 3)
        connection.rollback()


ASYNCHRONOUS: dict[str, tuple[str, by.Awaited]] = {
    "aiosqlite": ("sqlite", by.aiosqlite_one),
    "psycopg with dictionaries": ("postgresql", by.async_psycopg),
    "asyncmy": ("mysql", by.asyncmy_one),
    "SQLAlchemy over aiosqlite": ("sqlite", by.async_core("aiosqlite")),
    "SQLAlchemy over asyncpg": ("postgresql", by.async_core("asyncpg")),
    "SQLAlchemy over psycopg": ("postgresql", by.async_core("psycopg")),
    "SQLAlchemy over asyncmy": ("mysql", by.async_core("asyncmy")),
    "SQLAlchemy's session over aiosqlite": ("sqlite", by.async_session("aiosqlite")),
    "SQLAlchemy's scoped session": ("postgresql", by.async_scoped),
}


@pytest.mark.parametrize(("dialect", "opened"), ASYNCHRONOUS.values(), ids=ASYNCHRONOUS)
def test_an_asynchronous_connection_carries_the_fence(dialect: Any, opened: by.Awaited) -> None:
    fence, database = SQLFence(dialect), database_of(dialect)

    async def play() -> None:
        async with AsyncExitStack() as stack:
            connection = await opened(database, stack)
            await fence.create_async(connection)
            await fence.raise_to_async(connection, SEVEN, scope=SCOPE)
            await connection.commit()
            await fence.apply_async(connection, EIGHT, scope=SCOPE, sequence=3)
            await connection.rollback()
            assert await fence.current_async(connection, SCOPE) == Mark("job-1", 7, 0)
            await fence.apply_async(connection, EIGHT, scope=SCOPE, sequence=3)
            await connection.commit()
            with pytest.raises(StaleToken):
                await fence.apply_async(connection, SEVEN, scope=SCOPE, sequence=4)
            assert await fence.reset_async(connection, SCOPE, reason="why") == Mark("job-1", 8, 3)
            await connection.commit()
            assert [reset.reason for reset in await fence.resets_async(connection, SCOPE)] == ["why"]
            await connection.rollback()

    asyncio.run(play())


def test_a_connection_that_a_pool_of_asyncpg_lends_carries_the_fence() -> None:
    fence, database = SQLFence("postgresql"), emptied("postgresql")

    async def play() -> None:
        async with import_module("asyncpg").create_pool(database.address, min_size=1) as pool, pool.acquire() as lent:
            async with lent.transaction():
                await fence.apply_async(lent, SEVEN, scope=SCOPE)
            assert await fence.current_async(lent, SCOPE) == Mark("job-1", 7, 1)

    asyncio.run(play())


# -- autocommit: what is let through there is not undone with the write (D1, D2)


IN_AUTOCOMMIT: dict[str, tuple[str, by.Held, Callable[[Any], object]]] = {
    "sqlite3": ("sqlite", by.sqlite_with(isolation_level=None), lambda c: c.execute("BEGIN")),
    "psycopg": ("postgresql", by.psycopg_with(autocommit=True), lambda c: c.execute("BEGIN")),
    "PyMySQL": ("mysql", by.pymysql_with(autocommit=True), lambda c: c.begin()),
    "MySQL Connector": ("mysql", by.connector_with(autocommit=True), lambda c: c.start_transaction()),
    "Django over psycopg": ("postgresql", by.django_one, lambda c: c.set_autocommit(False)),
    "Django over sqlite3": ("sqlite", by.django_one, lambda c: c.set_autocommit(False)),
    "SQLAlchemy over sqlite3": ("sqlite", by.core("pysqlite", **by.AUTOCOMMIT), lambda c: c.exec_driver_sql("BEGIN")),
    "SQLAlchemy over psycopg": (
        "postgresql",
        by.core("psycopg", **by.AUTOCOMMIT),
        lambda c: c.exec_driver_sql("BEGIN"),
    ),
    "SQLAlchemy over PyMySQL": ("mysql", by.core("pymysql", **by.AUTOCOMMIT), lambda c: c.exec_driver_sql("BEGIN")),
}


@pytest.mark.parametrize(("dialect", "opened", "begin"), IN_AUTOCOMMIT.values(), ids=IN_AUTOCOMMIT)
def test_in_autocommit_a_write_needs_a_transaction(
    dialect: Any, opened: by.Held, begin: Callable[[Any], object]
) -> None:
    fence, database = SQLFence(dialect), database_of(dialect)
    with ExitStack() as stack:
        connection = opened(database, stack)
        fence.create(connection)
        fence.raise_to(connection, SEVEN, scope=SCOPE)
        with pytest.raises(Misuse, match="autocommit"):
            fence.apply(connection, SEVEN, scope=SCOPE)
        assert fence.current(connection, SCOPE) == Mark("job-1", 7, 0)
        begin(connection)
        fence.apply(connection, SEVEN, scope=SCOPE)
        connection.rollback()
        assert fence.current(connection, SCOPE) == Mark("job-1", 7, 0)
        if hasattr(connection, "vendor"):  # Django's
            connection.rollback()
            connection.set_autocommit(True)
        assert fence.reset(connection, SCOPE, reason="why") == Mark("job-1", 7, 0)
        assert [reset.reason for reset in fence.resets(connection, SCOPE)] == ["why"]


ASYNC_IN_AUTOCOMMIT: dict[str, tuple[str, by.Awaited, Callable[[Any], Any] | None]] = {
    "aiosqlite": ("sqlite", by.autocommit_aiosqlite, lambda c: c.execute("BEGIN")),
    "asyncpg": ("postgresql", by.autocommit_asyncpg, lambda c: c.execute("BEGIN")),
    "asyncmy": ("mysql", by.autocommit_asyncmy, lambda c: c.begin()),
    "SQLAlchemy over asyncpg": ("postgresql", by.async_autocommit("asyncpg"), None),
    "SQLAlchemy over aiosqlite": ("sqlite", by.async_autocommit("aiosqlite"), None),
}


@pytest.mark.parametrize(("dialect", "opened", "begin"), ASYNC_IN_AUTOCOMMIT.values(), ids=ASYNC_IN_AUTOCOMMIT)
def test_in_asynchronous_autocommit_too(dialect: Any, opened: by.Awaited, begin: Callable[[Any], Any] | None) -> None:
    fence, database = SQLFence(dialect), database_of(dialect)

    async def play() -> None:
        async with AsyncExitStack() as stack:
            connection = await opened(database, stack)
            await fence.create_async(connection)
            await fence.raise_to_async(connection, SEVEN, scope=SCOPE)
            with pytest.raises(Misuse, match="autocommit"):
                await fence.apply_async(connection, SEVEN, scope=SCOPE)
            assert await fence.current_async(connection, SCOPE) == Mark("job-1", 7, 0)
            if begin is not None:
                await begin(connection)
                await fence.apply_async(connection, SEVEN, scope=SCOPE)
                assert await fence.current_async(connection, SCOPE) == Mark("job-1", 7, 1)

    asyncio.run(play())


def test_a_connection_that_begins_by_itself_is_told_from_autocommit() -> None:
    fence, database = SQLFence("sqlite"), new_file()
    with closing(sqlite3.connect(database.address)) as connection:
        fence.apply(connection, SEVEN, scope=SCOPE)
        assert connection.in_transaction
        connection.rollback()
        assert fence.current(connection, SCOPE) is None


@pytest.mark.parametrize(("autocommit", "held"), [(-1, True), (True, False)])
def test_from_python_3_12_on_sqlite3_says_how_it_begins(autocommit: int, held: bool) -> None:
    connection = SimpleNamespace(in_transaction=False, isolation_level="", autocommit=autocommit)
    assert connections._sqlite_holds(connection) is held


# -- what cannot be used


def test_strangers_are_told_what_to_pass() -> None:
    fence = SQLFence("sqlite")
    with closing(sqlite3.connect(":memory:")) as connection:
        for stranger in (None, "jobs.db", object(), connection.cursor()):
            with pytest.raises(Misuse, match="pass a connection of sqlite3, psycopg"):
                fence.raise_to(stranger, SEVEN)
    with pytest.raises(Misuse, match=r"builtins\.object is nothing"):
        asyncio.run(fence.raise_to_async(object(), SEVEN))


def test_an_engine_is_not_a_connection() -> None:
    made = sqlalchemy.create_engine("sqlite://")
    with pytest.raises(Misuse, match="neither a connection nor a session"):
        SQLFence("sqlite").raise_to(made, SEVEN)
    with pytest.raises(Misuse, match="neither a connection nor a session"):
        asyncio.run(SQLFence("sqlite").raise_to_async(create_async_engine("sqlite+aiosqlite://"), SEVEN))


def test_the_asynchronous_kind_of_mysql_connector_is_a_stranger() -> None:
    async def play() -> None:
        with pytest.raises(Misuse, match=r"mysql\.connector\.aio.* is nothing"):
            await SQLFence("mysql").raise_to_async(import_module("mysql.connector.aio").MySQLConnection(), SEVEN)

    asyncio.run(play())


def test_each_colour_has_its_methods() -> None:
    with closing(sqlite3.connect(":memory:")) as blocking, Session() as a_session:
        kinds: list[Any] = [blocking, a_session]
        for connection in kinds:
            with pytest.raises(Misuse, match="does not end in _async"):
                asyncio.run(SQLFence("sqlite").apply_async(connection, SEVEN))
    kinds = [import_module("aiosqlite").connect(":memory:"), AsyncSession()]
    for connection in kinds:
        with pytest.raises(Misuse, match="ends in _async, and await it"):
            SQLFence("sqlite").apply(connection, SEVEN)


def test_a_fence_speaks_the_language_of_its_database() -> None:
    match = r"leads to sqlite.*SQLFence\('sqlite'\)"
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(Misuse, match=match):
        SQLFence("postgresql").raise_to(connection, SEVEN)
    with pytest.raises(Misuse, match="postgresql, sqlite or mysql, not 'oracle'"):
        SQLFence("oracle")  # type: ignore[arg-type]


PIPELINED: dict[str, by.Held] = {
    "psycopg": by.psycopg_with(),
    "psycopg in autocommit": by.psycopg_with(autocommit=True),
    "SQLAlchemy": by.core("psycopg"),
    "SQLAlchemy's session": by.session("psycopg"),
    "Django": by.django_one,
}


@pytest.mark.parametrize("opened", PIPELINED.values(), ids=PIPELINED)
def test_in_a_pipeline_which_hides_rows_nothing_is_sent(opened: by.Held) -> None:
    fence, database = SQLFence("postgresql"), emptied("postgresql")
    row = fence.row("things", "scope")
    with ExitStack() as stack:
        connection = opened(database, stack)
        fence.create(connection)
        connection.commit()
        raw: Any = unwrapped(connection)
        calls: list[Callable[[], object]] = [
            lambda: fence.create(connection),
            lambda: fence.raise_to(connection, SEVEN),
            lambda: fence.apply(connection, SEVEN),
            lambda: fence.current(connection, "job-1"),
            lambda: fence.reset(connection, "job-1", reason="why"),
            lambda: fence.resets(connection, "job-1"),
            lambda: row.raise_to(connection, SEVEN, SCOPE),
            lambda: row.update(connection, SEVEN, SCOPE, {"value": "new"}),
        ]
        with raw.pipeline():
            for call in calls:
                with pytest.raises(Misuse, match="leave the pipeline"):
                    call()
        assert raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert fence.current(connection, "job-1") is None


ASYNC_PIPELINED: dict[str, by.Awaited] = {
    "psycopg": by.async_psycopg,
    "SQLAlchemy": by.async_core("psycopg"),
    "SQLAlchemy's session": by.async_session("psycopg"),
}


@pytest.mark.parametrize("opened", ASYNC_PIPELINED.values(), ids=ASYNC_PIPELINED)
def test_in_an_asynchronous_pipeline_too(opened: by.Awaited) -> None:
    fence, database = SQLFence("postgresql"), emptied("postgresql")

    async def play() -> None:
        async with AsyncExitStack() as stack:
            connection = await opened(database, stack)
            await fence.create_async(connection)
            await connection.commit()
            core = await connection.connection() if isinstance(connection, AsyncSession) else connection
            raw: Any = unwrapped(core)
            async with raw.pipeline():
                with pytest.raises(Misuse, match="leave the pipeline"):
                    await fence.raise_to_async(connection, SEVEN)
                with pytest.raises(Misuse, match="leave the pipeline"):
                    await fence.apply_async(connection, SEVEN)
            assert raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            assert await fence.current_async(connection, "job-1") is None

    asyncio.run(play())


def test_the_librarys_own_errors_pass_through(tmp_path: Any) -> None:
    connection = sqlite3.connect(tmp_path / "empty.db")
    with closing(connection), pytest.raises(sqlite3.OperationalError, match="no such table"):
        SQLFence("sqlite").raise_to(connection, SEVEN)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        SQLFence("sqlite").raise_to(connection, SEVEN)


def test_importing_the_fences_imports_no_client_library() -> None:
    libraries = "sqlite3 psycopg psycopg2 asyncpg aiosqlite pymysql MySQLdb mysql aiomysql asyncmy sqlalchemy django"
    check = f"import sys, tenure.fences; print(*sorted(set({libraries.split()}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
