"""The verbs of workers' reports and of the store itself; what each promises stands in `tenure.store.contract`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from heapq import nsmallest

from tenure.protocol.job import Foremost, Pruned, WorkerRecord
from tenure.protocol.lifecycle import Actor, Verb, move
from tenure.store import floor
from tenure.store.contract import FLOOR_STEP, Admission
from tenure.store.memory.world import Reported, Row, World

NAME = "memory://"


def report(world: World, worker: WorkerRecord) -> list[Foremost]:
    """Tell that a worker lives; its first report is its start, by the store's clock."""
    now = world.now()
    known = world.workers.get(worker.owner)
    record = _as(worker, now.at) if known is None else known.record
    world.write(world.workers, worker.owner, Reported(record, now.tick))
    first = world.index.foremost(worker.queues, now.at)
    return [Foremost(queue, task, (now.at - run_at).total_seconds()) for queue, task, run_at in first]


def _as(worker: WorkerRecord, started_at: datetime, seen_ago: float = 0.0, held: int = 0) -> WorkerRecord:
    """Tell of a worker what the store knows by itself."""
    return WorkerRecord(
        worker.owner,
        worker.name,
        worker.host,
        worker.pid,
        worker.queues,
        worker.slots,
        started_at,
        seen_ago,
        held,
    )


def forget(world: World, owner: str) -> None:
    """Remove a worker that has stopped."""
    world.write(world.workers, owner, None)


def workers(world: World) -> list[WorkerRecord]:
    """List the workers that reported themselves, oldest start first."""
    now = world.now()
    held = Counter(row.owner for row in world.index.running.values())
    known = sorted(world.workers.values(), key=lambda known: (known.record.started_at, known.record.owner))
    return [
        _as(record, record.started_at, seen_ago=now.tick - one.seen, held=held[record.owner])
        for one in known
        for record in [one.record]
    ]


def prune(world: World, before: float, *, limit: int, after: str | None = None) -> Pruned:
    """Remove old final rows among the next `limit` ids; what was named by a person leaves its generation as floor."""
    now = world.now()
    oldest_kept = now.at - timedelta(seconds=before)
    ids = nsmallest(limit, (job for job in world.jobs if after is None or job > after))
    over = [world.jobs[job] for job in ids if _prunable(world.jobs[job], oldest_kept)]
    for row in over:
        if row.named:
            world.raise_floor(row.generation)
        world.remove(row.id)
    return Pruned(len(over), ids[-1] if len(ids) == limit else None)


def admit(world: World) -> Admission:
    """Tell the floor: the identity of a memory store never changes."""
    return Admission(world.floor, raised=False, before=world.floor)


def lift_floor(world: World, generation: int) -> Admission:
    """Raise the floor to what a destination has met."""
    return _raised(world, generation, floor.LIFTED)


def recover(world: World) -> Admission:
    """Raise the floor above anything that can have been issued."""
    highest = max((row.generation for row in world.jobs.values()), default=0)
    return _raised(world, max(world.floor, highest) + FLOOR_STEP, floor.RECOVERED)


def _raised(world: World, to: int, why: str) -> Admission:
    before = world.floor
    world.raise_floor(to)
    return floor.moved(NAME, before, world.floor, why)


def _prunable(row: Row, oldest_kept: datetime) -> bool:
    if move(Actor.OPERATOR, Verb.PRUNE, row.state) is None:
        return False
    return row.finished_at is not None and row.finished_at <= oldest_kept
