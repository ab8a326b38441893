"""A worker that is paused, killed, blocked or wrong about the time: nothing late is accepted, nothing healthy repeated.

The cells of the zombie experiment on other queues: {the new owner still runs, has finished} times {the late one
returns, raises, snoozes, reports progress}; all of them in one batch on one pair of workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from tenure import State
from tenure.clock import boot_clock
from tenure.protocol.job import Claimer, NewJob
from tenure.protocol.lease import SHORTEST
from tests.support.machine import Machine
from tests.support.processes import Child
from tests.system.apps import (
    LATE,
    LEASE,
    block_the_loop,
    burn,
    hold_the_interpreter,
    quick,
    wait_here,
    wait_there,
    zombie,
)
from tests.system.conftest import Site

PROMISED = 1.0
"""Seconds after the end of a lease within which any other worker takes the job over, on a machine that has time."""


@pytest.fixture
def machine(site: Site) -> Iterator[Machine]:
    with site.machine() as measured:
        yield measured


def assert_taken_over_in_time(site: Site, machine: Machine, ends: dict[str, float], busy: float = 0.0) -> None:
    """Compare when each job was claimed with when the lease before had ended, both by the store's clock.

    That clock is this host's. The bound is the promised one, and beyond it only what the machine itself was late; and
    `busy` seconds, for which the takers were at work on others of these jobs.
    """
    booted_at = time.time() - boot_clock()
    for job, end in ends.items():
        claimed_at = site.app.client.get(job).claimed_at
        assert claimed_at is not None
        late = claimed_at.timestamp() - end
        machine_late = machine.lateness(end - booted_at, claimed_at.timestamp() - booted_at)
        assert -0.01 <= late <= PROMISED + busy + machine_late, (
            f"{job} was taken over {late:.3f} s after its lease had ended; the machine was {machine_late:.3f} s late"
        )


def test_a_machine_is_late_by_what_it_does_not_serve() -> None:
    serves_late = threading.Event()
    with Machine(lambda: time.sleep(0.3 * serves_late.is_set())) as machine:
        serves_late.set()
        began = boot_clock()
        late = machine.lateness(began, began + 0.2)
    assert late >= 0.28


def freeze(site: Site, child: Child, jobs: list[str]) -> dict[str, float]:
    """Stop a worker and note when the leases end that it can renew no more."""
    site.pause(child)
    return {job: site.lease_end(job) for job in jobs}


def test_a_late_worker_changes_nothing(site: Site, machine: Machine) -> None:
    cells = {zombie.enqueue(how=how, when=when).id: (how, when) for how, when in product(LATE, ("running", "done"))}
    jobs = list(cells)
    ada = site.worker("ada")
    site.wait_for_starts(jobs, worker="ada")
    site.worker("bea")
    ends = freeze(site, ada, jobs)
    site.wait_for_starts(jobs, worker="bea", generation=2)
    assert_taken_over_in_time(site, machine, ends)
    site.wait_for_state([job for job, (_, when) in cells.items() if when == "done"], State.COMPLETED)

    site.journal.go("wake")
    ada.cont(group=True)
    site.wait(lambda: site.journal.count("renewed late") == len(jobs), "the late worker to have tried everything")
    site.wait(lambda: site.journal.count("progress late") == 2, "and progress, where it tries that")
    site.wait(
        lambda: site.journal.count("event", worker="ada", kind="lease lost") == len(jobs), "every loss to be told"
    )
    woke = site.journal.find("woke")
    assert {line["job"] for line in woke} == set(jobs)
    assert {(line["cancelled"], line["effect"]) for line in woke} == {(True, "refused")}
    assert {line["verdict"] for line in site.journal.find("settled late")} == {"stale"}
    assert {tuple(line["verdicts"]) for line in site.journal.find("renewed late")} == {("stale",)}
    assert [line["said"] for line in site.journal.find("progress late")] == ["refused", "refused"]
    for job, (_, when) in cells.items():
        record = site.app.client.get(job)
        assert (record.generation, record.worker, record.progress, record.attempts) == (2, "bea", None, 0), record
        assert record.state is (State.RUNNING if when == "running" else State.COMPLETED), record

    site.journal.go("finish")
    for record in site.wait_for_state(jobs, State.COMPLETED):
        assert (record.generation, record.result) == (2, '"generation 2"')
        assert record.takeovers == 1
        assert (record.lost_generation, record.lost_worker) == (1, "ada")
        assert site.starts(record.id) == [(1, "ada"), (2, "bea")]
        refused = [entry for entry in site.app.client.history(record.id) if entry.event.startswith("stale")]
        assert {(entry.generation, entry.worker) for entry in refused} == {(1, "ada")}


def test_a_dead_workers_jobs_are_taken_over_whoever_else_stands_still(site: Site, machine: Machine) -> None:
    """Of three workers one holds the jobs and is killed, one is stopped; the third must do. Then the roles change."""
    jobs = [wait_here.enqueue().id for _ in range(2)] + [wait_there.enqueue().id for _ in range(2)]
    workers = {"ada": site.worker("ada")}
    site.wait_for_starts(jobs, worker="ada")
    workers |= {name: site.start_worker(name) for name in ("bea", "cleo")}
    site.wait(lambda: all(site.is_up(child) for child in workers.values()), "the other workers to start")

    for generation, (holder, stopped, taker) in enumerate((("ada", "bea", "cleo"), ("cleo", "ada", "bea")), start=2):
        if not workers[stopped].running:
            workers[stopped] = site.worker(stopped)
        site.pause(workers[stopped])
        workers[holder].kill(group=True)
        ends = {job: site.lease_end(job) for job in jobs}
        site.wait_for_starts(jobs, worker=taker, generation=generation)
        assert_taken_over_in_time(site, machine, ends)
        workers[stopped].cont(group=True)

    site.journal.go("finish")
    for record in site.wait_for_state(jobs, State.COMPLETED):
        assert site.starts(record.id) == [(1, "ada"), (2, "cleo"), (3, "bea")]
        assert (record.takeovers, record.attempts) == (2, 0)


def test_an_idle_worker_takes_over_in_time_whenever_it_last_looked(site: Site, machine: Machine) -> None:
    """Leases of the shortest length that begin, and whose owners die, just after many idle workers have looked.

    Nothing rings when a lease ends, and these workers do not know of the leases: this is as late as it gets.
    """
    names = [f"queue {number}" for number in range(6)]
    children = [site.start_worker(name, queues=[name]) for name in names]
    site.wait(lambda: all(site.is_up(child) for child in children), "every worker to start")
    with site.connected() as connection:
        client = site.app.joined(connection)
        for name in names:
            client.enqueue([NewJob(id=name, task=quick.name, queue=name)])
            client.claim_named(Claimer(f"owner of {name}", "dead"), name, SHORTEST, create=False)
        connection.commit()
    ends = {name: site.lease_end(name) for name in names}
    for record in site.wait_for_state(names, State.COMPLETED):
        assert (record.generation, record.lost_worker, record.worker) == (2, "dead", record.id)
    assert_taken_over_in_time(site, machine, ends)


def claim_and_die(site: Site, jobs: list[str]) -> dict[str, float]:
    """Be a worker that dies right after it has claimed jobs that nobody else has seen; tell when its leases end."""
    with site.connected() as connection:
        client = site.app.joined(connection)
        client.enqueue([NewJob(id=job, task=quick.name) for job in jobs])
        for job in jobs:
            client.claim_named(Claimer("owner of them all", "dead"), job, SHORTEST, create=False)
        connection.commit()
    return {job: site.lease_end(job) for job in jobs}


def test_more_jobs_than_slots_are_taken_over_without_a_pause(site: Site, machine: Machine) -> None:
    site.worker("ada", threads=2)
    ends = claim_and_die(site, [f"job {number:02}" for number in range(40)])
    site.wait_for_state(list(ends), State.COMPLETED)
    assert_taken_over_in_time(site, machine, ends, busy=0.03 * len(ends))


def test_a_worker_without_a_slot_takes_over_as_soon_as_it_has_one(site: Site, machine: Machine) -> None:
    """Its event loop has slots all the while, and looks; its one thread is busy at the end of the lease."""
    site.worker("ada", threads=1)
    holding = wait_here.options(lease=600.0).enqueue().id
    site.wait_for_starts([holding])
    [end] = claim_and_die(site, ["job"]).values()
    site.wait(lambda: time.time() > end + 1.0, "the lease to have ended while the worker has no slot")
    site.journal.go("finish")
    site.wait_for_state([holding, "job"], State.COMPLETED)
    [freed] = site.journal.find("end", job=holding)
    assert_taken_over_in_time(site, machine, {"job": freed["at"] + time.time() - boot_clock()})


def test_b06_a_job_that_blocks_everything_keeps_its_lease(site: Site) -> None:
    lease = 4.0
    blocking = [task.options(lease=lease) for task in (block_the_loop, burn, hold_the_interpreter)]
    jobs = [task.enqueue(1.6 * lease).id for task in blocking]
    jobs.append(wait_here.options(lease=lease).enqueue().id)
    site.worker("ada")
    site.wait_for_starts(jobs, worker="ada")
    site.worker("bea")
    site.wait(lambda: site.journal.count("end") == 3, "the blocking jobs to end")
    site.journal.go("finish")
    for record in site.wait_for_state(jobs, State.COMPLETED):
        assert site.starts(record.id) == [(1, "ada")]
        assert (record.generation, record.takeovers, record.attempts) == (1, 0, 0)
        assert site.app.client.history(record.id) == []


def test_b38_a_wrong_wall_clock_steals_nothing_and_hides_nothing(site: Site, machine: Machine) -> None:
    """In one queue the owner is ahead by an hour and the taker behind, in the other it is the other way round.

    The offset is set inside the processes, not by libfaketime: under that, `time.sleep` fails. The jobs are due for
    everybody: on SQLite, where each process reads its own host's wall clock, due times go by that.
    """
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    offsets = {"ahead": 3600, "behind": -3600}
    jobs = {queue: wait_here.options(run_at=long_ago, queue=queue).enqueue().id for queue in offsets}

    def start(name: str, sign: int) -> dict[str, Child]:
        started = {
            queue: site.start_worker(f"{name} {queue}", queues=[queue], environment={"WALL_OFFSET": str(sign * offset)})
            for queue, offset in offsets.items()
        }
        site.wait(lambda: all(site.is_up(child) for child in started.values()), f"both {name}s to start")
        return started

    holders = start("ada", 1)
    site.wait_for_starts(list(jobs.values()), generation=1)
    takers = start("bea", -1)
    began = boot_clock()
    site.wait(lambda: boot_clock() > began + 1.2 * LEASE, "more than a lease to pass")
    assert [site.starts(jobs[queue]) for queue in offsets] == [[(1, f"ada {queue}")] for queue in offsets]

    for child in holders.values():
        child.kill(group=True)
    ended_by = boot_clock() + LEASE
    for line in site.wait_for_starts(list(jobs.values()), generation=2).values():
        assert line["at"] - ended_by <= PROMISED + machine.lateness(ended_by, line["at"])
    site.journal.go("finish")
    site.wait_for_state(list(jobs.values()), State.COMPLETED)
    for queue, job in jobs.items():
        assert site.starts(job) == [(1, f"ada {queue}"), (2, f"bea {queue}")]
    assert all(child.running for child in takers.values())
