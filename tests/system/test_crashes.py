"""Workers that die: nothing is lost, nothing stays running, and a job that kills its workers is put aside."""

from __future__ import annotations

import signal
from itertools import count
from pathlib import Path

import pytest

from tenure import Filter, State
from tests.support.processes import Child
from tests.system.apps import (
    STEADY,
    kill_the_process,
    kill_the_worker,
    quick,
    wait_here,
    write_number,
)
from tests.system.conftest import PATIENCE, Site
from tests.system.crashing import BEFORE, CLAIMED, POINTS, STORED, VARIABLE
from tests.system.destination import Destination


def test_b02_a_dead_workers_jobs_run_again_or_are_dead_letters(site: Site) -> None:
    bounds = {wait_here.options(max_takeovers=bound).enqueue().id: bound for bound in (3, 3, 1)}
    last = wait_here.options(max_attempts=1, max_takeovers=3).enqueue().id
    ada = site.worker("ada")
    site.wait_for_starts([*bounds, last], worker="ada")
    ada.kill(group=True)
    site.worker("other", queues=["others"])
    site.let_lapse("ada")

    def phases() -> set[str]:
        return {record.phase for record in site.app.client.find(Filter(queue="default"))}

    site.wait(lambda: phases() == {"expired"}, "every lost job to be shown as expired")
    site.worker("bea")
    again = [last, *(job for job, bound in bounds.items() if bound == 3)]
    site.wait_for_starts(again, worker="bea", generation=2)
    [poison] = [job for job, bound in bounds.items() if bound == 1]
    [dead] = site.wait_for_state([poison], State.DISCARDED)
    assert (dead.reason, dead.lost_worker, dead.generation) == ("worker lost once", "ada", 2)
    assert site.starts(poison) == [(1, "ada")]
    site.journal.go("finish")
    for record in site.wait_for_state(again, State.COMPLETED):
        assert (record.takeovers, record.attempts) == (1, 0)


def test_b08_killing_workers_at_any_moment_loses_no_job(site: Site, tmp_path: Path) -> None:
    """Workers die before, in and after the handlers; each number is accepted once, and every job is always there."""
    numbers = range(500)
    stored = write_number.enqueue_many({"number": number} for number in numbers)
    jobs = [one.id for one in stored]
    names = (f"worker {number}" for number in count())
    workers: list[tuple[str, Child]] = []

    def start() -> None:
        name = next(names)
        workers.append((name, site.start_worker(name, threads=3)))

    for _ in range(3):
        start()
    for threshold in range(20, 480, 70):
        site.wait(lambda least=threshold: site.journal.count("start") >= least, f"{threshold} starts")  # type: ignore[misc]
        assert len(site.app.client.find(Filter(task="write_number"), limit=1000)) == len(jobs)
        name, victim = workers.pop(0)
        victim.kill(group=True)
        site.let_lapse(name)
        start()
    records = site.wait_for_state(jobs, State.COMPLETED)
    assert [int(record.result or "-1") for record in records] == list(numbers)
    assert {record.attempts for record in records} == {0}
    for record in records:
        assert len(site.starts(record.id)) <= record.takeovers + 1
    destination = Destination(tmp_path)
    assert sorted(destination.numbers("accepted")) == list(numbers)
    taken_over = {number for number, record in zip(numbers, records, strict=True) if record.takeovers}
    assert set(destination.numbers("repeated")) <= taken_over
    assert destination.numbers("refused") == []


@pytest.mark.parametrize("point", POINTS)
def test_b08_a_worker_that_dies_at_a_named_point_loses_no_job(site: Site, tmp_path: Path, point: str) -> None:
    job = write_number.enqueue(7).id
    ada = site.start_worker("ada", environment={VARIABLE: point})
    assert ada.wait() == -signal.SIGKILL
    left = site.app.client.get(job)
    assert (left.generation, left.worker, left.attempts) == (1, "ada", 0)
    assert left.state is (State.COMPLETED if point == STORED else State.RUNNING)
    began = [] if point in {CLAIMED, BEFORE} else [(1, "ada")]
    assert site.starts(job) == began
    destination = Destination(tmp_path)
    assert destination.numbers("accepted") == [7] * len(began)

    site.let_lapse("ada")
    site.worker("bea")
    [record] = site.wait_for_state([job], State.COMPLETED)
    assert record.result == "7"
    again = [] if point == STORED else [(2, "bea")]
    assert site.starts(job) == [*began, *again]
    assert (record.attempts, record.takeovers) == (0, len(again))
    assert destination.numbers("accepted") == [7]
    assert destination.numbers("repeated") == [7] * len(began and again)


def test_b13_a_job_that_kills_its_workers_is_put_aside_with_their_names(site: Site) -> None:
    poison = kill_the_worker.options(priority=100).enqueue().id
    healthy = [one.id for one in quick.enqueue_many([{"number": number} for number in range(50)])]
    names = [f"worker {number}" for number in range(1, 4)]
    for name in names:
        victim = site.start_worker(name)
        site.wait(lambda child=victim: not child.running, f"{name} to be killed")  # type: ignore[misc]
        site.let_lapse(name)
    assert site.starts(poison) == [(number, f"worker {number}") for number in (1, 2, 3)]
    site.worker("survivor")
    [dead] = site.wait_for_state([poison], State.DISCARDED)
    assert dead.reason == "worker lost 3 times"
    assert len(site.starts(poison)) == 3
    site.wait_for_state(healthy, State.COMPLETED)
    lost = [entry for entry in site.app.client.history(poison) if entry.event in {"takeover", "discard"}]
    assert [entry.worker for entry in lost][-3:] == names, site.app.client.history(poison)

    site.app.client.retry([poison])
    record = site.app.client.get(poison)
    assert (record.takeovers, record.attempts) == (0, 0)


def test_b13_a_job_that_kills_its_own_process_uses_up_its_attempts(site: Site) -> None:
    poison = kill_the_process.enqueue().id
    healthy = quick.enqueue().id
    worker = site.worker("ada")
    [dead] = site.wait_for_state([poison], State.DISCARDED)
    assert (dead.attempts, dead.takeovers) == (3, 0)
    assert dead.failure is not None
    assert dead.failure.type == "ProcessDied"
    assert len(site.starts(poison)) == 3
    site.wait_for_state([healthy], State.COMPLETED)
    assert worker.running


def test_a_clean_stop_is_no_loss(site: Site) -> None:
    job = wait_here.options(lease=STEADY).enqueue().id
    for generation in (1, 2):
        worker = site.worker(f"worker {generation}", grace=0.0)
        site.wait_for_starts([job], generation=generation)
        worker.signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
    record = site.app.client.get(job)
    assert (record.state, record.takeovers, record.attempts) == (State.AVAILABLE, 0, 0)
