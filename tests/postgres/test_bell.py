"""The bell: rings after the commit of an enqueue, can be woken, and says when it is broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from threading import Thread
from time import monotonic

import psycopg
import pytest

from tenure.errors import Unavailable
from tenure.protocol.job import Ending, NewJob
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.bell import NotifyBell
from tests.postgres.conftest import ADA, TIMEOUT, claim, enqueue


@pytest.fixture
def bell(store: PostgresStore) -> Iterator[NotifyBell]:
    opened = store.bell()
    assert opened is not None
    with closing(opened):
        yield opened


@pytest.mark.parametrize("jobs", ["a", "ab"])
def test_it_rings_for_due_jobs_after_the_commit(
    store: PostgresStore, driver: SyncDriver, bell: NotifyBell, url: str, jobs: str
) -> None:
    with psycopg.connect(url) as connection:
        store.join(connection).do(store.verbs.enqueue, [NewJob(job, "work") for job in jobs])
        assert not bell.wait(0.05)
        connection.commit()
    assert bell.wait(TIMEOUT)
    assert not bell.wait(0.0)
    later = store.now() + timedelta(hours=1)
    driver.do(store.verbs.enqueue, [NewJob(f"later {job}", "work", run_at=later) for job in jobs])
    assert not bell.wait(0.05)


def test_it_rings_when_a_job_comes_back_and_not_when_one_ends(
    store: PostgresStore, driver: SyncDriver, bell: NotifyBell
) -> None:
    enqueue(store, driver, 3)
    tokens = [Token(one.id, one.generation) for one in claim(store, driver)]
    assert bell.wait(TIMEOUT)
    driver.do(
        store.verbs.settle, ADA.owner, [Ending(tokens[0], Verb.COMPLETE), Ending(tokens[1], Verb.RETRY, delay=60.0)]
    )
    assert not bell.wait(0.05)
    driver.do(store.verbs.settle, ADA.owner, [Ending(tokens[2], Verb.RELEASE)])
    assert bell.wait(TIMEOUT)
    driver.do(store.verbs.operate, Verb.CANCEL, [tokens[2].job])
    assert not bell.wait(0.05)
    driver.do(store.verbs.operate, Verb.RETRY, [tokens[2].job])
    assert bell.wait(TIMEOUT)


def test_it_can_be_woken(bell: NotifyBell) -> None:
    waking = Thread(target=bell.wake)
    begun = monotonic()
    waking.start()
    assert not bell.wait(4 * TIMEOUT)
    assert monotonic() - begun < 3 * TIMEOUT
    waking.join()
    assert not bell.wait(0.0)


def test_it_tells_when_it_is_broken(bell: NotifyBell, sql: psycopg.Connection) -> None:
    sql.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE query = 'LISTEN tenure' AND datname = current_database()"
    )
    with pytest.raises(Unavailable, match="the bell is broken"):
        bell.wait(TIMEOUT)
