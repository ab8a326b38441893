"""Deploys and scale-downs: a worker that is told to go claims nothing more, finishes or gives back, and says so."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pytest

from tenure import State
from tenure.clock import boot_clock
from tests.support.processes import Child
from tests.system import journal
from tests.system.apps import LEASE, quick, take_long, take_long_async, wait_here
from tests.system.conftest import PATIENCE, Site

LONG = 600.0


def start(site: Site, way: str, **settings: Any) -> Child:
    """Start worker ada, directly or through a shell that waits for it, as some images do."""
    if way != "sh":
        return site.worker("ada", **settings)
    command = ["-m", "tests.system.worker", "ada", json.dumps({"threads": 8, **settings})]
    child = site.processes.start(
        "/bin/sh",
        "-c",
        'exec "$@"',
        "sh",
        sys.executable,
        *command,
        environment=site.environment(**{journal.WORKER: "ada"}),
    )
    site.wait(lambda: site.is_up(child), "worker ada to start")
    return child


def stop(child: Child, way: str) -> None:
    child.signal(signal.SIGTERM, group=way == "group")


@pytest.mark.parametrize("way", ["process", "group", "sh"])
def test_b03_with_enough_grace_jobs_finish_and_none_begins(site: Site, way: str) -> None:
    running = [take_long.enqueue(1.5).id, take_long_async.enqueue(1.5).id]
    worker = start(site, way, grace=PATIENCE)
    site.wait_for_starts(running)
    stop(worker, way)
    site.wait(lambda: site.journal.find("event", kind="worker stopping"), "the worker to hear the signal")
    later = [one.id for one in quick.enqueue_many([{} for _ in range(5)])]
    assert worker.wait(PATIENCE) == 0
    for record in site.wait_for_state(running, State.COMPLETED):
        assert (record.generation, record.attempts) == (1, 0)
    assert {record.generation for record in site.wait_for_state(later, State.AVAILABLE)} == {0}


@pytest.mark.parametrize("way", ["process", "group"])
def test_b03_after_the_grace_jobs_are_given_back_at_once_and_unspent(site: Site, way: str) -> None:
    jobs = [take_long.enqueue(LONG).id, take_long_async.enqueue(LONG).id, wait_here.options(lease=LONG).enqueue().id]
    worker = start(site, way, grace=0.5)
    site.wait_for_starts(jobs)
    stop(worker, way)
    assert worker.wait(PATIENCE) == 0
    for record in site.wait_for_state(jobs, State.AVAILABLE):
        assert (record.attempts, record.takeovers) == (0, 0)
    assert site.journal.count("cancelled") == 1
    site.worker("bea")
    began = boot_clock()
    starts = site.wait_for_starts(jobs, worker="bea", generation=2)
    assert max(line["at"] for line in starts.values()) - began < LONG


def test_b03_a_second_signal_takes_the_grace_away(site: Site) -> None:
    jobs = [take_long.enqueue(LONG).id, take_long_async.enqueue(LONG).id]
    worker = start(site, "process", grace=LONG)
    site.wait_for_starts(jobs)
    stop(worker, "process")
    site.wait(lambda: site.journal.find("event", kind="worker stopping"), "the first signal to be heard")
    stop(worker, "process")
    assert worker.wait(PATIENCE) == 0
    for record in site.wait_for_state(jobs, State.AVAILABLE):
        assert (record.attempts, record.takeovers) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_b03_an_idle_worker_goes_at_once(site: Site, number: signal.Signals) -> None:
    worker = start(site, "process", grace=LONG)
    worker.signal(number)
    assert worker.wait(PATIENCE) == 0
    assert site.app.client.workers() == []


def test_b03_while_it_finishes_a_stopping_worker_keeps_its_leases(site: Site) -> None:
    job = take_long.options(lease=LEASE).enqueue(1.25 * LEASE).id
    worker = start(site, "process", grace=PATIENCE)
    site.wait_for_starts([job])
    site.worker("bea")
    stop(worker, "process")
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert site.starts(job) == [(1, "ada")]
    assert record.takeovers == 0
    assert worker.wait(PATIENCE) == 0
