"""Unique jobs: one of many callers stores it, a dead worker does not keep the key, two runs end as one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tenure import State
from tests.system.apps import app, wait_here, zombie
from tests.system.conftest import Site

KEY = "report"


def enqueue_unique() -> tuple[str, bool]:
    stored = wait_here.options(unique_key=KEY).enqueue()
    return stored.id, stored.created


def test_b11_of_many_callers_at_once_one_stores_the_job(site: Site) -> None:
    callers = 50
    gate = threading.Barrier(callers)

    def call() -> tuple[str, bool]:
        gate.wait()
        return enqueue_unique()

    app.client.queues()
    with ThreadPoolExecutor(callers) as pool:
        answers = [future.result() for future in [pool.submit(call) for _ in range(callers)]]
    assert len({id_ for id_, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1
    [counts] = site.app.client.queues()
    assert counts.due == 1


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_b11_a_caller_that_rolls_back_leaves_the_key_to_the_one_that_waits(site: Site) -> None:
    app.client.queues()
    answers: list[tuple[str, bool]] = []
    opened = threading.Event()

    def enqueue_in_a_transaction() -> None:
        with psycopg.connect(site.store_url) as connection:
            opened.set()
            stored = wait_here.options(unique_key=KEY, connection=connection).enqueue()
            answers.append((stored.id, stored.created))

    rival = threading.Thread(target=enqueue_in_a_transaction)
    for last in (False, False, False, True):
        with psycopg.connect(site.store_url) as connection:
            assert wait_here.options(unique_key=KEY, connection=connection).enqueue().created
            if last:
                rival.start()
                opened.wait(60.0)
            connection.rollback()
    rival.join(60.0)
    [(stored, created)] = answers
    assert created
    assert site.app.client.get(stored).state is State.AVAILABLE
    [counts] = site.app.client.queues()
    assert counts.due == 1


def test_b11_a_killed_worker_does_not_keep_the_key(site: Site) -> None:
    job, _ = enqueue_unique()
    ada = site.worker("ada")
    site.wait_for_starts([job], worker="ada")
    ada.kill(group=True)
    assert enqueue_unique() == (job, False)
    site.let_lapse("ada")
    site.worker("bea")
    site.wait_for_starts([job], worker="bea", generation=2)
    site.journal.go("finish")
    site.wait_for_state([job], State.COMPLETED)
    again, created = enqueue_unique()
    assert created
    assert again != job
    site.wait_for_state([again], State.COMPLETED)


def test_b11_of_two_runs_one_is_accepted_and_the_key_is_free_once(site: Site) -> None:
    keyed = zombie.options(unique_key=KEY)
    job = keyed.enqueue(how="returns", when="done").id
    ada = site.worker("ada")
    site.wait_for_starts([job], worker="ada")
    site.pause(ada)
    site.worker("bea")
    site.wait_for_state([job], State.COMPLETED)
    following = keyed.options(delay=600.0).enqueue(how="returns", when="done")
    assert following.created
    site.journal.go("wake")
    ada.cont(group=True)
    site.wait(lambda: site.journal.count("renewed late", job=job), "the late run to have tried everything")
    assert keyed.enqueue(how="returns", when="done").id == following.id
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert record.result == '"generation 2"'
    site.app.client.cancel([following.id])
    assert keyed.enqueue(how="returns", when="done").created
