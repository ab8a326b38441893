"""Old and new programs at one store, data that is not ours, secrets in logs, and transactions of callers."""

from __future__ import annotations

import re
import signal
import sqlite3
from pathlib import Path

import pytest

from tenure import Filter, State
from tenure.ids import new_job_id
from tenure.protocol.job import NewJob
from tests.system.apps import STEADY, app, quick, take_long, tell_secrets, wait_here
from tests.system.conftest import Site

# -- old and new programs


def test_b28_a_task_that_a_worker_does_not_know_waits_for_one_that_does(site: Site) -> None:
    old = site.worker("old", environment={"ONLY": "quick"})
    new = wait_here.options(lease=STEADY).enqueue().id
    known = quick.enqueue().id
    site.wait_for_state([known], State.COMPLETED)
    record = app.client.get(new)
    assert (record.state, record.generation, record.attempts) == (State.AVAILABLE, 0, 0)
    assert old.running
    site.worker("new")
    site.wait_for_starts([new], worker="new")
    site.journal.go("finish")
    [record] = site.wait_for_state([new], State.COMPLETED)
    assert (record.generation, record.attempts) == (1, 0)


def test_b28_arguments_that_no_longer_fit_are_put_aside_with_a_clear_message(site: Site) -> None:
    job = new_job_id()
    app.client.enqueue([NewJob(id=job, task="take_long", arguments="{}")])
    following = quick.enqueue().id
    site.worker("ada")
    [record] = site.wait_for_state([job], State.DISCARDED)
    assert record.failure is not None
    assert "seconds" in record.failure.message
    assert take_long.name in record.failure.message
    site.wait_for_state([following], State.COMPLETED)
    assert site.starts(job) == []


# -- data that is not ours

PICKLED = "cposix\nsystem\n(S'touch {}'\ntR."


@pytest.mark.parametrize("text", [PICKLED, '"a string"', "[1, 2]", '{{"number": "not a number"}}', "{{", ""])
def test_b29_a_payload_that_is_not_ours_is_set_aside_and_never_run(site: Site, tmp_path: Path, text: str) -> None:
    planted = tmp_path / "planted"
    job = quick.enqueue().id
    with site.connected() as connection:
        mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
        statement = f"UPDATE tenure_jobs SET arguments = {mark} WHERE id = {mark}"
        connection.execute(statement, (text.format(planted), job))
        connection.commit()
    worker = site.worker("ada")
    following = quick.enqueue().id
    site.wait_for_state([following], State.COMPLETED)
    [record] = site.wait_for_state([job], State.DISCARDED)
    assert record.failure is not None
    assert not planted.exists()
    assert site.starts(job) == []
    assert worker.running


# -- secrets


@pytest.mark.parametrize("level", ["WARNING", "DEBUG"])
def test_b30_no_log_and_no_event_shows_a_value(site: Site, level: str) -> None:
    secret = "hunter2-unmistakable"
    jobs = [
        tell_secrets.enqueue(password=secret, nested={"deep": [secret]}, how=how).id
        for how in ("succeeds", "fails", "is retried")
    ]
    app.client.enqueue([NewJob(id=new_job_id(), task="tell_secrets", arguments=f'{{"passwort": "{secret}"}}')])
    worker = site.worker("ada", environment={"LOG_LEVEL": level})
    site.wait_for_state([jobs[0], jobs[2]], State.COMPLETED)
    site.wait(lambda: app.client.get(jobs[1]).attempts, "the failing job to fail")
    site.wait(lambda: app.client.find(Filter(state=State.DISCARDED)), "the misfit to be put aside")
    worker.signal(signal.SIGTERM)
    worker.wait(60.0)
    said = worker.stdout.read_text() + worker.stderr.read_text() + site.journal.path.read_text()
    assert secret not in said
    found = re.search(r"//[^/@]*:([^/@]*)@", site.store_url)
    assert found is None or found.group(1) not in said


# -- transactions of callers


def test_b27_a_job_is_seen_by_workers_exactly_when_its_row_is(site: Site) -> None:
    site.worker("ada")
    with site.connected() as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (1)")
        undone = quick.options(connection=connection).enqueue().id
        connection.rollback()
        connection.execute("INSERT INTO orders VALUES (2)")
        job = quick.options(connection=connection).enqueue().id
        assert site.starts(job) == []
        connection.commit()
    site.wait_for_state([job], State.COMPLETED)
    assert len(site.starts(job)) == 1
    assert app.client.find(Filter(ids=(undone,))) == []
