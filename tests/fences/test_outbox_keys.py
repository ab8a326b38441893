"""What has a message's key already: the message itself, or another one, which is told; in the caller's transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import psycopg
import pytest

from tenure import App, Filter, Job, Misuse
from tenure.fences import outbox
from tenure.testing.job import FakeJob
from tests.fences import sql_servers

KEY = "order-7:receipt"


class Shop:
    """An app with its senders, and transactions of its own in the store's database."""

    def __init__(self, app: App, begin: Callable[[], AbstractContextManager[Any]]) -> None:
        self.app = app
        self.begin = begin

        @outbox.sender(app, deliver="at-most-once")
        def mail(job: Job, to: str, parts: set[str] | None = None, copies: int = 1) -> None: ...

        @outbox.sender(app, deliver="at-least-once")
        def letter(to: str) -> None: ...

        self.mail, self.letter = mail, letter

    def stored(self) -> list[tuple[str | None, str]]:
        return [(job.task, job.arguments) for job in map(self.app.client.get, self.ids())]

    def ids(self) -> list[str]:
        return sorted(job.id for job in self.app.client.find(Filter()))


def on_sqlite(path: str) -> Callable[[], AbstractContextManager[Any]]:
    @contextmanager
    def begin() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    return begin


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    if request.param == "sqlite":
        path = sql_servers.new_sqlite_path()
        app, begin = App(f"sqlite:///{path}"), on_sqlite(path)
    else:
        url = sql_servers.postgres().create_database()
        app, begin = App(url), lambda: psycopg.connect(url)
    app.store.migrate()
    with closing(app):
        yield Shop(app, begin)


def test_a_job_of_another_task_is_no_message_in_the_callers_transaction(shop: Shop) -> None:
    with shop.begin() as connection:
        outbox.send(connection, KEY, shop.mail, to="a")
    told = "for letter is not stored: a job of task mail has its id"
    with pytest.raises(Misuse, match=told), shop.begin() as connection:
        outbox.send(connection, "another", shop.letter, to="a")
        outbox.send(connection, KEY, shop.letter, to="a")
    assert shop.stored() == [("mail", '{"to":"a"}')]


def test_a_job_of_another_task_is_no_message_on_an_asynchronous_connection() -> None:
    url = sql_servers.postgres().create_database()
    app = App(url)
    app.store.migrate()
    shop = Shop(app, lambda: psycopg.connect(url))

    async def send(task: Any, key: str) -> bool:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            return (await outbox.send_async(connection, key, task, to="a")).created

    with closing(app):
        assert asyncio.run(send(shop.mail, KEY))
        assert not asyncio.run(send(shop.mail, KEY))
        with pytest.raises(Misuse, match="for letter is not stored: a job of task mail has its id"):
            asyncio.run(send(shop.letter, KEY))
        assert shop.ids() == [KEY]


def test_another_message_with_the_same_key_is_told_by_the_arguments_that_differ(shop: Shop) -> None:
    with shop.begin() as connection:
        assert outbox.send(connection, KEY, shop.mail, to="a", parts={"x"}).created
    for given, names in (
        ({"to": "b", "parts": {"x"}}, "'to'"),
        ({"to": "b", "parts": {"x", "y"}}, "'parts', 'to'"),
        ({"to": "a"}, "'parts'"),
        ({"to": "a", "parts": {"x"}, "copies": 2}, "'copies'"),
    ):
        told = f"{KEY} for mail is not stored: one with this key is, and differs in {names}"
        with pytest.raises(Misuse, match=told), shop.begin() as connection:
            outbox.send(connection, "another", shop.mail, to="a")
            outbox.send(connection, KEY, shop.mail, **given)
    assert shop.ids() == [KEY]


def test_an_error_about_arguments_shows_none(shop: Shop) -> None:
    outbox.send(None, KEY, shop.mail, to="a-secret")
    with pytest.raises(Misuse) as refused:
        outbox.send(None, KEY, shop.mail, to="another-secret")
    assert "secret" not in str(refused.value)


def test_the_same_message_is_a_repeat_however_its_arguments_are_written(shop: Shop) -> None:
    parts = {"x", "y", "z"}
    assert outbox.send(None, KEY, shop.mail, "a", parts).created
    [(_, stored)] = shop.stored()
    for written in ('["x","y","z"]', '["z","y","x"]'):
        again = stored[: stored.index("[")] + written + stored[stored.index("]") + 1 :]
        assert outbox._differing(shop.mail, again, stored) == []
    with shop.begin() as connection:
        assert not outbox.send(connection, KEY, shop.mail, parts=parts, to="a").created


def test_a_message_that_another_one_with_its_unique_key_stands_for_is_not_compared(shop: Shop) -> None:
    one = shop.mail.options(unique_key="reminder")
    assert outbox.send(None, "first", one, to="a").created
    with shop.begin() as connection:
        met = outbox.send(connection, "second", one, to="b")
    assert (met.id, met.created) == ("first", False)


@pytest.mark.parametrize("step", ["s" * 170, "receipt:" + "s" * 170])
def test_a_key_that_is_too_long_is_told_by_its_step(shop: Shop, step: str) -> None:
    job = FakeJob(id="j" * 36)
    key = job.idempotency_key(step)
    with pytest.raises(
        Misuse, match=rf"at most 200 .* step '{step[:7]}.*' has {len(key)}, 36 of them for the job's id"
    ):
        outbox.send(None, key, shop.mail, to="a")
    with pytest.raises(Misuse, match="a message's key 'xxx"):
        outbox.send(None, "x" * 201, shop.mail, to="a")
    with pytest.raises(Misuse, match="must be text"):
        outbox.send(None, 7, shop.mail, to="a")  # type: ignore[arg-type]  # that is the point
    assert outbox.send(None, job.idempotency_key("s" * 163), shop.mail, to="a").created
