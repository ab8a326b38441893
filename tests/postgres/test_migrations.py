"""The schema: applied once, by whoever comes first, without holding anybody up; its triggers guard whoever writes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tenure.errors import Unavailable
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import check_constraint
from tenure.store.driver import SyncDriver
from tenure.store.migrate import load_migrations
from tenure.store.postgres import PostgresStore
from tests.postgres.conftest import ADA, TIMEOUT, claim, enqueue

Open = Callable[[str], PostgresStore]


def test_the_condition_is_that_of_the_lifecycle() -> None:
    [first, *_] = load_migrations("tenure.store.postgres")
    assert f"CHECK ({check_constraint()})" in "\n".join(line.removeprefix("    ") for line in first.sql.splitlines())


def test_migrations_apply_once(fresh: Callable[[], str], open_store: Open) -> None:
    store = open_store(fresh())
    [(name, sql)] = store.pending_migrations()
    assert (name, "CREATE TABLE tenure_jobs" in sql) == ("0001_jobs", True)
    assert store.migrate() == ["0001_jobs"]
    assert (store.migrate(), store.pending_migrations()) == ([], [])
    store.check()


def test_migrators_that_meet_apply_each_migration_once(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    stores = [open_store(url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(PostgresStore.migrate, stores))
    assert sorted(applied) == [[], [], [], ["0001_jobs"]]
    stores[0].check()


def test_a_migration_gives_up_when_a_lock_is_held(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    store = open_store(url)
    store.migrate()
    with psycopg.connect(url) as other:
        other.execute("DELETE FROM tenure_migrations")
        with pytest.raises(Unavailable, match="holds a lock; nothing was done"):
            store.migrate()


def test_a_removed_id_that_a_person_chose_leaves_its_generation_in_the_floor(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection
) -> None:
    """Protocol R3: whoever removes the row, and however."""
    for statement, floor in (("DELETE FROM tenure_jobs", 5), ("TRUNCATE tenure_jobs", 6)):
        driver.do(store.verbs.claim_named, ADA, "report", 30.0, create=True)
        if floor == 5:
            sql.execute("UPDATE tenure_jobs SET generation = 5, ended = 'takeover', ended_at = run_at")
        sql.execute(statement)
        assert driver.do(store.verbs.admit).floor == floor


def test_what_belongs_to_a_job_goes_with_it(store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection) -> None:
    enqueue(store, driver, 2)
    for held in claim(store, driver):
        driver.do(store.verbs.record_step, ADA.owner, Token(held.id, held.generation), "charge", "1")
    store.shift_clock(31.0)
    claim(store, driver)
    sql.execute("DELETE FROM tenure_jobs WHERE id = 'job 0000'")
    assert len(driver.do(store.verbs.history, "job 0001")) == 1
    assert sql.execute("SELECT job FROM tenure_steps").fetchall() == [("job 0001",)]
    assert driver.do(store.verbs.history, "job 0000") == []
    sql.execute("TRUNCATE tenure_jobs")
    assert sql.execute("SELECT FROM tenure_history UNION ALL SELECT FROM tenure_steps").fetchall() == []


def test_an_unmigrated_database_asks_for_the_command_and_keeps_the_password(
    fresh: Callable[[], str], open_store: Open
) -> None:
    store = open_store(fresh())
    driver = store.connect(timeout=TIMEOUT)
    with pytest.raises(Exception, match="tenure migrate --store postgresql://127") as caught:
        driver.do(store.verbs.queues)
    assert str(store._target.given["password"]) not in str(caught.value)
