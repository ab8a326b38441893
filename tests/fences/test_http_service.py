"""The server's side in its own transactions, on SQLite: what is kept, what is refused, what is forgotten."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tenure import BadToken, Misuse, OutOfSequence, StaleToken, Token
from tenure.fences.http import Answer, FencedService, RequestFacts, fencing_headers
from tenure.fences.http.headers import MissingHeader
from tenure.fences.http.problems import KeyReused, RequestInProgress, RequestTooLarge
from tenure.fences.rule import Mark
from tests.fences.http import SCOPE, SQLiteValues, facts


class Desk:
    """A service with its database, asked without a server."""

    def __init__(self, values: SQLiteValues) -> None:
        self.values = values
        self.service = values.service

    def ask(self, given: RequestFacts, status: int = 201, body: Any = "done", **options: Any) -> Answer:
        with self.values.begin() as connection, self.service.request(connection, given, **options) as call:
            if not call.repeat:
                self.values.put(connection, call.scope, given.body.decode())
                call.answer(status, body, {"ETag": '"1"', "Set-Cookie": "visitor=1", "Date": "today"})
        return call.response

    def mark(self, scope: str = SCOPE) -> Mark | None:
        with self.values.begin() as connection:
            return self.service.fence.current(connection, scope)

    def rows(self) -> int:
        with self.values.begin() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM tenure_http_responses").fetchone()[0])

    def age(self, seconds: int) -> None:
        with self.values.begin() as connection:
            connection.execute("UPDATE tenure_http_responses SET created_at = created_at - ?", (seconds,))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    values = SQLiteValues(tmp_path / "values.db", largest=1000)
    values.create()
    return Desk(values)


@pytest.mark.parametrize(
    ("body", "kind", "content"),
    [
        (b"\x00\xff", None, b"\x00\xff"),
        ("ä", "text/plain; charset=utf-8", "ä".encode()),
        ({"a": [1, None]}, "application/json", b'{"a": [1, null]}'),
        (b"", None, b""),
    ],
)
def test_an_answer_is_kept_as_it_was_given(desk: Desk, body: Any, kind: str | None, content: bytes) -> None:
    first, again = (desk.ask(facts(), 202, body) for _ in range(2))
    assert (first.status, first.body, first.repeat) == (202, content, False)
    assert (again.status, again.body, again.repeat) == (202, content, True)
    expected = ([("Content-Type", kind)] if kind else []) + [("ETag", '"1"')]
    assert list(first.headers) == expected  # what belongs to one visitor or one moment is not given to another
    assert list(again.headers) == [*expected, ("Idempotency-Replayed", "true")]


def test_a_refusal_of_the_handlers_own_is_an_answer_too(desk: Desk) -> None:
    assert desk.ask(facts(), 402).status == 402
    assert desk.ask(facts(8), 402).repeat


def test_without_an_answer_nothing_is_done(desk: Desk) -> None:
    with pytest.raises(Misuse, match="not answered"):  # noqa: SIM117 -- the transaction ends inside
        with desk.values.begin() as connection, desk.service.request(connection, facts()) as call:
            desk.values.put(connection, call.scope, "a")
    assert (desk.values.written(), desk.mark(), desk.rows()) == ([], None, 0)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [(500, "", "rolled back"), (599, "", "rolled back"), (199, "", "final"), (600, "", "final"), ("200", "", "final")],
)
def test_an_answer_that_cannot_be_kept_undoes_the_work(desk: Desk, status: Any, body: str, reason: str) -> None:
    with pytest.raises(Misuse, match=reason):
        desk.ask(facts(), status, body)
    assert (desk.values.written(), desk.mark(), desk.rows()) == ([], None, 0)


def test_what_is_written_after_a_rollback_of_the_handlers_own_is_undone(desk: Desk) -> None:
    """The fence was passed in a transaction that is no more; what follows stands in one that nothing guards."""
    with (
        pytest.raises(Misuse, match="has ended before its handler did"),
        closing(sqlite3.connect(desk.values.file)) as connection,
        connection,  # begins by itself, and rolls back
    ):
        connection.execute("BEGIN IMMEDIATE")
        with desk.service.request(connection, facts(2)) as call:
            connection.rollback()
            desk.values.put(connection, call.scope, "unguarded")
            call.answer(201, "done")
    assert (desk.values.written(), desk.mark(), desk.rows()) == ([], None, 0)


def test_an_answer_too_large_to_keep_undoes_the_work(desk: Desk) -> None:
    with pytest.raises(Misuse, match="too large"):
        desk.ask(facts(), 201, b"x" * 1001)
    assert desk.values.written() == []
    assert desk.ask(facts(), 201, b"x" * 1000).status == 201


def test_a_request_too_large_to_keep_is_refused(desk: Desk) -> None:
    with pytest.raises(RequestTooLarge):
        desk.ask(facts(body=b"x" * 1001))
    assert desk.ask(facts(body=b"x" * 1000)).status == 201


def test_a_repeat_is_not_answered_anew(desk: Desk) -> None:
    desk.ask(facts())
    with pytest.raises(Misuse, match="answered before"):  # noqa: SIM117 -- the same
        with desk.values.begin() as connection, desk.service.request(connection, facts()) as call:
            call.answer(200)


OTHER_REQUESTS = {
    "body": facts(8, body=b"b"),
    "target": facts(8, target="/charges?dry=1"),
    "method": facts(8, method="PUT"),
    "scope": facts(8, scope="account/8"),
    "where one part ends": facts(8, scope="account/7a", body=b""),
}


@pytest.mark.parametrize("what", OTHER_REQUESTS)
def test_a_key_names_one_request(desk: Desk, what: str) -> None:
    desk.ask(facts())
    with pytest.raises(KeyReused):
        desk.ask(OTHER_REQUESTS[what])
    assert (desk.values.written(), desk.mark()) == (["a"], Mark("job-1", 7, 1))


def test_the_keys_of_two_clients_are_told_apart(desk: Desk) -> None:
    desk.ask(facts(client="one"))
    assert not desk.ask(facts(sequence=2, client="other")).repeat
    assert desk.ask(facts(client="one")).repeat
    with pytest.raises(Misuse, match="client"):
        desk.ask(facts(client="a\nb"))


def test_r33_an_ordered_endpoint_asks_for_numbers_in_order(desk: Desk) -> None:
    desk.ask(facts(sequence=2, key="two"))
    with pytest.raises(OutOfSequence):
        desk.ask(facts(sequence=1, key="one"))
    with pytest.raises(MissingHeader, match="Fencing-Sequence"):
        desk.ask(RequestFacts("POST", "/", tuple(fencing_headers(Token("job-1", 7), SCOPE, "three").items())))


def test_r33_an_unordered_endpoint_goes_by_the_key_alone(desk: Desk) -> None:
    for sequence, key in ((2, "two"), (1, "one"), (1, "one"), (3, "two")):
        desk.ask(facts(sequence=sequence, key=key, body=key.encode()), ordered=False)
    assert desk.values.written() == ["two", "one"]
    desk.ask(facts(8, key="three", body=b"three"), ordered=False)
    with pytest.raises(StaleToken):
        desk.ask(facts(7, 9, key="late"), ordered=False)
    with pytest.raises(MissingHeader, match="Idempotency-Key"):
        desk.ask(facts(8, 9, key=None), ordered=False)
    assert desk.values.written() == ["two", "one", "three"]


def test_r36_a_request_for_another_scope_is_refused_before_anything_is_asked(desk: Desk) -> None:
    with pytest.raises(BadToken, match="under the fence"):
        desk.ask(facts(), scope="account/8")
    assert desk.mark() is None


def test_old_answers_are_forgotten_and_young_ones_kept(desk: Desk) -> None:
    desk.ask(facts(sequence=1, key="old"))
    desk.age(1000)
    desk.ask(facts(sequence=2, key="young"))
    with desk.values.begin() as connection:
        assert desk.service.forget_older_than(connection, 2000) == 0
        assert desk.service.forget_older_than(connection, 900) == 1
        with pytest.raises(Misuse, match="longer than"):
            desk.service.forget_older_than(connection, 0)
    assert desk.ask(facts(sequence=2, key="young")).repeat


def test_r35_a_forgotten_request_is_still_stopped_by_the_fence_unless_a_new_owner_sends_it(desk: Desk) -> None:
    desk.ask(facts())
    with desk.values.begin() as connection:
        connection.execute("DELETE FROM tenure_http_responses")
    with pytest.raises(OutOfSequence):
        desk.ask(facts())
    desk.ask(facts(8))  # what was kept for too short a time is done again: see forget_older_than
    assert desk.values.written() == ["a", "a"]


def test_what_was_checked_and_neither_kept_nor_given_up_is_in_progress(desk: Desk) -> None:
    with desk.values.begin() as connection:
        call = desk.service.check(connection, facts())
    for sequence in (1, 2):
        with pytest.raises(RequestInProgress):
            desk.ask(facts(sequence=sequence))
    with desk.values.begin() as connection:
        desk.service.give_up(connection, call)
    assert desk.ask(facts(sequence=2)).status == 201
    with desk.values.begin() as connection:
        desk.service.give_up(connection, call)  # changes nothing any more
    assert desk.ask(facts(sequence=2)).repeat


def test_an_answer_that_was_kept_is_not_given_up(desk: Desk) -> None:
    with desk.values.begin() as connection:
        call = desk.service.check(connection, facts())
        call.answer(204)
        desk.service.keep(connection, call)
    with desk.values.begin() as connection:
        desk.service.give_up(connection, call)
    assert desk.ask(facts()).repeat


def test_importing_the_server_side_imports_no_framework_and_no_client() -> None:
    modules = "tenure.fences.http, tenure.fences.http.asgi, tenure.fences.http.wsgi, tenure.fences.http.middleware"
    libraries = {"django", "flask", "httpx", "requests", "starlette"}
    program = f"import sys, {modules}; assert not {libraries} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_service_waits_for_some_time() -> None:
    with pytest.raises(Misuse, match="wait"):
        FencedService("sqlite", wait=0)


def test_tables_that_are_there_stay(desk: Desk) -> None:
    desk.ask(facts())
    with desk.values.begin() as connection:
        desk.service.create(connection)
    assert desk.ask(facts()).repeat


@pytest.mark.parametrize("ordered", [True, False])
def test_r31_without_a_transaction_nothing_is_let_through(desk: Desk, ordered: bool) -> None:
    with closing(sqlite3.connect(desk.values.file, isolation_level=None)) as connection:
        with pytest.raises(Misuse, match="autocommit"):
            desk.service.check(connection, facts(), ordered=ordered)
        assert desk.mark() is None
        connection.execute("BEGIN IMMEDIATE")
        assert not desk.service.check(connection, facts(), ordered=ordered).repeat
