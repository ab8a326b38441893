"""A fence of a SQL database in the caller's transaction: it goes back with it, waits with it, and sees what is new."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg
import pymysql
import pytest

from tenure import BadToken, Misuse, OutOfSequence, StaleToken, Token, Unavailable
from tenure.fences import Mark, SQLFence
from tenure.fences.rule import LEAP, writing
from tenure.fences.sql.operations import Operations
from tenure.protocol.lease import Effect
from tenure.protocol.op import run
from tests.fences import sql_ways
from tests.fences.sql_servers import emptied, new_file
from tests.fences.sql_ways import BlockingWay, Database, Dialect
from tests.support.processes import wait_for

SCOPE = "report/7"
SEVEN, EIGHT, NINE = (Token("job-1", generation) for generation in (7, 8, 9))
QUICK = 0.2


class Place:
    """One database, as many connections as are asked for, and the fence."""

    def __init__(self, way: BlockingWay, stack: ExitStack) -> None:
        self.way = way
        self.fence = SQLFence(way.database.dialect)
        self._stack = stack

    def connection(self) -> Any:
        return self._stack.enter_context(closing(self.way.connect()))

    def execute(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        return self.way.execute(connection, sql, *values)

    def mark(self) -> Mark | None:
        with self.transaction() as connection:
            return self.fence.current(connection, SCOPE)

    def wait_for_a_wait(self) -> None:
        """Wait until somebody waits for a lock."""
        waits = {
            "postgresql": "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
            # innodb_trx would tell it better, and shows nothing new to those who ask often.
            "mysql": "SELECT 1 FROM information_schema.processlist"
            " WHERE command = 'Query' AND id <> CONNECTION_ID() AND INSTR(info, 'tenure_fences') > 0",
        }[self.way.database.dialect]

        def waiting() -> bool:
            with self.transaction() as connection:
                return bool(self.execute(connection, waits))

        wait_for(waiting, 30, "somebody to wait for a lock")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with closing(self.way.connect()) as connection, self.way.transaction(connection):
            yield connection


def way_to(dialect: Dialect) -> BlockingWay:
    if dialect == "sqlite":
        return sql_ways.Sqlite3(new_file())
    return {"postgresql": sql_ways.Psycopg, "mysql": sql_ways.PyMySQL}[dialect](emptied(dialect))


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(way_to(request.param), stack)


@pytest.fixture(params=["postgresql", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(way_to(request.param), stack)


def test_the_mark_goes_back_with_its_transaction(place: Place) -> None:
    with pytest.raises(ZeroDivisionError), place.transaction() as connection:
        place.fence.apply(connection, EIGHT, scope=SCOPE)
        raise ZeroDivisionError
    assert place.mark() is None
    with place.transaction() as connection:
        place.fence.apply(connection, SEVEN, scope=SCOPE)
    assert place.mark() == Mark("job-1", 7, 1)


def test_a_refusal_leaves_the_transaction_usable(place: Place) -> None:
    with place.transaction() as connection:
        place.fence.apply(connection, EIGHT, scope=SCOPE)
        with pytest.raises(StaleToken):
            place.fence.apply(connection, SEVEN, scope=SCOPE)
        place.execute(connection, "INSERT INTO things (scope, value) VALUES (?, ?)", "log", "refused")
    with place.transaction() as connection:
        assert place.execute(connection, "SELECT value FROM things") == [("refused",)]


def test_the_number_of_a_write_is_that_of_its_effect(place: Place) -> None:
    with place.transaction() as connection:
        place.fence.apply(connection, Effect("job-1", 7, 5), scope=SCOPE)
        with pytest.raises(OutOfSequence):
            place.fence.apply(connection, Effect("job-1", 7, 4), scope=SCOPE)
        place.fence.apply(connection, Effect("job-1", 7, 1), scope=SCOPE, sequence=6)
    assert place.mark() == Mark("job-1", 7, 6)


def test_the_scope_is_by_default_the_job(place: Place) -> None:
    with place.transaction() as connection:
        place.fence.apply(connection, SEVEN)
        assert place.fence.current(connection, "job-1") == Mark("job-1", 7, 1)


def test_the_leap_is_a_choice(place: Place) -> None:
    narrow = SQLFence(place.way.database.dialect, leap=10)
    with place.transaction() as connection:
        with pytest.raises(BadToken, match="more than 10 beyond 0"):
            narrow.raise_to(connection, Token("job-1", 11), scope=SCOPE)
        assert narrow.current(connection, SCOPE) is None
        narrow.raise_to(connection, Token("job-1", 10), scope=SCOPE)
        with pytest.raises(BadToken, match="more than 10 beyond 10"):
            narrow.apply(connection, Token("job-1", 21), scope=SCOPE)
        place.fence.apply(connection, Token("job-1", LEAP), scope=SCOPE)


# -- two owners at once


def test_the_new_owner_waits_for_a_write_that_is_under_way(server: Place) -> None:
    old = server.connection()
    server.fence.apply(old, SEVEN, scope=SCOPE)
    raised = threading.Event()

    def take_over() -> None:
        with server.transaction() as connection:
            server.fence.raise_to(connection, EIGHT, scope=SCOPE)
        raised.set()

    thread = threading.Thread(target=take_over)
    thread.start()
    server.wait_for_a_wait()
    assert not raised.is_set()
    old.commit()
    thread.join()
    assert server.mark() == Mark("job-1", 8, 0)


def test_a_write_that_waited_while_the_fence_was_raised_is_refused(server: Place) -> None:
    new, refused = server.connection(), []
    server.fence.raise_to(new, EIGHT, scope=SCOPE)

    def write_late() -> None:
        with server.transaction() as connection:
            try:
                server.fence.apply(connection, SEVEN, scope=SCOPE)
            except StaleToken as stale:
                refused.append(stale.current)

    thread = threading.Thread(target=write_late)
    thread.start()
    server.wait_for_a_wait()
    new.commit()
    thread.join()
    assert refused == [8]


def test_what_is_refused_is_explained_by_what_is_there_now(server: Place) -> None:
    with server.transaction() as connection:
        server.fence.raise_to(connection, SEVEN, scope=SCOPE)
    old = server.connection()
    server.execute(old, "SELECT generation FROM tenure_fences")  # a snapshot, where the database keeps one
    with server.transaction() as connection:
        server.fence.raise_to(connection, NINE, scope=SCOPE)
    with pytest.raises(StaleToken) as stale:
        server.fence.apply(old, EIGHT, scope=SCOPE)
    assert stale.value.current == 9


def limited(database: Database, stack: ExitStack) -> Any:
    """Open a connection that waits a short time for a lock, as its owner has set it."""
    if database.dialect == "sqlite":
        return stack.enter_context(closing(sqlite3.connect(database.address, timeout=QUICK)))
    if database.dialect == "postgresql":
        settings = f"-c lock_timeout={QUICK * 1000:.0f}"
        return stack.enter_context(closing(psycopg.connect(database.address, options=settings)))
    first = "SET SESSION innodb_lock_wait_timeout = 1"
    return stack.enter_context(closing(pymysql.connect(**database.parts, init_command=first)))


def test_the_wait_for_the_old_owner_is_bounded_by_the_callers_own_setting(place: Place) -> None:
    stopped = place.connection()
    with place.way.transaction(stopped), ExitStack() as stack:
        place.fence.apply(stopped, SEVEN, scope=SCOPE)
        connection = limited(place.way.database, stack)
        errors = (sqlite3.OperationalError, psycopg.errors.LockNotAvailable, pymysql.err.OperationalError)
        with pytest.raises(errors):
            place.fence.raise_to(connection, EIGHT, scope=SCOPE)
    assert place.mark() == Mark("job-1", 7, 1)


# -- reset


def test_a_reset_is_noted_with_what_was_put_aside(place: Place) -> None:
    with place.transaction() as connection:
        place.fence.apply(connection, EIGHT, scope=SCOPE, sequence=3)
        assert place.fence.reset(connection, SCOPE, reason="a test wrote here") == Mark("job-1", 8, 3)
        assert place.fence.current(connection, SCOPE) is None
        assert place.fence.reset(connection, SCOPE, reason="again") is None
        place.fence.apply(connection, Token("another", 1), scope=SCOPE)
        place.fence.reset(connection, SCOPE, reason="back")
    with place.transaction() as connection:
        first, second = place.fence.resets(connection, SCOPE)
        assert place.execute(connection, "SELECT COUNT(*) FROM tenure_fences") == [(1,)]
    assert (first.scope, first.mark, first.reason) == (SCOPE, Mark("job-1", 8, 3), "a test wrote here")
    assert (second.mark, second.reason) == (Mark("another", 1, 1), "back")
    assert abs(first.at - time.time()) < 60
    assert first.at <= second.at


def test_a_reset_goes_back_with_its_transaction(place: Place) -> None:
    with place.transaction() as connection:
        place.fence.apply(connection, EIGHT, scope=SCOPE)
    with pytest.raises(ZeroDivisionError), place.transaction() as connection:
        place.fence.reset(connection, SCOPE, reason="why")
        raise ZeroDivisionError
    assert place.mark() == Mark("job-1", 8, 1)
    with place.transaction() as connection:
        assert place.fence.resets(connection, SCOPE) == []


def test_a_reset_notes_the_write_that_it_waited_for(server: Place) -> None:
    with server.transaction() as connection:
        server.fence.apply(connection, SEVEN, scope=SCOPE)
    writer, put_aside = server.connection(), []
    server.fence.apply(writer, EIGHT, scope=SCOPE)

    def reset() -> None:
        with server.transaction() as connection:
            put_aside.append(server.fence.reset(connection, SCOPE, reason="why"))

    thread = threading.Thread(target=reset)
    thread.start()
    server.wait_for_a_wait()
    writer.commit()
    thread.join()
    assert put_aside == [Mark("job-1", 8, 1)]
    assert server.mark() is None


@pytest.mark.parametrize("reason", ["", "  ", None, 7])
def test_a_reset_needs_a_reason_in_words(reason: Any) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(Misuse, match="reason"):
        SQLFence("sqlite").reset(connection, SCOPE, reason=reason)


def test_a_reset_between_refusal_and_explanation_is_told() -> None:
    operations = Operations("sqlite", LEAP)
    answers = iter([[], [(None, 0, 0)]])
    with pytest.raises(Unavailable, match="reset just now"):
        run(operations.admit(writing(SEVEN, SCOPE, 1)), lambda _: next(answers))


# -- names


NAMES = [
    "a",
    "A",
    "á",
    "a ",
    " a",
    "a\u0301",
    "ß",
    "ss",
    "\U0001f512",
    "x" * 200,
    "日" * 200,
    "%s",
    "?",
    ":job",
    "\\",
    "'",
]


def test_names_are_compared_exactly(place: Place) -> None:
    with place.transaction() as connection:
        for number, name in enumerate(NAMES, 1):
            place.fence.apply(connection, Token(name, number), scope=name)
        for number, name in enumerate(NAMES, 1):
            assert place.fence.current(connection, name) == Mark(name, number, 1)
            with pytest.raises(BadToken):
                place.fence.apply(connection, Token(name + ".", number + 1) if len(name) < 200 else SEVEN, scope=name)


def test_every_character_set_of_a_connection_finds_the_same_row() -> None:
    database, fence = emptied("mysql"), SQLFence("mysql")
    for number, charset in enumerate(("utf8mb4", "latin1", "utf8mb4"), 1):
        with closing(pymysql.connect(**database.parts, charset=charset)) as connection:
            fence.apply(connection, SEVEN, scope="ä", sequence=number)
            connection.commit()
            assert fence.current(connection, "ä") == Mark("job-1", 7, number)
