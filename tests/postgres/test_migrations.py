"""The schema: applied once, by whoever comes first, without holding anybody up; its triggers guard whoever writes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tenure.errors import Unavailable
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import check_constraint
from tenure.store.driver import SyncDriver
from tenure.store.migrate import Migration, load_migrations
from tenure.store.postgres import PostgresStore, schema
from tenure.store.postgres.connect import Connection
from tests.postgres.conftest import ADA, TIMEOUT, claim, enqueue
from tests.support.postgres import wait_for_a_lock

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


@pytest.mark.parametrize("lost", [errors.DuplicateTable, errors.DuplicateObject, errors.UniqueViolation])
def test_a_migrator_that_comes_second_goes_on_whatever_it_stumbled_over(
    fresh: Callable[[], str], open_store: Open, monkeypatch: pytest.MonkeyPatch, lost: type[psycopg.Error]
) -> None:
    """The other one creates the table between the look and the attempt."""
    url, execute = fresh(), Connection.execute
    first, second = open_store(url), open_store(url)

    def overtaken(connection: Connection, query: Any, *rest: Any) -> Any:
        if str(query).startswith("CREATE TABLE tenure_migrations"):
            monkeypatch.undo()
            assert first.migrate() == ["0001_jobs"]
            raise lost("already exists")
        return execute(connection, query, *rest)

    monkeypatch.setattr(Connection, "execute", overtaken)
    assert second.migrate() == []
    second.check()


def test_a_name_that_somebody_else_uses_stops_the_migration(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    with psycopg.connect(url) as other:
        other.execute("CREATE DOMAIN tenure_migrations AS integer")
    with pytest.raises(Unavailable, match='type "tenure_migrations" already exists; nothing was done'):
        open_store(url).migrate()


def test_a_migration_gives_up_when_a_table_is_in_use(
    fresh: Callable[[], str], open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh()
    store = open_store(url)
    store.migrate()
    later = Migration(2, "0002_more", "ALTER TABLE tenure_jobs ADD COLUMN more integer")
    monkeypatch.setattr(schema, "load_migrations", lambda _: [later])
    with psycopg.connect(url) as other:
        other.execute("SELECT FROM tenure_jobs")
        with pytest.raises(Unavailable, match="holds a lock; nothing was done"):
            store.migrate()
    assert store.migrate() == ["0002_more"]


def test_a_migration_waits_a_second_for_what_others_use(
    fresh: Callable[[], str], open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh()
    telling = Migration(1, "0001_told", "CREATE TABLE told AS SELECT current_setting('lock_timeout') AS patience")
    monkeypatch.setattr(schema, "load_migrations", lambda _: [telling])
    assert open_store(url).migrate() == ["0001_told"]
    with psycopg.connect(url) as other:
        assert other.execute("SELECT patience FROM told").fetchall() == [("1s",)]


def test_a_migrator_waits_longer_for_another_one(
    fresh: Callable[[], str], open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh()
    store = open_store(url)
    store.migrate()
    in_use = "DELETE FROM tenure_migrations WHERE number > 1"
    monkeypatch.setattr(schema, "_HASTY", "SET LOCAL lock_timeout = '1ms'")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(url) as other:
        other.execute(in_use)
        waiting = pool.submit(store.migrate)
        wait_for_a_lock(url)
        other.commit()
        assert waiting.result() == []
        other.execute(in_use)
        monkeypatch.setattr(schema, "_PATIENT", "SET LOCAL lock_timeout = '1ms'")
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
