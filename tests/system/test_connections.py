"""The store goes away and comes back: workers live on without a restart, say truly how they are, and do nothing late.

What must happen within half a minute is told by the clocks of this host, and what health says at its bound by a clock
that stands still until the test moves it.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tenure import App, State
from tenure.clock import boot_clock
from tenure.protocol.events import Kind
from tenure.testing.proxy import Proxy
from tenure.testing.servers import Postgres
from tenure.worker.worker import Worker
from tests.support.processes import Processes
from tests.system import journal
from tests.system.apps import LEASE, app, quick, wait_here
from tests.system.conftest import Site
from tests.worker.bench import Clock, Told

WITHIN = 30.0
"""Seconds after the store's return within which jobs flow, and after the last round for which a worker is healthy."""


ON_POSTGRES = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


def assert_works_again(site: Site, returned_at: float, worker: str = "ada") -> None:
    """See that a job that is enqueued now is done in time by a worker that nobody restarted."""
    job = quick.enqueue().id
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert record.worker == worker
    assert boot_clock() - returned_at < WITHIN


def outages(site: Site) -> list[str]:
    """List what the workers said about the store, in order."""
    return [line["kind"] for line in site.journal.find("event") if line["kind"].startswith("store")]


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A server of the test's own, because it will be ended."""
    with Postgres.start("18") as started:
        yield started


@pytest.fixture
def own_site(
    own_server: Postgres, tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    site = Site(own_server.create_database(), tmp_path, processes)
    monkeypatch.setenv(journal.VARIABLE, str(site.journal.path))
    app.store.migrate()
    yield site
    app.close()


def test_b04_a_restarted_server_is_found_again(own_server: Postgres, own_site: Site) -> None:
    site = own_site
    worker = site.worker("ada")
    job = wait_here.enqueue().id
    site.wait_for_starts([job], worker="ada")
    own_server.stop("immediate")
    site.wait(lambda: "store unreachable" in outages(site), "the outage to be told")
    own_server.restart()
    returned_at = boot_clock()
    site.wait(lambda: "store reachable again" in outages(site), "the store's return to be told")
    assert_works_again(site, returned_at)
    site.journal.go("finish")
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert record.attempts == 0
    assert worker.running


def test_b04_a_server_that_turns_read_only_is_waited_for(own_server: Postgres, own_site: Site) -> None:
    site = own_site
    worker = site.worker("ada")
    with psycopg.connect(site.store_url, autocommit=True) as operator:
        operator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        operator.execute("SELECT pg_reload_conf()")
        site.wait(lambda: "store unreachable" in outages(site), "the outage to be told")
        operator.execute("SET default_transaction_read_only = off")
        operator.execute("ALTER SYSTEM RESET default_transaction_read_only")
        operator.execute("SELECT pg_reload_conf()")
        returned_at = boot_clock()
    assert_works_again(site, returned_at)
    assert worker.running


@pytest.fixture
def proxy(site: Site) -> Iterator[Proxy]:
    parts = urlsplit(site.store_url)
    with Proxy(parts.hostname or "", parts.port or 0) as opened:
        yield opened


def refuse_and_cut(proxy: Proxy) -> None:
    proxy.refuse()
    proxy.cut()


FAULTS: dict[str, tuple[Callable[[Proxy], None], Callable[[Proxy], None]]] = {
    "swallowed": (Proxy.hold, Proxy.release),
    "refused": (refuse_and_cut, Proxy.accept),
    "refused to new ones": (Proxy.refuse, Proxy.accept),
}
"""How to cut a worker off and how to let it in again; in the last one, other connections than the keeper's live on."""


@ON_POSTGRES
@pytest.mark.parametrize("fault", FAULTS)
def test_b04_a_worker_that_is_cut_off_claims_nothing_and_lives_on(site: Site, proxy: Proxy, fault: str) -> None:
    begin, end = FAULTS[fault]
    job = wait_here.enqueue().id
    ada = site.worker("ada", store=proxy.url_for(site.store_url))
    site.wait_for_starts([job], worker="ada")
    begin(proxy)
    cut_off_at, busy_before = boot_clock(), ada.processor_seconds()
    site.wait(lambda: site.journal.find("event", kind="lease lost", worker="ada"), "the belief to end by itself")
    bea = site.worker("bea")
    site.wait_for_starts([job], worker="bea", generation=2)
    site.wait(lambda: "store unreachable" in outages(site), "the outage to be told")
    busy = (ada.processor_seconds() - busy_before) / (boot_clock() - cut_off_at)
    assert busy < 0.2, f"the worker kept a processor busy for {busy:.0%} of the outage"
    end(proxy)
    returned_at = boot_clock()
    site.wait(lambda: "store reachable again" in outages(site), "the store's return to be told")
    bea.kill(group=True)
    assert_works_again(site, returned_at)
    site.wait_for_starts([job], worker="ada", generation=3)
    site.journal.go("finish")
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert (record.result, record.attempts) == ('"generation 3"', 0)
    assert site.starts(job) == [(1, "ada"), (2, "bea"), (3, "ada")]
    assert ada.running


@ON_POSTGRES
def test_b04_three_cuts_in_a_row_are_survived(site: Site, proxy: Proxy) -> None:
    job = wait_here.options(lease=2 * LEASE).enqueue().id  # a cut must not last as long, nor a machine stand still
    ada = site.worker("ada", store=proxy.url_for(site.store_url))
    site.wait_for_starts([job], worker="ada")
    for _ in range(3):
        proxy.cut()
        assert_works_again(site, boot_clock())
    site.journal.go("finish")
    site.wait_for_state([job], State.COMPLETED)
    assert site.starts(job) == [(1, "ada")]
    assert ada.running


@ON_SQLITE
def test_b04_a_file_that_somebody_else_locks_for_long_is_waited_for(site: Site, tmp_path: Path) -> None:
    job = wait_here.enqueue().id
    worker = site.worker("ada")
    site.wait_for_starts([job], worker="ada")
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        site.wait(lambda: site.journal.find("event", kind="lease lost", worker="ada"), "the belief to end by itself")
        site.wait(lambda: "store unreachable" in outages(site), "the outage to be told")
        other.execute("ROLLBACK")
        returned_at = boot_clock()
    site.wait_for_starts([job], worker="ada", generation=2)
    assert_works_again(site, returned_at)
    site.journal.go("finish")
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert record.result == '"generation 2"'
    assert worker.running


# -- health


def probe(site: Site) -> int:
    """Ask the health command, and return its exit status."""
    command = ("-m", "tenure", "workers", "--alive-within", f"{WITHIN:g}s", "--name", "ada")
    return site.processes.python(*command, environment=site.environment()).wait(60.0)


def pass_time(site: Site, clock: Clock, seconds: float, *, reported_ago: float) -> None:
    """Let time pass on the worker's clock, and on the store's since the last report; no matter what this has taken."""
    with psycopg.connect(site.store_url) as connection:
        ago = "clock_timestamp() - %s * interval '1 second'"
        connection.execute(f"UPDATE tenure_workers SET seen_at = {ago}", [reported_ago])
    clock.advance(seconds)


@ON_POSTGRES
def test_b04_health_tells_the_truth_at_its_bound(site: Site, proxy: Proxy) -> None:
    """A worker behind a network that swallows everything; its clock stands still, so that the bound is met exactly."""
    cut_off, clock, told = App(proxy.url_for(site.store_url)), Clock(), Told()
    cut_off.task(lease=LEASE)(nothing)
    cut_off.events.subscribe(told.events.append)
    worker = Worker(cut_off, clock=clock, name="ada", request_timeout=0.5)
    worker.start()
    site.wait(app.client.workers, "the first report")
    pass_time(site, clock, 2 * WITHIN, reported_ago=2 * WITHIN)
    worker._feeder.ring()  # as a bell does
    site.wait(lambda: probe(site) == 0, "a worker whose claim loop turns to be healthy, whatever the time")
    site.wait(worker.healthy, "the worker to know it too")

    proxy.hold()
    worker._feeder.ring()  # as a bell does
    site.wait(lambda: Kind.STORE_LOST in told.kinds, "the outage to be told")
    pass_time(site, clock, WITHIN / 2, reported_ago=WITHIN / 2)
    assert (worker.healthy(), probe(site)) == (True, 0)
    failures = worker._feeder._failures
    worker._feeder.ring()
    site.wait(lambda: worker._feeder._failures > failures, "another attempt to fail, which is no sign of health")
    pass_time(site, clock, WITHIN / 2 - 0.001, reported_ago=WITHIN - 0.001)
    assert worker.healthy()
    pass_time(site, clock, 0.001, reported_ago=WITHIN)
    assert (worker.healthy(), probe(site)) == (False, 1)

    proxy.release()
    returned_at = boot_clock()
    site.wait(lambda: Kind.STORE_BACK in told.kinds, "the store's return to be told")
    site.wait(lambda: probe(site) == 0, "the next report")
    assert worker.healthy()
    assert boot_clock() - returned_at < WITHIN
    worker.stop()
    cut_off.close()
    gc.collect()  # an attempt to connect that was broken off is psycopg's until then
    site.wait(lambda: proxy.connections == 0, "every connection to be closed")


def nothing() -> None:
    """Be a task, without which there is no worker."""
