"""A fork in a process with open connections: each process uses its own (B22)."""

from __future__ import annotations

import asyncio
import os
import traceback
from contextlib import closing

import pytest

from tenure.protocol.job import Claimer, NewJob
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.connect import AsyncConnection
from tests.postgres.conftest import wanted

CHILDREN, JOBS = 4, 25


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_children_and_parent_use_connections_of_their_own(store: PostgresStore, driver: SyncDriver) -> None:
    driver.do(store.verbs.enqueue, [NewJob("parent first", "work")])
    children = []
    for number in range(CHILDREN):
        pid = os.fork()
        if pid == 0:
            _child(store, driver, number)
        children.append(pid)
    for i in range(JOBS):
        driver.do(store.verbs.enqueue, [NewJob(f"parent {i}", "other")])
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * CHILDREN
    [default] = driver.do(store.verbs.queues)
    assert default.due + default.running == 1 + JOBS + CHILDREN * JOBS
    assert default.running == CHILDREN * JOBS


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_does_not_hang_up_for_the_connections_of_an_event_loop(store: PostgresStore) -> None:
    driver = store.aconnect(timeout=5.0)

    async def ask() -> AsyncConnection:
        await driver.do(store.verbs.queues)
        [idle] = next(iter(store._async_sessions.values()))._shelf().idle
        return idle

    with asyncio.Runner() as runner:
        before = runner.run(ask())
        pid = os.fork()
        if pid == 0:
            store.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert runner.run(ask()) is before
        runner.run(driver.close())


def _child(store: PostgresStore, driver: SyncDriver, number: int) -> None:
    try:
        me = Claimer(f"owner {number}", "child")
        for i in range(JOBS):
            driver.do(store.verbs.enqueue, [NewJob(f"child {number} {i}", "work")])
        for _ in range(JOBS):
            assert len(driver.do(store.verbs.claim, me, wanted(1))) == 1
        with closing(store.dedicated(timeout=5.0)) as own:
            assert len(own.do(store.verbs.held, me.owner)) == JOBS
        store.close()
        os._exit(0)
    except BaseException:  # noqa: BLE001 -- a child of a test must not go on as the test
        traceback.print_exc()
    finally:
        os._exit(1)
