"""Verbs in the caller's own transaction on asyncpg, on SQLAlchemy over it, and on Django's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.pool import NullPool

from tenure.errors import BadSettings, LeaseHeld, Misuse, Unavailable
from tenure.protocol.job import Ending, NewJob, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.store.postgres import PostgresStore
from tests.postgres.conftest import ADA
from tests.support.django import django_connection

ONE = [NewJob("one", "work", arguments='{"a": "\'ä"}', unique_key="k", priority=-3, lease=12.5)]


def stored(sql: psycopg.Connection) -> int:
    row = sql.execute("SELECT count(*) FROM tenure_jobs").fetchone()
    return row[0] if row else -1


def test_asyncpg_carries_every_kind_of_verb(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    verbs = store.verbs

    async def work(connection: Any) -> None:
        joined = store.ajoin(connection)
        [made] = await joined.do(verbs.enqueue, ONE)
        assert made.created
        held = await joined.do(verbs.claim_named, ADA, "one", 30.0, create=False)
        token = Token(held.id, held.generation)
        assert await joined.do(verbs.renew, ADA.owner, [token], 60.0) == []
        assert (await joined.do(verbs.guard, ADA.owner, token)).verdict is Verdict.DONE
        assert (await joined.do(verbs.guard, "somebody", token)).verdict is Verdict.STALE
        record = await joined.do(verbs.get, "one")
        assert (record.arguments, record.unique_key, record.priority) == ('{"a": "\'ä"}', "k", -3)
        assert [counts.running for counts in await joined.do(verbs.queues)] == [1]
        with pytest.raises(LeaseHeld):
            await joined.do(verbs.claim_named, ADA, "one", 30.0, create=False)
        [ended] = await joined.do(verbs.settle, ADA.owner, [Ending(token, Verb.COMPLETE, result="7")])
        assert ended.verdict is Verdict.DONE

    async def main() -> None:
        connection = await asyncpg.connect(url)
        try:
            transaction = connection.transaction()
            await transaction.start()
            await work(connection)
            await transaction.rollback()
            assert stored(sql) == 0
            async with connection.transaction():
                await work(connection)
            assert stored(sql) == 1
            assert store.connect(timeout=5).do(store.verbs.get, "one").result == "7"
        finally:
            await connection.close()

    asyncio.run(main())


def test_asyncpg_needs_a_transaction_and_an_open_connection(store: PostgresStore, url: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(url)
        with pytest.raises(Misuse, match="not in a transaction"):
            await store.ajoin(connection).do(store.verbs.enqueue, ONE)
        await connection.close()
        with pytest.raises(Misuse, match="closed"):
            await store.ajoin(connection).do(store.verbs.enqueue, ONE)
        with pytest.raises(Misuse, match="asynchronous kinds with `await`"):
            store.join(connection)

    asyncio.run(main())


def test_asyncpg_from_a_pool(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    async def main() -> None:
        async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
            for _ in range(2):
                async with pool.acquire() as lent, lent.transaction():
                    await store.ajoin(lent).do(store.verbs.enqueue, ONE)

    asyncio.run(main())
    assert stored(sql) == 1


def test_asyncpg_on_another_database_is_refused(store: PostgresStore, fresh: Callable[[], str]) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(fresh())
        async with connection.transaction():
            with pytest.raises(Misuse, match="another database"):
                await store.ajoin(connection).do(store.verbs.enqueue, ONE)
            assert await connection.fetchval("SELECT 1") == 1
        await connection.close()

    asyncio.run(main())


def test_asyncpg_with_a_weak_commit_is_refused(store: PostgresStore, url: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit = off")
            with pytest.raises(BadSettings, match="synchronous_commit"):
                await store.ajoin(connection).do(store.verbs.enqueue, ONE)
        await connection.close()

    asyncio.run(main())


def test_an_error_of_asyncpg_stays_inside(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    """What another transaction locked is waited for as long as the caller's own settings say."""
    store.connect(timeout=5).do(store.verbs.enqueue, ONE)
    held = store.connect(timeout=5).do(store.verbs.claim_named, ADA, "one", 30.0, create=False)

    async def main() -> None:
        connection = await asyncpg.connect(url, server_settings={"lock_timeout": "100"})
        transaction = connection.transaction()
        await transaction.start()
        with pytest.raises(Unavailable, match="another transaction holds a lock") as refused:
            await store.ajoin(connection).do(store.verbs.guard, ADA.owner, Token("one", held.generation))
        assert isinstance(refused.value.__cause__, asyncpg.LockNotAvailableError)
        with pytest.raises(Misuse, match="already failed"):
            await store.ajoin(connection).do(store.verbs.enqueue, ONE)
        await transaction.rollback()
        await connection.close()

    with sql.transaction():
        sql.execute("SELECT FROM tenure_jobs WHERE id = 'one' FOR UPDATE")
        asyncio.run(main())


@pytest.mark.parametrize("used_before", [False, True])
def test_sqlalchemy_over_asyncpg(store: PostgresStore, url: str, sql: psycopg.Connection, used_before: bool) -> None:
    async def main() -> None:
        engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), poolclass=NullPool)
        async with engine.connect() as connection:
            if used_before:
                await connection.exec_driver_sql("SELECT 1")
            await store.ajoin(connection).do(store.verbs.enqueue, ONE)
            await connection.rollback()
            assert stored(sql) == 0
        async with AsyncSession(engine) as session, session.begin():
            await store.ajoin(session).do(store.verbs.enqueue, ONE)
            assert stored(sql) == 0
        assert stored(sql) == 1
        await engine.dispose()

    asyncio.run(main())


def test_djangos_connection(store: PostgresStore, url: str, sql: psycopg.Connection) -> None:
    given = conninfo_to_dict(url)
    connection = django_connection(
        ENGINE="django.db.backends.postgresql",
        NAME=given["dbname"],
        HOST=given["host"],
        PORT=given["port"],
        USER=given["user"],
        PASSWORD=given.get("password", ""),
    )
    with pytest.raises(Misuse, match="autocommit"):
        store.join(connection).do(store.verbs.enqueue, ONE)
    connection.set_autocommit(False)
    store.join(connection).do(store.verbs.enqueue, ONE)
    assert stored(sql) == 0
    connection.rollback()
    store.join(connection).do(store.verbs.enqueue, ONE)
    connection.commit()
    assert stored(sql) == 1
    connection.close()
