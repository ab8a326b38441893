"""The server's side in PostgreSQL: what two messages at once do, asynchronous connections, SQLAlchemy's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from tenure import Misuse, StaleToken
from tenure.fences.http import Answer, FencedService, RequestFacts
from tenure.fences.http.execute import waited_too_long
from tenure.fences.http.middleware import AsyncCheckThenActMiddleware
from tenure.fences.http.problems import KeyReused, RequestInProgress
from tests.fences import sql_servers
from tests.fences.http import SCOPE, facts
from tests.support.postgres import wait_for_a_lock


@pytest.fixture(scope="module")
def url() -> str:
    return sql_servers.postgres().create_database()


class Bank:
    """A service in PostgreSQL, with blocking transactions."""

    def __init__(self, url: str, wait: float) -> None:
        self.url = url
        self.service = FencedService("postgresql", wait=wait)
        with self.begin() as connection:
            self.service.create(connection)
            connection.execute("CREATE TABLE IF NOT EXISTS charges (text TEXT)")
            connection.execute("TRUNCATE charges, tenure_fences, tenure_http_responses")

    @contextmanager
    def begin(self) -> Iterator[Any]:
        with psycopg.connect(self.url) as connection:
            yield connection

    def ask(self, given: RequestFacts, inside: threading.Event, go_on: threading.Event) -> Answer:
        with self.begin() as connection, self.service.request(connection, given) as call:
            if not call.repeat:
                connection.execute("INSERT INTO charges VALUES (%s)", (given.body.decode(),))
                inside.set()
                assert go_on.wait(20)
                call.answer(201, "done")
        return call.response

    def at_once(self, second: RequestFacts, *, first_ends: bool) -> tuple[Answer, Any]:
        """Ask a second time while the first request is being carried out; returns both answers, or the refusal."""
        inside, go_on, done = threading.Event(), threading.Event(), threading.Event()
        done.set()
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.ask, facts(), inside, go_on)
            assert inside.wait(20)
            other = pool.submit(self.ask, second, threading.Event(), done)
            if first_ends:
                wait_for_a_lock(self.url)
                go_on.set()
            refusal = other.exception(20)
            go_on.set()
            return first.result(20), refusal or other.result()

    def charges(self) -> list[str]:
        with self.begin() as connection:
            return [row[0] for row in connection.execute("SELECT text FROM charges").fetchall()]


@pytest.mark.parametrize("ordered", [True, False])
def test_r31_without_a_transaction_nothing_is_let_through(url: str, ordered: bool) -> None:
    bank = Bank(url, wait=1)
    with psycopg.connect(url, autocommit=True) as connection, pytest.raises(Misuse, match="autocommit"):
        bank.service.check(connection, facts(), ordered=ordered)

    async def play() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            with pytest.raises(Misuse, match="autocommit"):
                await bank.service.check_async(connection, facts(), ordered=ordered)

    asyncio.run(play())
    with bank.begin() as connection:
        assert bank.service.fence.current(connection, SCOPE) is None


def test_servers_that_start_at_once_make_the_tables_once(url: str) -> None:
    bank = Bank(url, wait=20)
    with bank.begin() as connection:
        connection.execute("DROP TABLE tenure_http_responses")
    barrier = threading.Barrier(4)

    def start(_number: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            barrier.wait()
            bank.service.create(connection)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(start, range(4)))
    with bank.begin() as connection, bank.service.request(connection, facts()) as call:
        call.answer(204)


def test_the_second_of_two_messages_waits_for_the_answer_to_the_first(url: str) -> None:
    bank = Bank(url, wait=20)
    first, second = bank.at_once(facts(), first_ends=True)
    assert (first.repeat, second.repeat, second.body) == (False, True, b"done")
    assert bank.charges() == ["a"]


def test_the_second_of_two_messages_is_told_to_ask_again_after_a_while(url: str) -> None:
    bank = Bank(url, wait=0.2)
    first, second = bank.at_once(facts(), first_ends=False)
    assert first.status == 201
    assert isinstance(second, RequestInProgress)
    assert bank.charges() == ["a"]


def test_the_next_owner_waits_for_what_the_old_one_has_begun(url: str) -> None:
    bank = Bank(url, wait=20)
    _, second = bank.at_once(facts(8), first_ends=True)
    assert second.repeat
    assert bank.charges() == ["a"]


def test_one_key_in_two_scopes_at_once_is_one_request_too_many(url: str) -> None:
    bank = Bank(url, wait=20)
    _, second = bank.at_once(facts(scope="account/8"), first_ends=True)
    assert isinstance(second, KeyReused)
    assert bank.charges() == ["a"]


def test_the_callers_own_patience_is_left_as_it_was(url: str) -> None:
    bank = Bank(url, wait=0.2)
    with bank.begin() as connection:
        connection.execute("SET lock_timeout = '7s'")
        with bank.service.request(connection, facts()) as call:
            assert connection.execute("SHOW lock_timeout").fetchone() == ("7s",)
            call.answer(204)


def test_what_says_that_a_lock_was_not_to_be_had() -> None:
    class DatabaseError(Exception):
        """As the interface of Python's database drivers names it."""

    class Failed(DatabaseError):
        def __init__(self, *args: Any, **known: Any) -> None:
            super().__init__(*args)
            vars(self).update(known)

    assert waited_too_long(psycopg.errors.LockNotAvailable())
    assert waited_too_long(psycopg.errors.SerializationFailure())
    assert waited_too_long(Failed(1205, "Lock wait timeout exceeded"))
    assert waited_too_long(Failed(sqlite_errorname="SQLITE_BUSY_SNAPSHOT"))
    assert waited_too_long(Failed(orig=psycopg.errors.DeadlockDetected()))
    chained = Failed("a framework's")
    chained.__cause__ = psycopg.errors.LockNotAvailable()
    assert waited_too_long(chained)
    assert not waited_too_long(psycopg.errors.UniqueViolation())
    assert not waited_too_long(Failed(1062, "Duplicate entry"))
    for other in (ValueError("locked"), KeyError(1205), Failed([1205]), Failed()):
        assert not waited_too_long(other)


def test_sqlalchemys_engines_begin_the_transactions_of_a_service(url: str) -> None:
    bank = Bank(url, wait=20)
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    insert = sqlalchemy.text("INSERT INTO charges VALUES ('a')")
    for repeat in (False, True):
        with engine.begin() as connection, bank.service.request(connection, facts()) as call:
            assert call.repeat is repeat
            if not repeat:
                connection.execute(insert)
                call.answer(201, {"charge": 1})
    engine.dispose()

    async def play() -> None:
        engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        for repeat in (False, True):
            given = facts(sequence=2, key="two")
            async with engine.begin() as connection, bank.service.request_async(connection, given) as call:
                assert call.repeat is repeat
                if not repeat:
                    await connection.execute(insert)
                    call.answer(201, {"charge": 2})
        with pytest.raises(StaleToken):
            async with engine.begin() as connection, bank.service.request_async(connection, facts(6)) as call:
                raise AssertionError
        async with engine.begin() as connection:
            assert await bank.service.forget_older_than_async(connection, 1000) == 0
            await bank.service.create_async(connection)
        await engine.dispose()

    asyncio.run(play())
    assert bank.charges() == ["a", "a"]


def test_the_middleware_of_an_asynchronous_service(url: str) -> None:
    """Each of its steps on an asynchronous connection: check, keep, give up."""
    bank = Bank(url, wait=20)

    @asynccontextmanager
    async def begin() -> AsyncIterator[Any]:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            yield connection

    statuses = [503, 201]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": statuses.pop(0), "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    middleware = AsyncCheckThenActMiddleware(app, bank.service, begin)
    sent: list[Any] = []

    async def ask(sequence: int) -> int:
        headers = [(name.encode(), value.encode()) for name, value in facts(7, sequence).headers]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        sent.clear()

        async def receive() -> Any:
            return {"type": "http.request", "body": b"a"}

        async def send(message: Any) -> None:
            sent.append(message)

        await middleware(scope, receive, send)
        return int(sent[0]["status"])

    assert [asyncio.run(ask(sequence)) for sequence in (1, 2, 2)] == [503, 201, 201]
    assert (b"idempotency-replayed", b"true") in sent[0]["headers"]
