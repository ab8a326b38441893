"""Part: what happens at exactly one moment, for a store whose clock stands still between shifts (`still_bench`)."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.errors import LeaseHeld
from tenure.protocol.job import Verdict
from tenure.protocol.lifecycle import State
from tenure.testing.conformance.bench import LEASE, QUEUE, Bench

TICK = 0.001


def test_a_job_is_due_at_the_very_moment(still_bench: Bench) -> None:
    job = still_bench.enqueue(delay=10.0)
    worker = still_bench.worker()
    still_bench.shift(10.0 - TICK)
    assert worker.claim() == []
    assert still_bench.get(job).phase == "scheduled"
    still_bench.shift(TICK)
    assert still_bench.get(job).phase == "available"
    [counts] = still_bench.do(still_bench.verbs.queues)
    assert (counts.due, counts.scheduled) == (1, 0)
    assert worker.claim_one().id == job


def test_what_will_be_claimable_is_told_to_the_very_moment(still_bench: Bench) -> None:
    def outlook() -> tuple[Any, ...]:
        found = still_bench.do(still_bench.verbs.outlook, (QUEUE,))
        return found.due, found.abandoned, found.soonest

    still_bench.enqueue(delay=10.0)
    still_bench.shift(10.0 - TICK)
    assert outlook() == (False, False, pytest.approx(TICK))
    still_bench.shift(TICK)
    assert outlook() == (True, False, None)
    still_bench.worker().claim_one()
    assert outlook() == (False, False, LEASE)
    still_bench.shift(LEASE - TICK)
    assert outlook() == (False, False, pytest.approx(TICK))
    still_bench.shift(TICK)
    assert outlook() == (False, True, None)


def test_a_lease_ends_at_the_very_moment(still_bench: Bench) -> None:
    job = still_bench.enqueue()
    worker, rival = still_bench.worker("ada"), still_bench.worker("bob")
    held = worker.claim_one()
    still_bench.shift(LEASE - TICK)
    assert rival.claim() == []
    with pytest.raises(LeaseHeld):
        rival.take(job)
    assert still_bench.get(job).phase == "running"
    assert worker.renew(held) == []
    still_bench.shift(LEASE)
    assert [answer.verdict for answer in worker.renew(held)] == [Verdict.STALE]
    assert still_bench.get(job).phase == "expired"
    [counts] = still_bench.do(still_bench.verbs.queues)
    assert (counts.running, counts.expired) == (0, 1)
    assert rival.claim_one().generation == held.generation + 1


def test_a_named_lease_can_be_taken_at_the_very_moment_it_ends(still_bench: Bench) -> None:
    still_bench.worker("ada").take("report", 10.0, create=True)
    still_bench.shift(10.0)
    assert still_bench.worker("bob").take("report").lost_worker == "ada"


def test_a_job_is_pruned_at_the_very_moment(still_bench: Bench) -> None:
    worker = still_bench.worker()
    job = still_bench.enqueue()
    worker.complete(worker.claim_one())
    still_bench.shift(10.0 - TICK)
    assert still_bench.do(still_bench.verbs.prune, 10.0, limit=10).removed == 0
    assert still_bench.get(job).state is State.COMPLETED
    still_bench.shift(TICK)
    assert still_bench.do(still_bench.verbs.prune, 10.0, limit=10).removed == 1
