"""Through a pooler that lends a server for one transaction (B15): a stand-in, and PgBouncer where it is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tenure.protocol.job import Claimer, Ending, NewJob, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.store.postgres import PostgresStore
from tenure.testing.proxy import free_port
from tenure.testing.servers import Postgres
from tests.postgres.conftest import TIMEOUT, claim, enqueue, wanted
from tests.support.pooler import TransactionPooler
from tests.support.processes import Processes, wait_for

Open = Callable[[str], PostgresStore]
POOLERS = ["stand-in", *(["pgbouncer"] if shutil.which("pgbouncer") else [])]


@pytest.fixture(params=POOLERS)
def pooled_url(request: pytest.FixtureRequest, url: str, server: Postgres, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "stand-in":
            yield stack.enter_context(TransactionPooler(url, 2)).url
        else:
            yield bouncer(stack.enter_context(Processes(tmp_path)), url, server.folder)


def bouncer(processes: Processes, url: str, folder: Path) -> str:
    """Start PgBouncer in transaction mode with two server connections; `folder` can be read by whoever it runs as."""
    parts, port = urlsplit(url), free_port()
    users, settings = folder / "pgbouncer.users", folder / "pgbouncer.ini"
    users.write_text(f'"{parts.username}" "{parts.password}"\n')
    settings.write_text(
        f"[databases]\n{parts.path[1:]} = host=127.0.0.1 port={parts.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = plain\nauth_file = {users}\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\nunix_socket_dir =\n"
    )
    become = ("-u", folder.owner()) if os.geteuid() == 0 else ()
    processes.start("pgbouncer", *become, settings)
    address = parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{port}").geturl()
    wait_for(lambda: reachable(address), 10.0, "PgBouncer")
    return address


def reachable(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_pooler_is_noticed(pooled_url: str, open_store: Open) -> None:
    store = open_store(pooled_url)
    store.check()
    assert store.pooled
    assert store.bell() is None


def test_many_workers_share_few_connections(pooled_url: str, open_store: Open) -> None:
    store = open_store(pooled_url)
    driver = store.connect(timeout=20.0)
    driver.do(store.verbs.enqueue, [NewJob(f"job {i:04}", "work") for i in range(200)])

    def work(number: int) -> list[str]:
        own, me, done = store.dedicated(timeout=20.0), Claimer(f"owner {number}", "w"), []
        endings: list[Ending] = []
        while True:
            turn = own.do(store.verbs.turn, me, endings, [wanted(7)])
            assert all(answer.verdict == "done" for answer in turn.answers)
            done += [ending.token.job for ending in endings]
            endings = [Ending(Token(one.id, one.generation), Verb.COMPLETE) for one in turn.claimed]
            kept = own.do(store.verbs.renew, me.owner, [ending.token for ending in endings])
            # A claim that began before ours was committed locks rows that it then leaves alone, until it ends.
            assert {answer.verdict for answer in kept} <= {Verdict.BUSY}
            if not endings:
                own.close()
                return done

    with ThreadPoolExecutor(8) as pool:
        done = [job for jobs in pool.map(work, range(8)) for job in jobs]
    assert sorted(done) == [f"job {i:04}" for i in range(200)]


def test_nothing_is_left_in_a_shared_session(pooled_url: str, open_store: Open) -> None:
    store = open_store(pooled_url)
    driver = store.connect(timeout=TIMEOUT)
    enqueue(store, driver, 2)
    claim(store, driver)
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as stranger:
        for _ in range(4):
            for setting, value in (("enable_seqscan", "on"), ("statement_timeout", "0"), ("jit", None)):
                row = stranger.execute(f"SHOW {setting}").fetchone()
                assert value is None or row == (value,)
            assert stranger.execute("SELECT FROM pg_prepared_statements").fetchall() == []


def test_a_role_whose_arrays_know_no_nulls_does_not_matter(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    open_store(url).migrate()
    with psycopg.connect(url) as connection:
        connection.execute(f'ALTER DATABASE "{url.rpartition("/")[2]}" SET array_nulls = off')
    with TransactionPooler(url, 2) as pooler:
        store = open_store(pooler.url)
        driver = store.connect(timeout=TIMEOUT)
        enqueue(store, driver)
        assert len(claim(store, driver)) == 1
        assert store.pooled
        driver.close()
        store.close()


def test_a_server_that_changed_behind_the_pooler_is_noticed(
    pooled_url: str, open_store: Open, sql: psycopg.Connection
) -> None:
    """Protocol R44: the connection to the pooler outlives a failover behind it."""
    store = open_store(pooled_url)
    driver = store.connect(timeout=TIMEOUT)
    enqueue(store, driver, 2)
    assert claim(store, driver, 1)[0].generation == 1
    with store._shared(TIMEOUT).connection() as connection:
        connection.identity = "the server before the failover"
    sql.execute("UPDATE tenure_store SET identity = 'the server before the failover'")
    assert claim(store, driver, 1)[0].generation > 1_000_000_000
