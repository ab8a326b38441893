"""The stores of this package on the conformance suite's bench: every store, in every mode."""

import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from tenure.store.memory import MemoryStore
from tenure.store.postgres import PostgresStore
from tenure.store.sqlite.clocks import Clocks
from tenure.store.sqlite.store import SqliteStore
from tenure.testing.conformance import JOINED, OWN, Bench, Mode, Subject, bench_fixture, open_bench
from tenure.testing.servers import Postgres

TIMEOUT = 20.0
AS_NEW = """
TRUNCATE tenure_jobs, tenure_history, tenure_steps, tenure_workers;
UPDATE tenure_store SET floor = 0, identity = NULL
"""


@contextmanager
def memory(_request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield _memory(MemoryStore())


@contextmanager
def still_memory(_request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield _memory(MemoryStore(clock=lambda: 1000.0, wall=lambda: datetime(2030, 1, 1, tzinfo=UTC)))


@contextmanager
def sqlite(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with closing(SqliteStore(str(request.getfixturevalue("quick_folder") / "jobs.db"))) as store:
        yield _sqlite(store)


@contextmanager
def still_sqlite(request: pytest.FixtureRequest) -> Iterator[Subject]:
    clocks = Clocks(wall=lambda: 1_900_000_000.0, boot=lambda: 1000.0)
    with closing(SqliteStore(str(request.getfixturevalue("quick_folder") / "jobs.db"), clocks=clocks)) as store:
        yield _sqlite(store)


@contextmanager
def postgres(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Lend the session's store, emptied; connections that belong to a test's event loop end with the test."""
    store, callers = request.getfixturevalue("postgres_store"), request.getfixturevalue("postgres_callers")
    with callers.transaction() as connection:
        connection.execute(AS_NEW)
    store._lender.shift_ms = 0
    yield _postgres(store, callers)
    for sessions in store._async_sessions.values():
        sessions.close()
    callers.forget_loop()


def _memory(store: MemoryStore) -> Subject:
    return Subject(
        store,
        session=store.session(TIMEOUT),
        asession=store.asession(TIMEOUT),
        transaction=store.transaction,
        atransaction=store.atransaction,
        set_floor=store.set_floor,
    )


def _sqlite(store: SqliteStore) -> Subject:
    @contextmanager
    def transaction() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(store.path, isolation_level=None, timeout=TIMEOUT)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @asynccontextmanager
    async def atransaction() -> AsyncIterator[sqlite3.Connection]:
        with transaction() as connection:
            yield connection

    def set_floor(floor: int) -> None:
        with transaction() as connection:
            connection.execute("UPDATE tenure_store SET floor = ?", (floor,))

    store.migrate()
    return Subject(
        store,
        session=store.session,
        asession=None,  # its asynchronous driver runs whole verbs in a thread
        transaction=transaction,
        atransaction=atransaction,
        set_floor=set_floor,
    )


class Callers:
    """Connections of the application's own, kept for the next test: making one costs more than most tests."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[psycopg.Connection] = []
        self._idle_async: list[psycopg.AsyncConnection] = []

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        connection = self._idle.pop() if self._idle else psycopg.connect(self._url)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        connection.commit()
        self._idle.append(connection)

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[psycopg.AsyncConnection]:
        kept = self._idle_async
        connection = kept.pop() if kept else await psycopg.AsyncConnection.connect(self._url)
        try:
            yield connection
        except BaseException:
            await connection.close()
            raise
        await connection.commit()
        kept.append(connection)

    def forget_loop(self) -> None:
        """Close what belongs to an event loop that is over."""
        while self._idle_async:
            connection = self._idle_async.pop()
            connection.pgconn.finish()  # while it is still referred to: it warns when it goes unclosed

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


def _postgres(store: PostgresStore, callers: Callers) -> Subject:
    def set_floor(floor: int) -> None:
        with callers.transaction() as connection:
            connection.execute("UPDATE tenure_store SET floor = %s", (floor,))

    return Subject(
        store,
        session=store._shared(TIMEOUT).session,
        asession=store._ashared(TIMEOUT).session,
        transaction=callers.transaction,
        atransaction=callers.atransaction,
        set_floor=set_floor,
        one_transaction=False,
    )


Opened = Callable[[pytest.FixtureRequest], AbstractContextManager[Subject]]

STORES: dict[str, Opened] = {"memory": memory, "sqlite": sqlite, "postgres": postgres}
STILL: dict[str, Opened] = {"memory": still_memory, "sqlite": still_sqlite}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a server with one migrated database, which is emptied before each test."""
    with _quick_folder() as folder, Postgres.start("18", folder=folder) as server:
        url = server.create_database()
        with closing(PostgresStore(url)) as store:
            store.migrate()
        yield url


@pytest.fixture(scope="session")
def postgres_store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres_url)) as store:
        yield store


@pytest.fixture(scope="session")
def postgres_callers(postgres_url: str) -> Iterator[Callers]:
    with closing(Callers(postgres_url)) as callers:
        yield callers


@contextmanager
def _quick_folder() -> Iterator[Path | None]:
    """Lend a folder in memory where the system has one: what a sync costs is not what this suite asks about."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tenure-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    with _quick_folder() as folder:
        yield folder or tmp_path


@pytest.fixture(params=STORES)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with STORES[request.param](request) as opened:
        yield opened


@pytest.fixture(params=STILL)
def still_subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with STILL[request.param](request) as opened:
        yield opened


@pytest.fixture(params=Mode, ids=str)
def still_bench(still_subject: Subject, request: pytest.FixtureRequest) -> Iterator[Bench]:
    with open_bench(still_subject, request.param) as opened:
        yield opened


bench = bench_fixture(*Mode)
own_bench = bench_fixture(*OWN)
caller_bench = bench_fixture(*JOINED)
crowd_bench = bench_fixture(*Mode)
