"""Verbs in the caller's own transaction, on every kind of connection that can carry them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from tenure.errors import BadSettings, Misuse, Unavailable
from tenure.protocol.job import Answer, Ending, NewJob, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.store import LIMIT
from tests.postgres.conftest import ADA

Open = Callable[[str], PostgresStore]

ONE = [NewJob("one", "work")]


def stored(sql: psycopg.Connection) -> int:
    row = sql.execute("SELECT count(*) FROM tenure_jobs").fetchone()
    return row[0] if row else -1


def test_a_plain_connection_begins_by_itself(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    with psycopg.connect(url) as connection:
        store.join(connection).do(store.verbs.enqueue, ONE)
        assert stored(sql) == 0
        connection.rollback()
        assert stored(sql) == 0
        store.join(connection).do(store.verbs.enqueue, ONE)
        connection.commit()
    assert stored(sql) == 1


def test_autocommit_needs_a_transaction(store: PostgresStore, sql: psycopg.Connection) -> None:
    with pytest.raises(Misuse, match="autocommit"):
        store.join(sql)
    with sql.transaction():
        store.join(sql).do(store.verbs.enqueue, ONE)
    assert stored(sql) == 1


def test_the_callers_rows_and_cursors_may_be_of_any_kind(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        joined = store.join(connection)
        joined.do(store.verbs.enqueue, ONE)
        assert joined.do(store.verbs.get, "one").id == "one"


def test_another_database_is_refused_and_its_transaction_lives(
    store: PostgresStore, fresh: Callable[[], str], open_store: Open
) -> None:
    bare, migrated = fresh(), fresh()
    open_store(migrated).migrate()
    for address in (bare, migrated):
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE orders (id int)")
            with pytest.raises(Misuse, match="another database"):
                store.join(connection).do(store.verbs.enqueue, ONE)
            connection.execute("INSERT INTO orders VALUES (1)")


def test_a_transaction_that_may_be_lost_is_refused(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL synchronous_commit = off")
        with pytest.raises(BadSettings, match="the transaction of connection= has synchronous_commit = off"):
            store.join(connection).do(store.verbs.enqueue, ONE)
    assert stored(sql) == 0


def test_a_connection_that_decodes_no_text_is_refused_by_its_encoding(
    store: PostgresStore, url: str, sql: psycopg.Connection
) -> None:
    with psycopg.connect(url, client_encoding="SQL_ASCII") as connection:
        with pytest.raises(Misuse, match="has client_encoding SQL_ASCII.*set it to UTF8"):
            store.join(connection).do(store.verbs.enqueue, ONE)
        connection.execute("SET client_encoding = UTF8")
        store.join(connection).do(store.verbs.enqueue, ONE)
    assert stored(sql) == 1


def test_a_failed_transaction_is_named_as_the_callers(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(Misuse, match="already failed"):
            store.join(connection).do(store.verbs.enqueue, ONE)
        connection.rollback()


def test_a_failing_statement_leaves_nothing_of_ours(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    with psycopg.connect(url) as connection:
        joined = store.join(connection)
        joined.do(store.verbs.enqueue, ONE)
        connection.execute("SET LOCAL statement_timeout = 100")
        with psycopg.connect(url) as blocker:
            blocker.execute("INSERT INTO tenure_jobs (id, queue, run_at, lease_ms, enqueued_at)"
                            " SELECT 'two', 'q', t, 1, t FROM clock_timestamp() AS t")  # fmt: skip
            with pytest.raises(Unavailable, match="nothing was done"):
                joined.do(store.verbs.enqueue, [NewJob("two", "work")])
            blocker.rollback()
        connection.commit()
    assert stored(sql) == 0


def test_sqlalchemy_connections_and_sessions(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.connect() as connection:
        store.join(connection).do(store.verbs.enqueue, ONE)
        connection.rollback()
        assert stored(sql) == 0
        store.join(connection).do(store.verbs.enqueue, ONE)
        connection.commit()
    assert stored(sql) == 1
    with Session(engine) as session:
        session.execute(text("SELECT 1"))
        store.join(session).do(store.verbs.enqueue, [NewJob("two", "work")])
        session.commit()
    assert stored(sql) == 2
    with engine.begin() as connection:
        store.join(connection).do(store.verbs.enqueue, [NewJob("three", "work")])
    assert stored(sql) == 3


def test_asynchronous_connections_of_both_kinds(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await store.ajoin(connection).do(store.verbs.enqueue, ONE)
            assert stored(sql) == 0
        assert stored(sql) == 1
        engine = create_async_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
        async with engine.connect() as alchemy:
            await store.ajoin(alchemy).do(store.verbs.enqueue, [NewJob("two", "work")])
            await alchemy.commit()
        async with AsyncSession(engine) as session:
            await store.ajoin(session).do(store.verbs.enqueue, [NewJob("three", "work")])
            assert stored(sql) == 2
            await session.commit()
        assert stored(sql) == 3
        await store.aconnect(timeout=5.0).close()

    asyncio.run(main())
    store.close()


def test_strangers_are_refused_by_name(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection, pytest.raises(Misuse, match=r"psycopg\.Connection"):
        store.ajoin(connection)
    with pytest.raises(Misuse, match=r"builtins\.str"):
        store.join(url)


def test_a_conflict_under_serializable_says_to_begin_again(store: PostgresStore, driver: SyncDriver, url: str) -> None:
    driver.do(store.verbs.enqueue, ONE)
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT FROM tenure_jobs")
        driver.do(store.verbs.claim_named, ADA, "one", 30.0, create=False)
        with pytest.raises(Unavailable, match="another transaction was faster; nothing was done"):
            store.join(connection).do(store.verbs.claim_named, ADA, "one", 30.0, create=False)


# -- guard and completion, which look by themselves


class Counting(psycopg.Connection):
    """A connection that counts its round trips."""

    trips = 0

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        self.trips += 1
        return super().wait(*args, **kwargs)


@pytest.fixture
def token(store: PostgresStore, driver: SyncDriver) -> Token:
    """Enqueue and claim the job `one`."""
    driver.do(store.verbs.enqueue, ONE)
    held = driver.do(store.verbs.claim_named, ADA, "one", 30.0, create=False)
    return Token(held.id, held.generation)


@pytest.fixture
def caller(store: PostgresStore, url: str, token: Token) -> Iterator[Counting]:
    """Open a connection of the caller's that the store has seen before."""
    with Counting.connect(url) as connection:
        assert guard(store, connection, token).verdict is Verdict.DONE
        connection.commit()
        yield connection
        connection.rollback()


def guard(store: PostgresStore, connection: psycopg.Connection, token: Token) -> Answer:
    return store.join(connection).do(store.verbs.guard, ADA.owner, token)


def complete(store: PostgresStore, connection: psycopg.Connection, token: Token) -> Answer:
    [answer] = store.join(connection).do(store.verbs.settle, ADA.owner, [Ending(token, Verb.COMPLETE, result="7")])
    return answer


def stand_in_front(connection: psycopg.Connection) -> None:
    """Let `tenure_jobs` mean a copy in another schema from now on."""
    connection.execute("CREATE SCHEMA decoy")
    connection.execute("CREATE TABLE decoy.tenure_jobs AS SELECT * FROM public.tenure_jobs")
    connection.execute("SET LOCAL search_path = decoy, public")


Act = Callable[[PostgresStore, psycopg.Connection, Token], Answer]
both = pytest.mark.parametrize("act", [guard, complete])


@both
def test_guard_and_completion_take_one_round_trip(
    store: PostgresStore, caller: Counting, token: Token, act: Act
) -> None:
    caller.execute("SELECT 1")
    caller.trips = 0
    assert act(store, caller, token).verdict is Verdict.DONE
    assert caller.trips == 1


@both
def test_a_commit_made_weak_since_is_noticed_and_nothing_is_changed(
    store: PostgresStore, driver: SyncDriver, caller: Counting, token: Token, act: Act
) -> None:
    caller.execute("SET LOCAL synchronous_commit = off")
    with pytest.raises(BadSettings, match="the transaction of connection= has synchronous_commit = off"):
        act(store, caller, token)
    caller.commit()  # by a caller that has caught the error
    assert driver.do(store.verbs.get, "one").state is State.RUNNING


@both
def test_a_search_path_that_means_another_table_since_is_noticed(
    store: PostgresStore, driver: SyncDriver, caller: Counting, token: Token, act: Act
) -> None:
    stand_in_front(caller)
    with pytest.raises(Misuse, match="another database"):
        act(store, caller, token)
    with pytest.raises(Misuse, match="another database"):
        store.join(caller).do(store.verbs.enqueue, [NewJob("two", "work")])
    assert caller.execute("SELECT id, state FROM decoy.tenure_jobs").fetchall() == [("one", "running")]
    assert driver.do(store.verbs.get, "one").state is State.RUNNING


@both
def test_a_statement_prepared_before_means_the_table_of_now(
    store: PostgresStore, caller: Counting, token: Token, act: Act
) -> None:
    caller.prepare_threshold = 0
    for _ in range(7):  # more than the five after which a server keeps a plan
        assert act(store, caller, token).verdict is Verdict.DONE
        caller.rollback()
    stand_in_front(caller)
    with pytest.raises(Misuse, match="another database"):
        act(store, caller, token)


def test_a_connection_seen_before_needs_none_of_the_stores_own(
    store: PostgresStore, caller: Counting, token: Token
) -> None:
    """Ten handlers that guard must not wait for each other."""
    with ExitStack() as busy:
        for _ in range(LIMIT):
            busy.enter_context(store.session())
        assert guard(store, caller, token).verdict is Verdict.DONE


def test_a_connection_is_asked_again_where_the_store_has_become_another_since(
    store: PostgresStore, caller: Counting, token: Token
) -> None:
    """A copy of the whole database has the same tables with the same rows: only its identity tells."""
    copy = "of a copy:" + store._lender.identity.rpartition(":")[2]
    store._lender.identity = copy
    store.close()
    assert guard(store, caller, token).verdict is Verdict.DONE  # meanwhile the store is what it was again
    store._lender.identity = copy
    with store._shared(5.0).connection() as own:
        own.identity = copy
    for act in (guard, complete):
        with pytest.raises(Misuse, match="another database"):
            act(store, caller, token)
