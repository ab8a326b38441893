"""Real processes on every store: `site` starts workers and shows what became of the jobs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import tenure
from tenure import App, Filter, JobRecord, State, Unavailable
from tenure.store.postgres import PostgresStore
from tenure.testing.servers import Postgres
from tests.postgres.conftest import EMPTY
from tests.support.machine import Machine
from tests.support.processes import Child, Processes, wait_for
from tests.system import journal
from tests.system.apps import app as program
from tests.system.journal import Journal

PATIENCE = 60.0
"""Seconds to wait for what must happen; only what is late by fault takes as long."""

ROOT = Path(__file__).parents[2]
SOURCE = Path(tenure.__file__).parents[1]


class Site:
    """One store, one journal, and any number of workers in processes of their own."""

    def __init__(self, store_url: str, folder: Path, processes: Processes) -> None:
        self.store_url = store_url
        self.journal = Journal(folder)
        self.processes = processes
        self.app = program
        self.app.use_store(store_url)

    def environment(self, **more: str) -> dict[str, str]:
        """What a process of this site needs to know."""
        return {
            "PYTHONPATH": f"{SOURCE}:{ROOT}",
            "TENURE_STORE": self.store_url,
            journal.VARIABLE: str(self.journal.path),
            **more,
        }

    def worker(
        self, name: str, *, store: str | None = None, environment: dict[str, str] | None = None, **settings: Any
    ) -> Child:
        """Start a worker and return when it works; `store` is another way to the same store."""
        child = self.start_worker(name, store=store, environment=environment, **settings)
        self.wait(lambda: self.is_up(child), f"worker {name} to start")
        return child

    def start_worker(
        self, name: str, *, store: str | None = None, environment: dict[str, str] | None = None, **settings: Any
    ) -> Child:
        """Start a worker."""
        given = {journal.WORKER: name, **(environment or {})}
        if store is not None:
            given["TENURE_STORE"] = store
        defaults = {"threads": 16, "processes": 2, "grace": 5.0, "patience": 0.5, "beat": 0.5}
        return self.processes.python(
            "-m",
            "tests.system.worker",
            name,
            json.dumps({**defaults, **settings}),
            environment=self.environment(**given),
        )

    def pause(self, child: Child) -> None:
        """Stop a worker, and not in the middle of a transaction: SQLite has one writer, and all others would wait."""

        def stands_still() -> bool:
            child.stop(group=True)
            try:
                self.app.store.connect(timeout=0.2).do(self.app.store.verbs.forget, "nobody")
            except Unavailable:
                child.cont(group=True)
                return False
            return True

        self.wait(stands_still, f"process {child.pid} to stand still outside a transaction")

    def is_up(self, child: Child) -> bool:
        """Whether a worker has said that it started; fails when it has ended instead."""
        assert child.running, child.stderr.read_text()[-3000:]
        return bool(self.journal.find("event", kind="worker started", pid=child.pid))

    def wait(self, predicate: Callable[[], Any], what: str) -> Any:
        """Wait for what must happen."""
        return wait_for(predicate, PATIENCE, what)

    def wait_for_starts(self, jobs: list[str], **fields: Any) -> dict[str, dict[str, Any]]:
        """Wait until each of these jobs has a start with these fields, and return them by job."""

        def found() -> dict[str, dict[str, Any]]:
            return {line["job"]: line for line in self.journal.find("start", **fields) if line["job"] in jobs}

        self.wait(lambda: len(found()) == len(jobs), f"{len(jobs)} starts with {fields}")
        return found()

    def wait_for_state(self, jobs: list[str], state: State) -> list[JobRecord]:
        """Wait until all these jobs are in a state, and show them."""
        those = Filter(ids=tuple(jobs), state=state)

        def missing() -> int:
            return len(jobs) - len(self.app.client.find(those, limit=len(jobs)))

        self.wait(lambda: not missing(), f"{len(jobs)} jobs {state}")
        return [self.app.client.get(job) for job in jobs]

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Open somebody else's connection to the same store."""
        if self.store_url.startswith("sqlite"):
            with closing(sqlite3.connect(self.store_url.removeprefix("sqlite:///"), timeout=PATIENCE)) as connection:
                yield connection
        else:
            with psycopg.connect(self.store_url) as connection:
                yield connection

    def let_lapse(self, worker: str) -> None:
        """Let the leases end that a dead worker has left: all that was left of them has passed."""
        millisecond = "1" if self.store_url.startswith("sqlite") else "interval '1 millisecond'"
        left = f"state = 'running' AND worker = '{worker}'"
        with self.connected() as connection:
            connection.execute(
                f"UPDATE tenure_jobs SET lease_until = lease_until - lease_ms * {millisecond} WHERE {left}"
            )
            connection.commit()

    def machine(self) -> Machine:
        """Measure how late one is served who writes, and changes nothing: a slow disk makes all others wait, too."""
        driver, forget = self.app.store.connect(timeout=PATIENCE), self.app.store.verbs.forget
        return Machine(lambda: driver.do(forget, "nobody"))

    def starts(self, job: str) -> list[tuple[int, str]]:
        """List (generation, worker) of every start of a job."""
        return [(line["generation"], line["worker"]) for line in self.journal.find("start", job=job)]

    def lease_end(self, job: str) -> float:
        """Tell when a job's lease ends, in seconds of the store's wall clock, if nobody renews it any more."""
        record = self.app.client.get(job)
        assert record.lease_remaining is not None
        return record.now.timestamp() + record.lease_remaining


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with Postgres.start("18") as started:
        yield started


@pytest.fixture(scope="session")
def database(server: Postgres) -> str:
    """Make a migrated database, which the tests of this folder share: to make and remove one takes many files."""
    url = server.create_database()
    with closing(PostgresStore(url)) as store:
        store.migrate()
    return url


def sqlite(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{folder / 'jobs.db'}"


ALONE = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
"""Ends what the workers of an earlier test left at the server when they were killed."""


def postgres(request: pytest.FixtureRequest) -> str:
    """Name the database when it is as new, and nobody else's."""
    url: str = request.getfixturevalue("database")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ALONE)
        connection.execute(EMPTY)
        connection.execute("DROP TABLE IF EXISTS orders")
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(name))
    return url


STORES: dict[str, Callable[[pytest.FixtureRequest], str]] = {"sqlite": sqlite, "postgres": postgres}


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest) -> str:
    return STORES[request.param](request)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started


@pytest.fixture
def site(store_url: str, tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(program, "timeout", PATIENCE)  # for what the test itself asks; workers have their own
    opened = Site(store_url, tmp_path, processes)
    monkeypatch.setenv(journal.VARIABLE, str(opened.journal.path))
    yield opened
    program.close()


@pytest.fixture
def app(site: Site) -> App:
    return site.app
