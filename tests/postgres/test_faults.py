"""Servers that are away, frozen or cut off: nobody hangs, and every answer is one of three (R30, B07)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from urllib.parse import urlsplit

import psycopg
import pytest

from tenure.errors import BadSettings, OutcomeUnknown, Unavailable
from tenure.protocol.job import Ending, NewJob
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore, connect
from tenure.store.statements import Batch, Call
from tenure.testing.proxy import Proxy
from tenure.testing.servers import Postgres
from tests.postgres.conftest import ADA, TIMEOUT, claim, enqueue, wanted
from tests.support.postgres import wait_for_a_lock
from tests.support.processes import wait_for

Open = Callable[[str], PostgresStore]

SHORT = 1.0
BUSY = 30.0
"""Seconds that a busy machine may add to anything: no timeout of a test here is as long."""

JOBS = [NewJob("only", "work")]


@pytest.fixture
def proxy(server: Postgres) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", server.port) as started:
        yield started


@pytest.fixture
def far(url: str, proxy: Proxy, open_store: Open) -> PostgresStore:
    """Open the store through the proxy."""
    return open_store(proxy.url_for(url))


@contextmanager
def frozen_backends(sql: psycopg.Connection) -> Iterator[None]:
    """Stop every backend of this database but our own, as a frozen server would stand still."""
    rows = sql.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    ).fetchall()
    assert rows
    for (pid,) in rows:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for (pid,) in rows:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def taking(least: float) -> Iterator[None]:
    """See that something takes as long as its timeout says; what would not end by itself takes far longer than that."""
    begun = time.monotonic()
    yield
    assert least <= time.monotonic() - begun <= least + BUSY


def test_a_frozen_server_holds_nobody(store: PostgresStore, sql: psycopg.Connection) -> None:
    driver = store.connect(timeout=SHORT)
    driver.do(store.verbs.queues)
    with (
        frozen_backends(sql),
        taking(SHORT),
        pytest.raises(OutcomeUnknown, match="did not answer in time"),
    ):
        driver.do(store.verbs.enqueue, JOBS)
    assert driver.do(store.verbs.enqueue, [NewJob("next", "work")])[0].created


def test_a_frozen_server_that_was_only_asked_is_unavailable(store: PostgresStore, sql: psycopg.Connection) -> None:
    driver = store.connect(timeout=SHORT)
    driver.do(store.verbs.queues)
    with frozen_backends(sql), taking(SHORT), pytest.raises(Unavailable, match="did not answer in time"):
        driver.do(store.verbs.queues)


def test_a_frozen_server_does_not_block_the_event_loop(store: PostgresStore, sql: psycopg.Connection) -> None:
    async def main() -> None:
        driver = store.aconnect(timeout=BUSY)
        await driver.do(store.verbs.queues)
        with frozen_backends(sql):
            asked = asyncio.create_task(driver.do(store.verbs.enqueue, JOBS))
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert not asked.done()
        assert (await asked)[0].created
        await driver.close()

    asyncio.run(main())


def test_a_frozen_server_holds_no_task(store: PostgresStore, sql: psycopg.Connection) -> None:
    async def main() -> None:
        driver = store.aconnect(timeout=SHORT)
        await driver.do(store.verbs.queues)
        with frozen_backends(sql), taking(SHORT), pytest.raises(OutcomeUnknown):
            await driver.do(store.verbs.enqueue, JOBS)
        await driver.close()

    asyncio.run(main())


def test_swallowed_packets_hold_nobody(far: PostgresStore, proxy: Proxy) -> None:
    driver = far.connect(timeout=2.0)
    driver.do(far.verbs.queues)
    proxy.hold()
    with taking(1.9), pytest.raises(OutcomeUnknown):
        driver.do(far.verbs.enqueue, JOBS)
    with taking(1.9), pytest.raises(Unavailable, match="cannot be reached"):
        driver.do(far.verbs.enqueue, JOBS)
    proxy.release()


def test_a_lost_answer_is_unknown_and_repeating_makes_one_job(far: PostgresStore, proxy: Proxy) -> None:
    driver = far.connect(timeout=TIMEOUT)
    driver.do(far.verbs.enqueue, [NewJob("prepares the statement", "work", queue="other")])
    proxy.drop_reply()
    with pytest.raises(OutcomeUnknown, match="made whole or not at all"):
        driver.do(far.verbs.enqueue, JOBS)
    assert not driver.do(far.verbs.enqueue, JOBS)[0].created
    assert [queue.due for queue in driver.do(far.verbs.queues)] == [1, 1]


def test_a_driver_that_may_repeat_hides_a_lost_answer(far: PostgresStore, proxy: Proxy) -> None:
    driver = far.connect(timeout=TIMEOUT, repeat_unknown=True)
    driver.do(far.verbs.queues)
    proxy.drop_reply()
    assert driver.do(far.verbs.enqueue, JOBS)[0].id == "only"
    assert proxy.counts.replies_dropped == 1
    assert [queue.due for queue in driver.do(far.verbs.queues)] == [1]


@pytest.mark.parametrize("count", [0, 1, 40, 200])
def test_a_cut_request_happens_whole_or_not_at_all(
    far: PostgresStore, proxy: Proxy, store: PostgresStore, count: int
) -> None:
    driver = far.connect(timeout=TIMEOUT)
    driver.do(far.verbs.queues)
    proxy.cut_after(count, "server")
    jobs = [NewJob(f"job {i}", "work") for i in range(3)]
    with pytest.raises(OutcomeUnknown):
        driver.do(far.verbs.enqueue, jobs)
    near = store.connect(timeout=TIMEOUT)
    assert sum(queue.due for queue in near.do(store.verbs.queues)) in {0, 3}


def test_what_follows_a_committed_change_is_unknown_when_it_fails(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection
) -> None:
    """A settle that is partly stale asks why; if that fails, the settled part must not be reported as not done."""
    enqueue(store, driver)
    [held] = claim(store, driver)
    endings = [Ending(Token(held.id, 1), Verb.COMPLETE), Ending(Token("gone", 1), Verb.COMPLETE)]
    with store.session() as execute:
        settle = next(store.verbs.settle(ADA.owner, endings))
        assert len(execute(settle)[0]) == 1
        sql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid()")  # fmt: skip
        with pytest.raises(OutcomeUnknown, match="the change was made"):
            execute(Batch((Call("explain", {}, ("job",), [("gone",)]),)))
    assert driver.do(store.verbs.get, held.id).state is State.COMPLETED


SPOIL = """
CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'spoiled' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER spoil BEFORE UPDATE ON tenure_jobs FOR EACH ROW WHEN (NEW.state = 'running') EXECUTE FUNCTION spoil();
"""


def test_a_turn_that_fails_in_its_second_half_undoes_the_first(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection
) -> None:
    """The error is that of a full disk (R45)."""
    enqueue(store, driver, 2)
    [held] = claim(store, driver, 1)
    endings = [Ending(Token(held.id, 1), Verb.COMPLETE)]
    sql.execute(SPOIL)
    try:
        with pytest.raises(Unavailable, match="spoiled; nothing was done"):
            driver.do(store.verbs.turn, ADA, endings, [wanted()])
    finally:
        sql.execute("DROP FUNCTION spoil CASCADE")
    assert driver.do(store.verbs.get, held.id).state is State.RUNNING
    assert len(driver.do(store.verbs.turn, ADA, endings, [wanted()]).claimed) == 1


def test_connections_that_died_unnoticed_are_replaced(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection
) -> None:
    driver.do(store.verbs.queues)
    gone = sql.execute(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid()"
    ).fetchone()
    assert gone is not None
    assert gone[0] >= 1
    assert driver.do(store.verbs.enqueue, JOBS)[0].created


def test_an_end_of_the_server_in_the_middle_is_unknown(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection, url: str
) -> None:
    enqueue(store, driver)
    [held] = claim(store, driver)
    raised: list[BaseException] = []

    def settle() -> None:
        try:
            driver.do(store.verbs.settle, ADA.owner, [Ending(Token(held.id, 1), Verb.COMPLETE)])
        except OutcomeUnknown as error:
            raised.append(error)

    with psycopg.connect(url) as blocker:
        blocker.execute("SELECT FROM tenure_jobs FOR UPDATE")
        thread = Thread(target=settle)
        thread.start()
        sql.execute("SELECT pg_terminate_backend(%s)", [wait_for_a_lock(url)])
        thread.join(BUSY)
    assert [type(error) for error in raised] == [OutcomeUnknown]


def test_a_lock_that_is_not_let_go_is_told_in_time(
    store: PostgresStore, driver: SyncDriver, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_GRACE", BUSY)  # it is the server that tells, however late its answer comes
    enqueue(store, driver)
    [held] = claim(store, driver)
    short = store.connect(timeout=SHORT)
    with psycopg.connect(url) as blocker:
        blocker.execute("SELECT FROM tenure_jobs FOR UPDATE")
        with (
            taking(SHORT - 0.1),
            pytest.raises(Unavailable, match="longer than its timeout; nothing was done"),
        ):
            short.do(store.verbs.settle, ADA.owner, [Ending(Token(held.id, 1), Verb.COMPLETE)])
    assert driver.do(store.verbs.get, held.id).state is State.RUNNING


def test_a_commit_whose_standby_did_not_confirm_is_unknown(
    server: Postgres, store: PostgresStore, sql: psycopg.Connection
) -> None:
    """Protocol R29: the server reports success with a mere warning."""
    driver = store.connect(timeout=TIMEOUT)
    driver.do(store.verbs.queues)
    server.run("psql", "-Xqc", "ALTER SYSTEM SET synchronous_standby_names = 'missing'")
    server.run("psql", "-Xqc", "SELECT pg_reload_conf()")
    raised: list[BaseException] = []

    def store_job() -> None:
        try:
            driver.do(store.verbs.enqueue, JOBS)
        except OutcomeUnknown as error:
            raised.append(error)

    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()"
    try:
        wait_for(lambda: sql.execute("SHOW synchronous_standby_names").fetchone() == ("missing",), BUSY, "the setting")
        thread = Thread(target=store_job)
        thread.start()
        pid = wait_for(lambda: sql.execute(waiting).fetchone(), BUSY, "the commit to wait for the standby")
        sql.execute("SELECT pg_cancel_backend(%s)", pid)
        thread.join(BUSY)
    finally:
        server.run("psql", "-Xqc", "ALTER SYSTEM RESET synchronous_standby_names")
        server.run("psql", "-Xqc", "SELECT pg_reload_conf()")
    assert [type(error) for error in raised] == [OutcomeUnknown]
    assert "synchronous standby" in str(raised[0])


def test_a_cancelled_task_gives_its_connection_up(store: PostgresStore, url: str) -> None:
    async def main() -> None:
        driver = store.aconnect(timeout=2 * BUSY)
        await driver.do(store.verbs.enqueue, JOBS)
        [held] = await driver.do(store.verbs.claim, ADA, wanted())
        with psycopg.connect(url) as blocker:
            blocker.execute("SELECT FROM tenure_jobs FOR UPDATE")
            ending = [Ending(Token(held.id, 1), Verb.COMPLETE)]
            with taking(0.2), pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await driver.do(store.verbs.settle, ADA.owner, ending)
        assert (await driver.do(store.verbs.get, held.id)).id == "only"
        await driver.close()

    asyncio.run(main())


SECRETS = ["xyzz%79-7", "xyz%40z%2Fy", "x%zzyxyzzy"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "form", ["postgresql://u:{}@127.0.0.1:{}/db", "postgresql://127.0.0.1:{1}/db?user=u&password={0}"]
)
def test_the_password_is_never_shown(server: Postgres, secret: str, form: str) -> None:
    address = form.format(secret, server.port)
    with pytest.raises((Unavailable, BadSettings)) as caught:
        PostgresStore(address).check()
    told = "".join(traceback.format_exception(caught.value))
    for part in ("xyz", "x%zz", "z/y"):
        assert part not in told


def test_who_cannot_connect_is_told_where(server: Postgres, url: str, open_store: Open) -> None:
    port = server.port
    parts = urlsplit(url)
    for address, says in (
        (f"postgresql://tenure:wrong@127.0.0.1:{port}{parts.path}", "password authentication failed"),
        (f"postgresql://tenure:{parts.password}@127.0.0.1:{port}/nowhere", 'database "nowhere" does not exist'),
        (f"postgresql://tenure:x@127.0.0.1:1{parts.path}", "127.0.0.1:1/"),
    ):
        with taking(0.0), pytest.raises(Unavailable, match=says):
            open_store(address).connect(timeout=2 * BUSY).do(PostgresStore(address).verbs.queues)


def test_more_callers_than_connections_wait_their_turn(store: PostgresStore, driver: SyncDriver) -> None:
    driver.do(store.verbs.queues)
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(5):
                driver.do(store.verbs.queues)
        except BaseException as error:  # noqa: BLE001 -- the thread's error is the test's
            raised.append(error)

    threads = [Thread(target=ask) for _ in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []
    assert len(store._shared(TIMEOUT)._pool.idle) <= 10


def test_a_server_that_turns_read_only_is_unavailable(store: PostgresStore, driver: SyncDriver) -> None:
    driver.do(store.verbs.queues)
    with store._shared(TIMEOUT).connection() as connection:
        connection.begin()
        connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(Unavailable, match="read-only transaction; nothing was done"):
        driver.do(store.verbs.enqueue, JOBS)
    assert driver.do(store.verbs.enqueue, JOBS)[0].created
