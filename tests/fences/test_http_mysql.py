"""The server's side in MariaDB, which speaks for MySQL: what differs there, through PyMySQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from tenure import Misuse, OutOfSequence, StaleToken
from tenure.fences.http import Answer, FencedService, RequestFacts
from tenure.fences.http.problems import KeyReused, RequestInProgress
from tests.fences import sql_servers
from tests.fences.http import SCOPE, facts

HEADERS = {"Location": "/日本"}


class Shop:
    """A service in MariaDB; its connections wait a second for a lock."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.service = FencedService("mysql")

    @contextmanager
    def begin(self, **options: Any) -> Iterator[Any]:
        with closing(pymysql.connect(**self.arguments, **options)) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SET innodb_lock_wait_timeout = 1")
            yield connection
            connection.commit()

    def act(self, connection: Any, given: RequestFacts, **options: Any) -> Answer:
        with self.service.request(connection, given, **options) as call:
            if not call.repeat:
                with connection.cursor() as cursor:
                    cursor.execute("INSERT INTO charges VALUES (%s)", (given.body,))
                call.answer(201, b"\x00\xff" + given.body, HEADERS)
        return call.response

    def ask(self, given: RequestFacts, **options: Any) -> Answer:
        with self.begin() as connection:
            return self.act(connection, given, **options)

    def charges(self) -> list[bytes]:
        return [row[0] for row in self.query("SELECT text FROM charges")]

    def query(self, statement: str) -> tuple[Any, ...]:
        with self.begin() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())


@pytest.fixture(scope="module")
def one_shop() -> Shop:
    server = sql_servers.mariadb()
    shop = Shop(server.arguments(server.create_database()))
    for _ in range(2):  # the second time nothing is left to be made
        with shop.begin() as connection:
            shop.service.create(connection)
    shop.query("CREATE TABLE charges (text BLOB)")
    return shop


@pytest.fixture
def shop(one_shop: Shop) -> Shop:
    for table in ("charges", "tenure_fences", "tenure_http_responses"):
        one_shop.query(f"DELETE FROM {table}")
    return one_shop


def test_a_repeat_gets_the_first_answer(shop: Shop) -> None:
    first, again, later = shop.ask(facts()), shop.ask(facts()), shop.ask(facts(8))
    assert (first.status, first.body, first.headers) == (201, b"\x00\xffa", (("Location", "/日本"),))
    assert not first.repeat
    for repeated in (again, later):
        assert (repeated.status, repeated.body, repeated.repeat) == (201, first.body, True)
        assert repeated.headers == (*first.headers, ("Idempotency-Replayed", "true"))
    assert shop.charges() == [b"a"]


def test_what_the_rule_refuses_changes_nothing(shop: Shop) -> None:
    shop.ask(facts(8, 2))
    for refusal, given in (
        (StaleToken, facts(7, 9, "late")),
        (OutOfSequence, facts(8, 1, "overtaken")),
        (KeyReused, facts(8, 3, body=b"b")),
    ):
        with pytest.raises(refusal):
            shop.ask(given)
    assert shop.charges() == [b"a"]
    shop.ask(facts(8, 3, "next", body=b"c"))
    assert shop.charges() == [b"a", b"c"]


@pytest.mark.parametrize("ordered", [True, False])
def test_r31_without_a_transaction_nothing_is_let_through(shop: Shop, ordered: bool) -> None:
    with shop.begin(autocommit=True) as connection, pytest.raises(Misuse, match="autocommit"):
        shop.act(connection, facts(), ordered=ordered)


def test_keys_that_a_collation_takes_for_one_are_two(shop: Shop) -> None:
    for sequence, key in enumerate(("a", "A", "a ", "ä"), 1):
        assert not shop.ask(facts(7, sequence, key)).repeat


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1"])
def test_any_connection_writes_the_same_names(shop: Shop, charset: str) -> None:
    given = facts(scope="口座", client="日本")
    with shop.begin(charset=charset) as connection:
        shop.act(connection, given)
    assert shop.ask(given).repeat
    assert shop.query("SELECT client, scope FROM tenure_http_responses") == (("日本".encode(), "口座".encode()),)


def test_a_transaction_that_began_to_read_before_sees_the_answer_of_another(shop: Shop) -> None:
    """Its snapshot is older than the answer; a plain read would not show it, and the charge would be made twice."""
    with shop.begin() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM charges")
        shop.ask(facts())
        assert shop.act(connection, facts()).repeat
    assert shop.charges() == [b"a"]


def test_a_message_of_a_request_that_is_being_carried_out_is_told_to_ask_again(shop: Shop) -> None:
    with shop.begin() as connection:
        shop.act(connection, facts())
        with pytest.raises(RequestInProgress):
            shop.ask(facts())
    assert shop.ask(facts()).repeat


def test_what_was_checked_can_be_given_up_and_old_answers_forgotten(shop: Shop) -> None:
    with shop.begin() as connection:
        call = shop.service.check(connection, facts())
    with pytest.raises(RequestInProgress):
        shop.ask(facts(7, 2))
    with shop.begin() as connection:
        shop.service.give_up(connection, call)
    assert not shop.ask(facts(7, 2)).repeat
    shop.query("UPDATE tenure_http_responses SET created_at = created_at - 1000")
    with shop.begin() as connection:
        assert shop.service.forget_older_than(connection, 2000) == 0
        assert shop.service.forget_older_than(connection, 900) == 1
        current = shop.service.fence.current(connection, SCOPE)
        assert current is not None
        assert current.generation == 7
