"""The tables of a SQL fence: made, brought up to date, and repeated without harm, whatever comes in between."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pymysql
import pytest
from psycopg.types.string import TextLoader

from tenure import BadToken, Misuse, OutOfSequence, StaleToken, Token
from tenure.fences import Mark, SQLFence
from tests.fences import sql_ways
from tests.fences.sql_servers import mariadb, new_sqlite_path, postgres
from tests.fences.sql_ways import BlockingWay, Database, Dialect

SCOPE = "report/7"
SEVEN, EIGHT = Token("job-1", 7), Token("job-1", 8)
FIRST_FORM = """
CREATE TABLE tenure_fences (scope VARCHAR(200) PRIMARY KEY, generation BIGINT NOT NULL, sequence BIGINT NOT NULL)
"""


def empty_way(dialect: Dialect) -> BlockingWay:
    """Give the plainest way to a database without tables."""
    if dialect == "sqlite":
        return sql_ways.Sqlite3(Database(dialect, new_sqlite_path()))
    if dialect == "postgresql":
        return sql_ways.Psycopg(Database(dialect, postgres().create_database()))
    return sql_ways.PyMySQL(Database(dialect, tuple(mariadb().arguments(mariadb().create_database()).items())))


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def way(request: pytest.FixtureRequest) -> BlockingWay:
    return empty_way(request.param)


@pytest.fixture
def connection(way: BlockingWay) -> Iterator[Any]:
    with closing(way.connect()) as opened:
        yield opened


def numbers(way: BlockingWay, connection: Any) -> list[int]:
    with way.transaction(connection):
        return [row[0] for row in way.execute(connection, "SELECT number FROM tenure_fence_migrations ORDER BY number")]


def test_the_tables_are_made_once(way: BlockingWay, connection: Any) -> None:
    fence = SQLFence(way.database.dialect)
    for _ in range(3):
        with way.transaction(connection):
            fence.create(connection)
            fence.apply(connection, SEVEN, sequence=fence_sequence(fence, connection) + 1)
    assert fence.current(connection, SEVEN.job) == Mark("job-1", 7, 3)
    connection.rollback()
    assert numbers(way, connection) == list(range(1, 3 if way.database.dialect == "mysql" else 4))


def fence_sequence(fence: SQLFence, connection: Any) -> int:
    mark = fence.current(connection, SEVEN.job)
    return 0 if mark is None else mark.sequence


def test_several_can_make_them_at_the_same_time(way: BlockingWay) -> None:
    barrier = threading.Barrier(8, timeout=30)

    def create(_: int) -> None:
        with closing(way.connect()) as connection:
            barrier.wait()
            with way.transaction(connection):
                SQLFence(way.database.dialect).create(connection)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(8)))
    with closing(way.connect()) as connection:
        assert numbers(way, connection)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_tables_of_the_first_form_are_brought_up_to_date(dialect: Dialect) -> None:
    way, fence = empty_way(dialect), SQLFence(dialect)
    with closing(way.connect()) as connection:
        with way.transaction(connection):
            way.execute(connection, FIRST_FORM)
            way.execute(connection, "INSERT INTO tenure_fences VALUES (?, 8, 3)", SCOPE)
            fence.create(connection)
        assert fence.current(connection, SCOPE) == Mark("", 8, 3)
        with pytest.raises(StaleToken) as stale:
            fence.raise_to(connection, SEVEN, scope=SCOPE)
        assert stale.value.current == 8
        connection.rollback()
        with way.transaction(connection), pytest.raises(OutOfSequence):
            fence.apply(connection, EIGHT, sequence=3, scope=SCOPE)
        with way.transaction(connection):
            fence.apply(connection, EIGHT, sequence=4, scope=SCOPE)
        with pytest.raises(BadToken, match="job-1"):
            fence.raise_to(connection, Token("job-2", 9), scope=SCOPE)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_tables_go_back_with_the_callers_transaction(dialect: Dialect) -> None:
    way, fence = empty_way(dialect), SQLFence(dialect)
    with closing(way.connect()) as connection:
        with pytest.raises(ZeroDivisionError), way.transaction(connection):
            fence.create(connection)
            raise ZeroDivisionError
        with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
            fence.raise_to(connection, SEVEN)
        connection.rollback()


@pytest.mark.parametrize("isolation", [None, "", "IMMEDIATE"])
def test_in_sqlite_they_are_made_in_one_piece_or_not_at_all(isolation: Any) -> None:
    with closing(sqlite3.connect(new_sqlite_path(), isolation_level=isolation)) as connection:
        connection.execute(FIRST_FORM)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ALTER_TABLE else sqlite3.SQLITE_OK
        )
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            SQLFence("sqlite").create(connection)
        assert not connection.in_transaction
        connection.set_authorizer(None)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert names == ["tenure_fences"]
        SQLFence("sqlite").create(connection)
        assert not connection.in_transaction


def test_in_autocommit_they_are_made_and_committed() -> None:
    in_postgresql, in_mysql = empty_way("postgresql"), empty_way("mysql")
    with psycopg.connect(in_postgresql.database.address, autocommit=True) as connection:
        SQLFence("postgresql").create(connection)
    with pymysql.connect(**in_mysql.database.parts, autocommit=True) as other:
        SQLFence("mysql").create(other)
    for way in (in_postgresql, in_mysql):
        with closing(way.connect()) as afterwards:
            assert numbers(way, afterwards)


def test_a_connection_that_failed_is_not_left_in_a_transaction() -> None:
    way = empty_way("postgresql")
    with psycopg.connect(way.database.address, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            SQLFence("postgresql").reset(connection, SCOPE, reason="why")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_no_rights_are_needed_once_the_tables_are_there() -> None:
    way, fence = empty_way("postgresql"), SQLFence("postgresql")
    with closing(way.connect()) as connection, way.transaction(connection):
        fence.create(connection)
        connection.execute("CREATE ROLE writer")
        connection.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO writer")
        connection.execute("SET LOCAL ROLE writer")
        fence.create(connection)
        fence.apply(connection, SEVEN)
        fence.reset(connection, SEVEN.job, reason="why")
        connection.execute("RESET ROLE")
        connection.execute("DROP OWNED BY writer")
        connection.execute("DROP ROLE writer")


@pytest.mark.parametrize("leap", [0, -1, 1.0, True, "1"])
def test_a_leap_is_a_number(leap: Any) -> None:
    with pytest.raises(Misuse, match="leap"):
        SQLFence("sqlite", leap=leap)


# -- connections that read whole numbers as text


@pytest.fixture(params=["sqlite", "postgresql"])
def texts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    way = empty_way(request.param)
    if request.param == "sqlite":
        for kind in ("BIGINT", "INTEGER"):
            monkeypatch.setitem(sqlite3.converters, kind, bytes.decode)
        with closing(sqlite3.connect(way.database.address, detect_types=sqlite3.PARSE_DECLTYPES)) as connection:
            yield connection
    else:
        with closing(psycopg.connect(way.database.address)) as connection:
            for kind in ("int4", "int8"):
                connection.adapters.register_loader(kind, TextLoader)
            yield connection


def test_numbers_that_are_read_as_text_are_compared_all_the_same(texts: Any) -> None:
    fence = SQLFence("sqlite" if isinstance(texts, sqlite3.Connection) else "postgresql")
    for _ in range(2):
        fence.create(texts)
    fence.raise_to(texts, EIGHT, scope=SCOPE)
    with pytest.raises(StaleToken) as stale:
        fence.raise_to(texts, SEVEN, scope=SCOPE)
    assert stale.value.current == 8
    fence.raise_to(texts, EIGHT, scope=SCOPE)
    assert fence.current(texts, SCOPE) == fence.reset(texts, SCOPE, reason="a test") == Mark("job-1", 8, 0)
    assert [reset.mark for reset in fence.resets(texts, SCOPE)] == [Mark("job-1", 8, 0)]
    texts.commit()
