"""D1: an effect in the store's own database, in one transaction with the right to it, on real stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure import App, Job, JobRecord, LeaseLost, Retry, State, Unavailable
from tenure.hold import Lease, renewing
from tenure.protocol.events import Event, Kind
from tenure.protocol.job import Claimed, Claimer, Wanted
from tenure.protocol.lease import Token
from tenure.testing.servers import Postgres
from tests.support.processes import wait_for

SHORT = 1.0
PATIENCE = 30.0
"""Seconds that a request, or what a test waits for, may take on a busy machine."""


@dataclass
class Shop:
    """A store whose database also holds the table `entries`, the effects."""

    app: App
    connect: Callable[[], Any]
    connect_async: Callable[[], Any] | None = None

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Open a transaction of the caller's own."""
        with closing(self.connect()) as connection:
            if isinstance(connection, sqlite3.Connection):
                connection.execute("BEGIN IMMEDIATE")
            with connection:
                yield connection

    def write(self, connection: Any, text: str) -> None:
        mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
        connection.execute(f"INSERT INTO entries VALUES ({mark})", (text,))

    def entries(self) -> list[str]:
        with self.transaction() as connection:
            return [row[0] for row in connection.execute("SELECT text FROM entries").fetchall()]

    def claim(self, worker: str, timeout: float = PATIENCE) -> Job | None:
        """Claim the one job by hand, as a worker would."""
        claimer = Claimer(f"owner of {worker}", worker)
        driver = self.app.store.connect(timeout=timeout)
        rows: list[Claimed] = driver.do(self.app.store.verbs.claim, claimer, Wanted(("default",), ("work",), 1))
        if not rows:
            return None
        [row] = rows
        lease = Lease(Token(row.id, row.generation), claimer.owner, row.lease, 0.0, renew=renewing(self.app.client))
        lease._until = float("inf")  # this worker does not look at its clock
        return Job(row, lease, self.app)

    def run(self, job: str) -> JobRecord:
        """Run a worker until the job is over."""
        worker = self.app.worker(retention=None)
        worker.start()
        try:
            over = {State.COMPLETED, State.DISCARDED, State.CANCELLED}
            wait_for(lambda: self.app.client.get(job).state in over, PATIENCE, "the job to end")
        finally:
            worker.stop(grace=0)
        return self.app.client.get(job)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres.start() as started:
        yield started


def _sqlite(folder: Path) -> Shop:
    path = folder / "shop.db"
    shop = Shop(App(f"sqlite:///{path}"), lambda: sqlite3.connect(path, timeout=10, isolation_level=None))
    shop.app.store.migrate()
    return shop


def _postgres(url: str) -> Shop:
    shop = Shop(App(url), lambda: psycopg.connect(url), lambda: psycopg.AsyncConnection.connect(url))
    shop.app.store.migrate()
    return shop


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "sqlite":
        opened = _sqlite(tmp_path)
    else:
        opened = _postgres(request.getfixturevalue("server").create_database())
    with opened.transaction() as connection:
        connection.execute("CREATE TABLE entries (text TEXT NOT NULL)")

    @opened.app.task(lease=SHORT, name="work")
    def nothing() -> None:
        """Be claimed by hand."""

    yield opened
    opened.app.close()


def test_a_guarded_effect_and_the_completion_commit_together(shop: Shop) -> None:
    following: list[str] = []

    @shop.app.task
    def follow() -> None:
        """Come later."""

    @shop.app.task
    def charge(job: Job) -> str:
        with shop.transaction() as connection:
            job.guard(connection)
            shop.write(connection, "charged")
            following.append(follow.options(connection=connection, delay=3600).enqueue().id)
            job.complete(connection, "receipt 7")
        return "what is returned after that is not looked at"

    told: list[Event] = []
    shop.app.events.subscribe(told.append)
    record = shop.run(charge.enqueue().id)
    assert (record.state, record.result, record.attempts) == (State.COMPLETED, '"receipt 7"', 0)
    assert shop.entries() == ["charged"]
    assert shop.app.client.get(following[0]).state is State.AVAILABLE
    assert [event.kind for event in told if event.kind in {Kind.STALE_REFUSED, Kind.JOB_COMPLETED}] == [
        Kind.JOB_COMPLETED
    ]


@pytest.mark.parametrize(("late", "told"), [(ValueError("too late"), "ValueError at "), (Retry(after=5), "retry")])
def test_what_is_raised_after_the_completion_is_told_and_changes_nothing(
    shop: Shop, late: Exception, told: str
) -> None:
    @shop.app.task(max_attempts=1)
    def charge(job: Job) -> str:
        with closing(shop.connect()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE" if isinstance(connection, sqlite3.Connection) else "SELECT 1")
            job.complete(connection, "receipt 7")
        raise late

    events: list[Event] = []
    shop.app.events.subscribe(events.append)
    record = shop.run(charge.enqueue().id)
    assert (record.state, record.result, record.attempts) == (State.COMPLETED, '"receipt 7"', 0)
    [event] = [event for event in events if event.kind is Kind.RAISED_LATE]
    assert event.detail.startswith(told)


def test_a_completion_that_did_not_commit_is_a_failed_attempt(shop: Shop) -> None:
    @shop.app.task(max_attempts=1)
    def charge(job: Job) -> str:
        with closing(shop.connect()) as connection:
            connection.execute("BEGIN IMMEDIATE" if isinstance(connection, sqlite3.Connection) else "SELECT 1")
            job.guard(connection)
            shop.write(connection, "charged")
            job.complete(connection, "receipt 7")
            connection.rollback()
        return "done, it says"

    record = shop.run(charge.enqueue().id)
    assert (record.state, record.attempts, record.result) == (State.DISCARDED, 1, None)
    assert record.failure is not None
    assert record.failure.type == "NotCommitted"
    assert shop.entries() == []


def test_an_error_after_the_commit_does_not_undo_it(shop: Shop) -> None:
    @shop.app.task(max_attempts=1)
    def charge(job: Job) -> str:
        with shop.transaction() as connection:
            job.complete(connection, "receipt 7")
            shop.write(connection, "charged")
        raise ConnectionError("after the commit")

    record = shop.run(charge.enqueue().id)
    assert (record.state, record.result) == (State.COMPLETED, '"receipt 7"')
    assert shop.entries() == ["charged"]


def test_an_error_inside_undoes_both(shop: Shop) -> None:
    @shop.app.task(max_attempts=1)
    def charge(job: Job) -> str:
        with shop.transaction() as connection:
            shop.write(connection, "charged")
            job.complete(connection, "receipt 7")
            raise ConnectionError("inside")

    record = shop.run(charge.enqueue().id)
    assert (record.state, record.attempts) == (State.DISCARDED, 1)
    assert shop.entries() == []


def test_a_result_is_checked_by_the_tasks_signature(shop: Shop) -> None:
    @shop.app.task(max_attempts=1)
    def charge(job: Job) -> int:
        with shop.transaction() as connection:
            job.complete(connection, object())
        return 7

    assert shop.run(charge.enqueue().id).state is State.DISCARDED


def test_a_zombies_guard_refuses_and_its_effect_is_undone(shop: Shop) -> None:
    job = shop.app.tasks["work"].enqueue().id
    old = shop.claim("ada")
    assert old is not None
    wait_for(lambda: shop.claim("bob") is not None, PATIENCE, "the lease to end and bob to take over")
    with pytest.raises(LeaseLost, match="generation 2 took over"), shop.transaction() as connection:
        shop.write(connection, "late")
        old.guard(connection)
    with pytest.raises(LeaseLost), shop.transaction() as connection:
        shop.write(connection, "late")
        old.complete(connection)
    assert shop.entries() == []
    assert (shop.app.client.get(job).state, shop.app.client.get(job).generation) == (State.RUNNING, 2)


def test_without_the_guard_the_zombies_effect_stays(shop: Shop) -> None:
    shop.app.tasks["work"].enqueue()
    old = shop.claim("ada")
    assert old is not None
    wait_for(lambda: shop.claim("bob") is not None, PATIENCE, "the lease to end and bob to take over")
    with shop.transaction() as connection:
        shop.write(connection, "late")
    assert shop.entries() == ["late"]


def test_no_claim_slips_in_between_the_guard_and_the_commit(shop: Shop) -> None:
    """The lease ends while the guarded transaction is open: the job is taken over after the commit, not before."""
    job = shop.app.tasks["work"].enqueue().id
    held = shop.claim("ada")
    assert held is not None
    with shop.transaction() as connection:
        held.guard(connection)
        wait_for(lambda: (shop.app.client.get(job).lease_remaining or 1.0) <= 0.0, PATIENCE, "the lease to end")
        assert _nobody_claims(shop)
        shop.write(connection, "in time")
    assert shop.entries() == ["in time"]
    wait_for(lambda: shop.claim("bob") is not None, PATIENCE, "bob to take over")
    assert shop.app.client.get(job).generation == 2


def test_without_the_guard_a_claim_slips_in(shop: Shop) -> None:
    shop.app.tasks["work"].enqueue()
    held = shop.claim("ada")
    assert held is not None
    if shop.app.store.name.startswith("sqlite"):
        with closing(shop.connect()) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM entries").fetchone()
            wait_for(lambda: shop.claim("bob") is not None, PATIENCE, "bob to take over")
        return
    with shop.transaction() as connection:
        shop.write(connection, "late")
        wait_for(lambda: shop.claim("bob") is not None, PATIENCE, "bob to take over")
    assert shop.entries() == ["late"]


def test_a_guard_in_a_transaction_that_has_only_read_takes_the_lock(tmp_path: Path) -> None:
    shop = _sqlite(tmp_path)

    @shop.app.task(lease=SHORT, name="work")
    def nothing() -> None:
        """Be claimed by hand."""

    nothing.enqueue()
    held = shop.claim("ada")
    assert held is not None
    with closing(shop.connect()) as connection, closing(shop.connect()) as other:
        other.execute("PRAGMA busy_timeout = 100")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM tenure_jobs").fetchone()
        held.guard(connection)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        connection.rollback()
    shop.app.close()


def test_a_renewal_does_not_wait_for_a_guard(server: Postgres) -> None:
    """One handler's open transaction must not hold up the renewals of all others."""
    shop = _postgres(server.create_database())

    @shop.app.task(lease=60.0, name="work")
    def nothing() -> None:
        """Be claimed by hand."""

    jobs = [nothing.enqueue().id for _ in range(2)]
    first, second = shop.claim("ada"), shop.claim("ada")
    assert first is not None
    assert second is not None
    with shop.transaction() as connection:
        first.guard(connection)
        shop.app.client.renew(first.lease.owner, [first.token, second.token], 900.0)
    left = {job: shop.app.client.get(job).lease_remaining for job in jobs}
    assert (left[second.id] or 0) > 800
    assert (left[first.id] or 0) < 70
    shop.app.close()


def test_the_asynchronous_twins(server: Postgres) -> None:
    shop = _postgres(server.create_database())
    with shop.transaction() as connection:
        connection.execute("CREATE TABLE entries (text TEXT NOT NULL)")
    connect_async = shop.connect_async
    assert connect_async is not None

    @shop.app.task
    async def charge(job: Job) -> str:
        async with await connect_async() as connection:
            await job.guard_async(connection)
            await connection.execute("INSERT INTO entries VALUES ('charged')")
            await job.complete_async(connection, "receipt 7")
        return "not looked at"

    record = shop.run(charge.enqueue().id)
    assert (record.state, record.result) == (State.COMPLETED, '"receipt 7"')
    assert shop.entries() == ["charged"]
    shop.app.close()


def _nobody_claims(shop: Shop) -> bool:
    """Try to take the job over while somebody's transaction is open: PostgreSQL passes it by, SQLite waits for it."""
    if not shop.app.store.name.startswith("sqlite"):
        return shop.claim("bob") is None
    with pytest.raises(Unavailable, match="locked by another writer"):
        shop.claim("bob", timeout=0.3)
    return True


def test_a_transaction_that_is_left_open_holds_up_no_other_job(server: Postgres) -> None:
    """B34's kind: a handler returns and leaves its guard's transaction open; all others are settled all the same."""
    shop = _postgres(server.create_database())
    left_open: list[Any] = []

    @shop.app.task(lease=30.0)
    def careless(job: Job) -> None:
        connection = shop.connect()
        job.guard(connection)
        left_open.append(connection)

    @shop.app.task(lease=30.0)
    def tidy() -> None:
        """Be done."""

    stuck = careless.enqueue().id
    worker = shop.app.worker(retention=None, request_timeout=1.0)
    worker.start()
    try:
        wait_for(lambda: left_open, PATIENCE, "the careless handler to return")
        others = [one.id for one in tidy.enqueue_many([{} for _ in range(20)])]
        wait_for(
            lambda: all(shop.app.client.get(one).state is State.COMPLETED for one in others),
            PATIENCE,
            "the others to end",
        )
        assert shop.app.client.get(stuck).state is State.RUNNING
        left_open[0].rollback()
        wait_for(lambda: shop.app.client.get(stuck).state is State.COMPLETED, PATIENCE, "the careless job to end")
    finally:
        worker.stop(grace=0)
        left_open[0].close()
    shop.app.close()
