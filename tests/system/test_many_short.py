"""Thousands of very short jobs: ends are settled many at a time, beside the claims, and none is lost or told twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from tenure import App, State
from tenure.protocol.events import Event, Kind
from tenure.worker.settler import MANY, Settler
from tests.system.apps import STEADY
from tests.system.conftest import Site

JOBS = 4000
UNWANTED = {Kind.LEASE_LOST, Kind.STALE_REFUSED, Kind.RAISED_LATE, Kind.JOB_TAKEN_OVER}

CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


class Short:
    """An app with one very short task, a worker of this process, and what was told of them."""

    def __init__(self, url: str) -> None:
        self.app = App(url, timeout=STEADY)
        self.ran: Counter[int] = Counter()
        self.told: Counter[Kind] = Counter()
        self.batches: list[int] = []
        self.app.events.subscribe(self._hear)

        @self.app.task(lease=STEADY)
        async def short(number: int) -> None:
            self.ran[number] += 1

        short.enqueue_many({"number": number} for number in range(JOBS))
        self.worker = self.app.worker(grace=60.0)

    def _hear(self, event: Event) -> None:
        self.told[event.kind] += 1

    def wait_for_eighths(self, site: Site, part: int) -> None:
        """Wait until so many eighths of the jobs have run."""
        site.wait(lambda: len(self.ran) >= part * JOBS // 8, f"{part} eighths to have run")

    def states(self) -> Counter[str]:
        """Count the jobs by state."""
        with psycopg.connect(str(self.app.address), autocommit=True) as connection:
            return Counter(
                dict(connection.execute("SELECT state, count(*) FROM tenure_jobs GROUP BY state").fetchall())
            )


@pytest.fixture
def short(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Short]:
    made = Short(site.store_url)
    settle = Settler.settle

    def counted(settler: Settler, batch: list[tuple[object, object]]) -> None:
        made.batches.append(len(batch))
        settle(settler, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Settler, "settle", counted)
    yield made
    made.worker.stop(0.0)
    made.app.close()


def test_each_of_many_short_jobs_runs_once_and_is_told_once(site: Site, short: Short) -> None:
    short.worker.start()
    site.wait(lambda: short.states() == {State.COMPLETED: JOBS}, "all jobs to be completed")
    short.worker.stop()
    assert set(short.ran.values()) == {1}
    assert short.told[Kind.JOB_COMPLETED] == JOBS
    assert not UNWANTED & short.told.keys()
    assert sum(short.batches) > JOBS // 2
    assert min(short.batches) >= MANY


def test_b04_many_short_jobs_outlive_the_cutting_of_every_connection(site: Site, short: Short) -> None:
    """What was under way is repeated or given back; no job runs twice while its lease lasts."""
    chance = random.Random(7)
    short.worker.start()
    with psycopg.connect(site.store_url, autocommit=True) as operator:
        for part in range(1, 6):
            short.wait_for_eighths(site, part)
            for _ in range(chance.randrange(1, 4)):
                operator.execute(CUT_OFF)
    site.wait(lambda: short.states() == {State.COMPLETED: JOBS}, "all jobs to be completed")
    short.worker.stop()
    assert set(short.ran.values()) == {1}
    assert short.told[Kind.JOB_COMPLETED] == JOBS
    assert not UNWANTED & short.told.keys()
    assert short.batches


def test_r25_a_worker_that_stops_among_many_short_jobs_leaves_none_running(site: Site, short: Short) -> None:
    short.worker.start()
    site.wait(lambda: short.batches, "a batch to be handed over")
    short.worker.stop()
    states = short.states()
    assert set(states) <= {State.COMPLETED, State.AVAILABLE}
    assert states[State.COMPLETED] == short.told[Kind.JOB_COMPLETED] == len(short.ran)
