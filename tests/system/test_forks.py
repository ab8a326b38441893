"""Forks, and other processes at the same file: what was acknowledged stays, whoever opens and closes beside it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tenure import Filter, State
from tenure.clock import boot_clock
from tests.support.machine import Machine
from tests.system.apps import quick, wait_here
from tests.system.conftest import Site

CHILDREN, JOBS = 4, 20


def test_b22_a_forked_server_loses_nothing_that_its_parents_and_children_stored(site: Site) -> None:
    parent = site.processes.python(
        "-m", "tests.system.forking", str(CHILDREN), str(JOBS), environment=site.environment()
    )
    assert parent.wait(90.0) == 0, parent.stderr.read_text()
    by_parent, failed = map(int, parent.stdout.read_text().split())
    assert failed == 0, parent.stderr.read_text()
    expected = {"before", *(f"parent-{number}" for number in range(by_parent))}
    expected |= {f"child-{child}-{number}" for child in range(CHILDREN) for number in range(JOBS)}
    stored = {record.id for record in site.app.client.find(Filter(task="quick"), limit=100_000)}
    assert stored == expected
    site.worker("ada")
    site.wait_for_state(["before", *(f"child-{child}-{JOBS - 1}" for child in range(CHILDREN))], State.COMPLETED)
    record = site.app.client.get("mine")
    assert (record.state, record.generation) == (State.AVAILABLE, 1)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_another_process_that_opens_and_closes_the_file_takes_nothing_along(site: Site, tmp_path: Path) -> None:
    """The last process to leave a SQLite file removes its log; a store that has lost its locks would not be noticed."""
    path = str(tmp_path / "jobs.db")
    look = f"import sqlite3; print(sqlite3.connect({path!r}).execute('PRAGMA user_version').fetchone())"
    jobs = [quick.enqueue().id]
    for _ in range(2):
        assert site.processes.python("-c", look).wait(60.0) == 0
        jobs.append(quick.enqueue().id)
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as other:
        assert {id_ for (id_,) in other.execute("SELECT id FROM tenure_jobs")} == set(jobs)
    site.app.close()
    assert {record.id for record in site.app.client.find(Filter(task="quick"))} == set(jobs)


def test_b01_a_scheduled_job_holds_no_lease_and_starts_once_when_due(site: Site) -> None:
    site.worker("ada")
    site.worker("bea")
    lease, due_in = 2.0, 2.5
    job = wait_here.options(delay=due_in, lease=lease).enqueue().id
    waiting = site.app.client.get(job)
    assert (waiting.phase, waiting.lease_remaining) == ("scheduled", None)
    with Machine() as machine:
        due_at = boot_clock() + due_in
        site.wait_for_starts([job])
        machine_late = machine.lateness(due_at, boot_clock())
    claimed_at = site.app.client.get(job).claimed_at
    assert claimed_at is not None
    late = (claimed_at - waiting.enqueued_at).total_seconds() - due_in
    assert -0.01 <= late <= 3.0 + machine_late, f"it started {late:.2f} s after it was due"
    site.journal.go("finish")
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert len(site.starts(job)) == 1
    assert record.generation == 1
