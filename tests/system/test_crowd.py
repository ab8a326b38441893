"""A crowd at one store: eight workers with readers, writers, backups, clean-ups, bulk actions; nobody sees a lock."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from tenure import State
from tenure.clock import boot_clock
from tests.support.processes import Child
from tests.system.apps import app, count_in
from tests.system.conftest import Site

WORKERS = 8


def start_one(site: Site, number: int) -> Child:
    """Start a worker with the one task whose lease is long, and thus with patience for long waits."""
    settings: dict[str, Any] = {"threads": 4, "beat": None, "request_timeout": 10.0}
    return site.start_worker(f"worker {number}", environment={"ONLY": count_in.name}, **settings)


def start_crowd(site: Site, count: int = WORKERS) -> list[Child]:
    """Start the workers and return when they work."""
    crowd = [start_one(site, number) for number in range(count)]
    site.wait(lambda: all(site.is_up(child) for child in crowd), f"{count} workers to start")
    return crowd


DISTURBED = {"store unreachable", "job taken over", "job failed", "job discarded"}
TAKEN_AWAY = {"stale write refused", "lease lost"}
"""What a worker is told when an operator cancels what it runs, and otherwise never here."""


def assert_undisturbed(site: Site, crowd: list[Child], bad: set[str]) -> None:
    """See that no worker stopped, and that none was told of a lock or of anything `bad`."""
    for child in crowd:
        assert child.running
        said = child.stderr.read_text()
        assert "Traceback" not in said
        assert "locked" not in said
    assert [line for line in site.journal.find("event") if line["kind"] in bad] == []


@contextmanager
def beside(*actions: Callable[[], bool | None]) -> Iterator[list[Exception]]:
    """Repeat each action in a thread of its own until it says False or the block ends; what they raise is kept."""
    stop, raised = threading.Event(), list[Exception]()

    def repeat(action: Callable[[], bool | None]) -> None:
        try:
            while not stop.is_set() and action() is not False:
                pass
        except Exception as error:  # noqa: BLE001 -- whatever it is, the test shows it
            raised.append(error)

    threads = [threading.Thread(target=repeat, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    try:
        yield raised
    finally:
        stop.set()
        for thread in threads:
            thread.join(60.0)


# -- one file


def write_for_long(site: Site, path: Path) -> Child:
    """Be an application that writes for three seconds; return a worker that started in them."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60.0)) as writer:
        writer.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO orders VALUES (1)")
        began, before = boot_clock(), app.client.queues()
        worker = start_one(site, WORKERS)
        site.wait(lambda: boot_clock() > began + 3.0, "three seconds to pass")
        assert app.client.queues() == before, "nobody else can write meanwhile"
        writer.execute("COMMIT")
    site.wait(lambda: site.is_up(worker), "the last worker to start")
    return worker


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_b09_nobody_sees_a_lock_on_a_file_that_a_crowd_shares(site: Site, tmp_path: Path) -> None:
    """Meanwhile a reader keeps a cursor open, backups are made, jobs come, and an application writes for long."""
    path = tmp_path / "jobs.db"
    app.client.queues()
    crowd = start_crowd(site, WORKERS - 1)
    stored = deque(one.id for one in count_in.enqueue_many({"number": number} for number in range(1900)))
    later = iter(range(1900, 2000))

    def enqueue_one() -> bool:
        number = next(later, None)
        if number is not None:
            stored.append(count_in.enqueue(number).id)
        return number is not None

    def back_up() -> None:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
            source.backup(backup)

    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        cursor = reader.execute("SELECT id FROM tenure_jobs")
        cursor.fetchone()
        site.wait(lambda: site.journal.count("start") >= 50, "work to be under way")
        with beside(enqueue_one, back_up) as raised:
            crowd.append(write_for_long(site, path))
            site.wait(lambda: raised or len(stored) == 2000, "every job to be stored")
        assert raised == []
        records = site.wait_for_state(list(stored), State.COMPLETED)
        cursor.close()
    assert Counter(line["job"] for line in site.journal.find("start")) == dict.fromkeys(stored, 1)
    assert sorted(int(record.result or "-1") for record in records) == list(range(2000))
    assert_undisturbed(site, crowd, DISTURBED | TAKEN_AWAY)
    back_up()
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        assert backup.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert backup.execute("SELECT count(*) FROM tenure_jobs WHERE state = 'completed'").fetchone() == (2000,)


# -- bulk actions

LONG = 1.5
"""Seconds for which everybody is at it."""


class Bulk:
    """What goes on beside the workers: one who plans jobs, and those who cancel, retry and remove them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._targets: deque[str] = deque(maxlen=300)
        self.planned: list[str] = []
        self.untouched: list[str] = []
        self.cancelled: set[str] = set()

    def plan(self) -> None:
        """Plan jobs in a transaction of one's own; every third is nobody's target."""
        with self._site.connected() as connection:
            stored = count_in.options(connection=connection, delay=0.1).enqueue_many([{"number": 1}] * 30)
            connection.commit()
        for number, one in enumerate(stored):
            (self._targets if number % 3 else self.untouched).append(one.id)
        self.planned.extend(one.id for one in stored)

    def cancel(self) -> None:
        """Cancel the targets."""
        self.cancelled.update(one.id for one in app.client.cancel(list(self._targets)) if one.moved)

    def retry(self) -> None:
        """Bring the targets back, named in the opposite order."""
        app.client.retry(list(self._targets)[::-1])

    def clean_up(self) -> None:
        """Walk over all jobs and remove those that ended half a second ago."""
        cursor = app.client.prune(0.5, limit=100).cursor
        while cursor is not None:
            cursor = app.client.prune(0.5, limit=100, after=cursor).cursor


@pytest.mark.parametrize(
    ("store_url", "isolation"),
    [("sqlite", ""), *(("postgres", level) for level in ("read committed", "repeatable read", "serializable"))],
    indirect=["store_url"],
)
def test_b34_a_crowd_with_clean_ups_and_bulk_actions_does_not_deadlock(
    site: Site, isolation: str, request: pytest.FixtureRequest
) -> None:
    """Eight workers, four clean-ups, and cancels and retries of the same ids in opposite orders."""
    read_log = follow_log(site, isolation, request) if isolation else str
    app.client.queues()
    crowd = start_crowd(site)
    bulk = Bulk(site)
    with beside(bulk.plan, bulk.cancel, bulk.retry, *[bulk.clean_up] * 4) as raised:
        began = boot_clock()
        site.wait(lambda: raised or boot_clock() > began + LONG, "everybody to be at it for a while")
    assert raised == []
    site.wait(lambda: not any(one.due + one.scheduled + one.running for one in app.client.queues()), "all jobs to end")

    assert_undisturbed(site, crowd, DISTURBED)
    starts = Counter(line["job"] for line in site.journal.find("start"))
    assert {job: starts[job] for job in bulk.untouched} == dict.fromkeys(bulk.untouched, 1)
    assert set(bulk.planned) - starts.keys() <= bulk.cancelled
    assert set(Counter((line["job"], line["generation"]) for line in site.journal.find("start")).values()) == {1}
    assert "deadlock" not in read_log()
    assert "could not serialize" not in read_log()


def follow_log(site: Site, isolation: str, request: pytest.FixtureRequest) -> Callable[[], str]:
    """Let every new session of the site's database have this default, and read what the server says from now on."""
    log: Path = request.getfixturevalue("server").log
    before = log.read_text()
    with site.connected() as connection:
        connection.autocommit = True
        change = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}")
        connection.execute(change.format(sql.Identifier(connection.info.dbname), sql.Literal(isolation)))
    with site.connected() as connection:
        assert connection.execute("SHOW transaction_isolation").fetchone() == (isolation,)
    return lambda: log.read_text().removeprefix(before)
