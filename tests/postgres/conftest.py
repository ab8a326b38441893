"""A real server for every test here, an empty database for each, and somebody else's connection to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib.util import find_spec

import psycopg
import pytest

from tenure.protocol.job import Claimed, Claimer, NewJob, Wanted
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tenure.testing.servers import RELEASES, Postgres

ADA = Claimer("owner of ada", "ada")
BOB = Claimer("owner of bob", "bob")
TIMEOUT = 20.0
INSTALLED = [release for release, package in RELEASES.items() if find_spec(package)]
"""Every release whose wheel is here; the older one has none for the newest Pythons."""

EMPTY = """
TRUNCATE tenure_jobs, tenure_history, tenure_steps, tenure_workers;
UPDATE tenure_store SET floor = 0, identity = NULL
"""


@pytest.fixture(scope="session", params=INSTALLED, ids=lambda release: f"postgres-{release}")
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def server(release: str) -> Iterator[Postgres]:
    # Its rounds come at any moment, and a snapshot of theirs keeps old versions of rows in their pages.
    with Postgres.start(release, settings={"autovacuum": "off"}) as started:
        yield started


@pytest.fixture(scope="session")
def migrated(server: Postgres) -> str:
    """Make a migrated database, which the tests of this folder share."""
    url = server.create_database()
    with closing(PostgresStore(url)) as store:
        store.migrate()
    return url


@pytest.fixture
def url(migrated: str) -> str:
    """Name a migrated database that is as new."""
    with psycopg.connect(migrated) as connection:
        connection.execute(EMPTY)
    return migrated


@pytest.fixture
def fresh(server: Postgres) -> Iterator[Callable[[], str]]:
    """Make databases of the test's own, which no migration has touched."""
    made: list[str] = []

    def make() -> str:
        made.append(server.create_database())
        return made[-1]

    yield make
    for url in made:
        server.run("psql", "-Xqc", f'DROP DATABASE "{url.rpartition("/")[2]}" WITH (FORCE)')


@pytest.fixture
def open_store() -> Iterator[Callable[[str], PostgresStore]]:
    """Open stores, and close them at the end."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(closing(PostgresStore(url)))


@pytest.fixture
def store(url: str, open_store: Callable[[str], PostgresStore]) -> PostgresStore:
    return open_store(url)


@pytest.fixture
def driver(store: PostgresStore) -> SyncDriver:
    return store.connect(timeout=TIMEOUT)


@pytest.fixture
def sql(url: str) -> Iterator[psycopg.Connection]:
    """Open somebody else's connection to the same database, in autocommit."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def wanted(limit: int = 10, *queues: str) -> Wanted:
    return Wanted(queues or ("default",), ("work",), limit)


def enqueue(store: PostgresStore, driver: SyncDriver, count: int = 1, **fields: object) -> list[str]:
    """Enqueue `count` jobs of the task `work` with ids in order."""
    jobs = [NewJob(**{"id": f"job {i:04}", "task": "work", **fields}) for i in range(count)]  # type: ignore[arg-type]
    return [stored.id for stored in driver.do(store.verbs.enqueue, jobs)]


def claim(store: PostgresStore, driver: SyncDriver, limit: int = 10, claimer: Claimer = ADA) -> list[Claimed]:
    return driver.do(store.verbs.claim, claimer, wanted(limit))
