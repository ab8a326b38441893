"""Verbs in the caller's own transaction on aiosqlite, on SQLAlchemy over it, and on Django's connection."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import aiosqlite
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tenure.errors import Misuse
from tenure.protocol.job import Claimer, Ending, NewJob, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.store.sqlite import SqliteStore
from tests.support.django import django_connection

ADA = Claimer("owner of ada", "ada")
ONE = [NewJob("one", "work")]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    opened = SqliteStore(str(tmp_path / "jobs.db"))
    opened.migrate()
    return opened


def stored(store: SqliteStore) -> int:
    with closing(sqlite3.connect(store.path)) as connection:
        return int(connection.execute("SELECT count(*) FROM tenure_jobs").fetchone()[0])


def test_aiosqlite_carries_the_verbs_of_a_guarded_effect(store: SqliteStore) -> None:
    async def main() -> None:
        async with aiosqlite.connect(store.path) as connection:
            joined = store.ajoin(connection)
            await joined.do(store.verbs.enqueue, ONE)
            await connection.rollback()
            assert stored(store) == 0
            await joined.do(store.verbs.enqueue, ONE)
            held = await joined.do(store.verbs.claim_named, ADA, "one", 30.0, create=False)
            token = Token(held.id, held.generation)
            assert (await joined.do(store.verbs.guard, ADA.owner, token)).verdict is Verdict.DONE
            await connection.execute("CREATE TABLE effects (job TEXT)")
            await connection.execute("INSERT INTO effects VALUES ('one')")
            [ended] = await joined.do(store.verbs.settle, ADA.owner, [Ending(token, Verb.COMPLETE, result="7")])
            assert ended.verdict is Verdict.DONE
            assert stored(store) == 0
            await connection.commit()
        assert stored(store) == 1

    asyncio.run(main())
    assert store.connect(timeout=5).do(store.verbs.get, "one").result == "7"


def test_aiosqlite_without_a_transaction_is_refused(store: SqliteStore) -> None:
    async def main() -> None:
        async with aiosqlite.connect(store.path, isolation_level=None) as connection:
            with pytest.raises(Misuse, match="not in a transaction"):
                await store.ajoin(connection).do(store.verbs.enqueue, ONE)

    asyncio.run(main())


def test_aiosqlite_on_another_file_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    async def main() -> None:
        async with aiosqlite.connect(tmp_path / "other.db") as connection:
            with pytest.raises(Misuse, match="another file"):
                await store.ajoin(connection).do(store.verbs.enqueue, ONE)

    asyncio.run(main())


def test_sqlalchemy_over_aiosqlite(store: SqliteStore) -> None:
    async def main() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{store.path}")
        async with engine.connect() as connection:
            await store.ajoin(connection).do(store.verbs.enqueue, ONE)
            await connection.rollback()
            assert stored(store) == 0
        async with AsyncSession(engine) as session, session.begin():
            await store.ajoin(session).do(store.verbs.enqueue, ONE)
            assert stored(store) == 0
        assert stored(store) == 1
        await engine.dispose()

    asyncio.run(main())


def test_djangos_connection(store: SqliteStore) -> None:
    connection = django_connection(ENGINE="django.db.backends.sqlite3", NAME=str(store.path))
    with pytest.raises(Misuse, match="not in a transaction"):
        store.join(connection).do(store.verbs.enqueue, ONE)
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    store.join(connection).do(store.verbs.enqueue, ONE)
    connection.rollback()
    assert stored(store) == 0
    connection.set_autocommit(True)
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    store.join(connection).do(store.verbs.enqueue, ONE)
    connection.commit()
    assert stored(store) == 1
    connection.close()
