"""Many rows in one statement: as few of those as there can be, and the same answers as one by one."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tenure.ids import new_job_ids, new_owner
from tenure.protocol.ending import completed
from tenure.protocol.job import Claimer, NewJob, Verdict, Wanted
from tenure.protocol.lease import Token
from tenure.store.calls import COMPLETED
from tenure.store.contract import Driver
from tenure.store.rows import ENQUEUE_COLUMNS, ENQUEUE_EACH
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.layout import FEW, STATEMENTS

MANY = 257
ME = Claimer(new_owner(), "w")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "jobs.db"))
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture(params=["own", "joined"])
def driver(store: SqliteStore, request: pytest.FixtureRequest) -> Iterator[Driver]:
    if request.param == "own":
        yield store.connect(timeout=5.0)
        return
    with closing(sqlite3.connect(store.path)) as connection:
        yield store.join(connection)
        connection.commit()


def jobs(count: int, **options: Any) -> list[NewJob]:
    return [NewJob(id_, "work", lease=60.0, **options) for id_ in new_job_ids(count)]


def claim(store: SqliteStore, driver: Driver, count: int) -> list[Token]:
    taken = driver.do(store.verbs.claim, ME, Wanted(("default",), ("work",), count))
    return [Token(row.id, row.generation) for row in taken]


def due(store: SqliteStore, driver: Driver) -> int:
    return sum(counts.due for counts in driver.do(store.verbs.queues))


@pytest.mark.parametrize("count", [1, FEW - 1, FEW, 99, 100, MANY])
def test_as_many_are_stored_and_completed_as_came(store: SqliteStore, driver: Driver, count: int) -> None:
    made = driver.do(store.verbs.enqueue, jobs(count))
    assert [answer.created for answer in made] == [True] * count
    tokens = claim(store, driver, count + 1)
    assert sorted(token.job for token in tokens) == sorted(answer.id for answer in made)
    answers = driver.do(store.verbs.settle, ME.owner, [completed(token, '"done"') for token in tokens])
    assert [answer.verdict for answer in answers] == [Verdict.DONE] * count
    assert {driver.do(store.verbs.get, token.job).result for token in tokens} == {'"done"'}


@pytest.mark.parametrize("place", [0, 100, MANY - 1])
def test_one_that_is_there_already_is_told_from_the_others(store: SqliteStore, driver: Driver, place: int) -> None:
    many = jobs(MANY)
    driver.do(store.verbs.enqueue, [many[place]])
    answers = driver.do(store.verbs.enqueue, many)
    assert [answer.id for answer in answers] == [job.id for job in many]
    assert [answer.created for answer in answers] == [number != place for number in range(MANY)]
    assert due(store, driver) == MANY


def test_each_of_many_keeps_what_is_its_own(store: SqliteStore, driver: Driver) -> None:
    many = [*jobs(MANY, priority=3, arguments='{"a":"(?1), (:id)"}'), *jobs(MANY, queue="mail", trace="t")]
    assert all(answer.created for answer in driver.do(store.verbs.enqueue, many))
    for job in many:
        kept = driver.do(store.verbs.get, job.id)
        told = (kept.queue, kept.priority, kept.arguments, kept.trace)
        assert told == (job.queue, job.priority, job.arguments, job.trace)


@pytest.mark.parametrize("place", [0, 100, MANY - 1])
def test_one_that_is_stale_is_told_from_the_others(store: SqliteStore, driver: Driver, place: int) -> None:
    driver.do(store.verbs.enqueue, jobs(MANY))
    tokens = sorted(claim(store, driver, MANY), key=lambda token: token.job)
    stale = Token(tokens[place].job, tokens[place].generation + 1)
    given = [stale if number == place else token for number, token in enumerate(tokens)]
    answers = driver.do(store.verbs.settle, ME.owner, [completed(token, "null") for token in given])
    assert [answer.verdict is Verdict.STALE for answer in answers] == [number == place for number in range(MANY)]
    assert driver.do(store.verbs.get, stale.job).state == "running"


def test_the_same_token_twice_completes_once(store: SqliteStore, driver: Driver) -> None:
    driver.do(store.verbs.enqueue, jobs(FEW))
    endings = [completed(token, "1") for token in claim(store, driver, FEW)]
    again = completed(endings[3].token, "2")
    answers = driver.do(store.verbs.settle, ME.owner, [*endings, again])
    assert [answer.verdict for answer in answers] == [Verdict.DONE] * FEW + [Verdict.ALREADY]
    assert driver.do(store.verbs.get, again.token.job).result == "1"


def test_what_a_caller_did_before_stays_when_rows_are_done_again(store: SqliteStore) -> None:
    many = jobs(MANY)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("CREATE TABLE orders (number INTEGER)")
        connection.execute("INSERT INTO orders VALUES (7)")
        store.join(connection).do(store.verbs.enqueue, [*many, many[0]])
        store.join(connection).do(store.verbs.enqueue, many)
        assert connection.in_transaction
        connection.commit()
        assert connection.execute("SELECT * FROM orders").fetchall() == [(7,)]
    assert due(store, store.connect(timeout=5.0)) == MANY


def test_what_ends_with_an_error_stores_nothing(store: SqliteStore, driver: Driver) -> None:
    many = jobs(MANY)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(
            f"CREATE TRIGGER refused BEFORE INSERT ON tenure_jobs WHEN NEW.id = '{many[-1].id}'"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    with pytest.raises(Exception, match="refused"):
        driver.do(store.verbs.enqueue, many)
    assert due(store, driver) == 0


def said_by(store: SqliteStore, act: Callable[[Driver], object]) -> set[str]:
    """Return what carries rows; a trigger says the statement again."""
    said: list[str] = []
    with closing(sqlite3.connect(store.path)) as connection:
        driver = store.join(connection)
        connection.set_trace_callback(said.append)
        act(driver)
        connection.set_trace_callback(None)
        connection.commit()
    return {statement for statement in said if "VALUES (" in statement and "tenure_jobs" in statement}


def test_many_rows_take_few_statements(store: SqliteStore) -> None:
    assert len(said_by(store, lambda driver: driver.do(store.verbs.enqueue, jobs(1000)))) == 10
    tokens = claim(store, store.connect(timeout=5.0), 1000)
    endings = [completed(token, "null") for token in tokens]
    assert len(said_by(store, lambda driver: driver.do(store.verbs.settle, ME.owner, endings))) == 10


@pytest.mark.parametrize(
    ("name", "columns"),
    [("enqueue", ENQUEUE_COLUMNS), ("enqueue_alike", ENQUEUE_EACH), ("complete_all", COMPLETED)],
)
def test_what_carries_many_rows_is_known_by_its_words(name: str, columns: tuple[str, ...]) -> None:
    form, _ = STATEMENTS[name].layout(columns).bind({}, {})
    assert form.many
