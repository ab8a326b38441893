"""Leases under PostgreSQL's locks: the clock is read after the lock, and nobody waits for what is not theirs."""

from __future__ import annotations

import psycopg
import pytest

from tenure.ids import new_job_id
from tenure.protocol.job import Ending, NewJob, Verdict, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tests.postgres.conftest import ADA, BOB, TIMEOUT, claim, enqueue, wanted
from tests.support.processes import wait_for


def counted_updates(store: PostgresStore, sql: psycopg.Connection, least: int) -> tuple[int, int]:
    """Wait until PostgreSQL has counted so many updates, and return how many there were and how many were HOT."""
    with store._shared(TIMEOUT).connection() as connection:
        connection.begin()
        connection.execute("SELECT pg_stat_force_next_flush()")
    query = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'tenure_jobs' AND n_tup_upd >= %s"
    updates, hot = wait_for(lambda: sql.execute(query, (least,)).fetchone(), 20.0, f"{least} updates") or (0, 0)
    return updates, hot


def test_renewals_touch_no_index(store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection) -> None:
    updates, _ = counted_updates(store, sql, 0)
    enqueue(store, driver, 20)
    tokens = [Token(one.id, one.generation) for one in claim(store, driver, 20)]
    before = counted_updates(store, sql, updates + 20)
    for _ in range(10):
        assert driver.do(store.verbs.renew, ADA.owner, tokens) == []
    after = counted_updates(store, sql, before[0] + 200)
    assert after[1] - before[1] == 200


def test_a_renewal_behind_a_lock_that_outlasts_the_lease_is_refused(
    store: PostgresStore, driver: SyncDriver, url: str
) -> None:
    """Protocol R12: the blocker rolls back, so PostgreSQL by itself would not look at the lease again."""
    enqueue(store, driver)
    [held] = claim(store, driver)
    token = Token(held.id, held.generation)
    with psycopg.connect(url) as blocker:
        blocker.execute("UPDATE tenure_jobs SET progress = 'x' WHERE id = %s", (held.id,))
        [busy] = driver.do(store.verbs.renew, ADA.owner, [token])
        assert (busy.verdict, busy.state) == (Verdict.BUSY, State.RUNNING)
        store.shift_clock(31.0)
        [ended] = driver.do(store.verbs.renew, ADA.owner, [token])
        assert ended.verdict is Verdict.STALE
        blocker.rollback()
    [refused] = driver.do(store.verbs.renew, ADA.owner, [token])
    assert refused.verdict is Verdict.STALE
    assert driver.do(store.verbs.get, held.id).lease_remaining < 0  # type: ignore[operator]


def test_one_locked_row_does_not_hold_up_the_other_renewals(store: PostgresStore, driver: SyncDriver, url: str) -> None:
    enqueue(store, driver, 3)
    tokens = [Token(one.id, one.generation) for one in claim(store, driver)]
    with psycopg.connect(url) as handler:
        handler.execute("SELECT FROM tenure_jobs WHERE id = %s FOR SHARE", (tokens[1].job,))
        store.shift_clock(10.0)
        [busy] = driver.do(store.verbs.renew, ADA.owner, tokens)
    assert (busy.token, busy.verdict) == (tokens[1], Verdict.BUSY)
    left = [driver.do(store.verbs.get, token.job).lease_remaining or 0.0 for token in tokens]
    assert [round(seconds / 10) for seconds in left] == [3, 2, 3]


def test_a_foreign_key_to_a_job_hinders_no_verb(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection, url: str
) -> None:
    enqueue(store, driver)
    sql.execute("CREATE TABLE invoice (job text REFERENCES tenure_jobs)")
    try:
        with psycopg.connect(url) as application:
            application.execute("INSERT INTO invoice VALUES ('job 0000')")
            [held] = claim(store, driver)
            token = Token(held.id, held.generation)
            assert driver.do(store.verbs.renew, ADA.owner, [token]) == []
            [done] = driver.do(store.verbs.settle, ADA.owner, [Ending(token, Verb.COMPLETE)])
            assert done.verdict is Verdict.DONE
            application.rollback()
    finally:
        sql.execute("DROP TABLE invoice")


def test_a_claim_passes_by_locked_rows_and_keeps_the_order(store: PostgresStore, driver: SyncDriver, url: str) -> None:
    enqueue(store, driver, 4)
    with psycopg.connect(url) as blocker:
        blocker.execute("SELECT FROM tenure_jobs WHERE id = 'job 0001' FOR UPDATE")
        assert [one.id for one in claim(store, driver, 2)] == ["job 0000", "job 0002"]
    assert [one.id for one in claim(store, driver, 5, BOB)] == ["job 0001", "job 0003"]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_no_plan_takes_more_than_the_limit(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection, limit: int
) -> None:
    """Protocol R9: neither a nested loop that repeats the subquery, nor dead and doubled lanes."""
    for priority in range(3):
        enqueue(store, driver, 10)
        sql.execute(
            "UPDATE tenure_jobs SET id = id || %s, priority = %s WHERE length(id) = 8", (str(priority), priority)
        )
    claim(store, driver, 9)
    store.shift_clock(31.0)
    for setting in ("enable_indexscan", "enable_bitmapscan", "enable_sort"):
        with store._shared(5.0).connection() as connection:
            connection.begin()
            connection.execute(f"SET {setting} = off")
        taken = driver.do(store.verbs.claim, BOB, wanted(limit, "default", "default"))
        assert len({one.id for one in taken}) == len(taken) == limit


def test_a_step_is_not_recorded_beside_a_takeover(store: PostgresStore, driver: SyncDriver) -> None:
    enqueue(store, driver)
    [held] = claim(store, driver)
    store.shift_clock(31.0)
    claim(store, driver, 1, BOB)
    answer = driver.do(store.verbs.record_step, ADA.owner, Token(held.id, held.generation), "charge", "1")
    assert answer.verdict is Verdict.STALE
    assert driver.do(store.verbs.recall_step, held.id, "charge") is None


def test_an_open_transaction_does_not_shorten_a_lease(store: PostgresStore, driver: SyncDriver, url: str) -> None:
    """Protocol R12: PostgreSQL's own `now` is the transaction's start."""
    enqueue(store, driver)
    with psycopg.connect(url) as connection:
        begun = connection.execute("SELECT now(), pg_sleep(0.3)").fetchone()
        assert begun is not None
        joined = store.join(connection)
        [held] = joined.do(store.verbs.claim, ADA, wanted())
        row = connection.execute("SELECT lease_until FROM tenure_jobs WHERE id = %s", (held.id,)).fetchone()
    assert row is not None
    assert (row[0] - begun[0]).total_seconds() >= 30.3


def test_r12_an_old_transaction_of_the_callers_cannot_renew_what_has_ended(store: PostgresStore, url: str) -> None:
    """The time of its beginning is no clock: by that time the lease would still be alive."""
    driver = store.connect(timeout=TIMEOUT)
    driver.do(store.verbs.enqueue, [NewJob(new_job_id(), "work", lease=0.3)])
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1")
        (held,) = driver.do(store.verbs.claim, ADA, Wanted(("default",), ("work",), 1))
        connection.execute("SELECT pg_sleep(0.4)")
        held_token = Token(held.id, held.generation)
        [answer] = store.join(connection).do(store.verbs.renew, ADA.owner, [held_token])
    assert answer.verdict is Verdict.STALE
