"""The store's side: the real operations on a real store, each in one step, with a full history of what they changed.

Driving an operation is all that a store's own driver does too; nobody else is inside meanwhile, so there is no lock. A
verb of the memory store is one request, so it is done without asking.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from tenure.errors import TenureError
from tenure.proof.history import Entry, EventName, Row
from tenure.protocol.op import Op, Request, run
from tenure.store.contract import Verbs
from tenure.store.memory import AT_ONCE, Do, MemoryVerbs
from tenure.store.memory.world import AVAILABLE, RUNNING, Instant, World
from tenure.store.memory.world import Row as MemoryRow
from tenure.testing.simulation.network import Answer

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
"""What the store's wall clock shows when its other clock shows 0."""


Stands = Any
"""How a job stands: the columns of a row that a history tells of, by their names in the store."""

Change = tuple[Stands | None, Stands | None]
"""How a job stood before and after a change; None where it was not there."""


class Server(Protocol):
    """A store that executes operations."""

    name: str
    verbs: Verbs
    entries: list[Entry]
    heard: Callable[[list[Change]], object]

    def execute(self, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Drive one operation as one transaction."""
        ...

    def rows(self) -> list[Row]:
        """Tell how every job stands."""
        ...

    def all_over(self) -> bool:
        """Say whether no job waits or runs any more."""
        ...

    def keep(self) -> None:
        """Remember how everything stands, for a failover that will lose what comes afterwards."""
        ...

    def fail_over(self) -> None:
        """Go on from what was kept, with a floor above all that can have been issued since."""
        ...


class OneClockWorld(World):
    """The world of a memory store that reads its clock once in each operation."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock, lambda: EPOCH + timedelta(seconds=clock()))
        self.clock = clock
        self.instant: Instant | None = None

    def now(self) -> Instant:
        """Read the store's clock."""
        if self.instant is None:
            tick = self.clock() + self.shift
            self.instant = Instant(tick, EPOCH + timedelta(0, tick))
        return self.instant

    def committed(self) -> list[Change]:
        """Keep what was changed, and list how rows stood before and after each change."""
        if not self._undo:
            return []
        changes = self.changes()
        self.commit()
        return changes


class MemoryServer:
    """The memory store's operations on a world of their own."""

    name = "memory"
    verbs: Verbs = MemoryVerbs()

    def __init__(self, clock: Callable[[], float]) -> None:
        self.world = OneClockWorld(clock)
        self.entries: list[Entry] = []
        self.heard: Callable[[list[Change]], object] = lambda _changes: None
        self._kept: tuple[dict[str, MemoryRow], dict[str, Any], dict[str, Any], int] | None = None

    def execute(self, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Drive one operation as one transaction."""
        world = self.world
        world.instant = None
        act = getattr(verb, AT_ONCE, None)
        try:
            if act is None:
                result = run(verb(*args, **kwargs), self._execute)
            else:
                result = act(world, *args, **kwargs) if kwargs else act(world, *args)
        except TenureError as error:
            world.roll_back(0)
            return False, error
        changes = world.committed()
        if changes:
            at = world.now().tick
            for before, after in changes:
                self.entries.append(told(before, after, at))
            self.heard(changes)
        return True, result

    def _execute(self, request: Request[Any]) -> Any:
        if not isinstance(request, Do):
            raise TypeError(f"a memory store cannot answer {type(request).__name__}")
        return request.act(self.world)

    def rows(self) -> list[Row]:
        """Tell how every job stands."""
        self.world.instant = None
        now = self.world.now()
        return [
            stands(row, (row.run_at - now.at).total_seconds() if row.run_at > now.at else 0.0)
            for row in self.world.jobs.values()
        ]

    def all_over(self) -> bool:
        """Say whether no job waits or runs any more."""
        return self.world.index.is_empty

    def keep(self) -> None:
        """Remember how everything stands."""
        world = self.world
        self._kept = (dict(world.jobs), dict(world.history), dict(world.steps), len(self.entries))

    def fail_over(self) -> None:
        """Go on from what was kept: a promoted replica that had not heard of the rest."""
        if self._kept is None:
            return
        jobs, history, steps, told_of = self._kept
        world = OneClockWorld(self.world.clock)
        world.shift, world.workers, world.numbers = self.world.shift, self.world.workers, self.world.numbers
        for row in jobs.values():
            world.save(row)
        world.history, world.steps = history, steps
        world.commit()
        self.world = world
        del self.entries[told_of:]
        self.execute(self.verbs.recover, (), {})


def stands(row: Stands, due_in: float) -> Row:
    """Write the line of a row in the end."""
    return Row(
        job=row.id,
        state=row.state,
        generation=row.generation,
        owner=row.owner,
        worker=row.worker,
        ended=None if row.ended is None else str(row.ended),  # type: ignore[arg-type]  # what ends a run is an event
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        takeovers=row.takeovers,
        max_takeovers=row.max_takeovers,
        due_in=due_in,
        result=row.result,
    )


def told(before: Stands | None, after: Stands | None, at: float) -> Entry:
    """Write the line of the store's history that tells of a change."""
    if after is None:
        return Entry(job="" if before is None else before.id, event="prune", at=at)
    owned = before is not None and before.state is RUNNING
    return Entry(
        job=after.id,
        event="enqueue" if before is None else event_of(before, after),
        at=at,
        right=before.generation if owned and before is not None else None,
        generation=after.generation,
        owner=after.owner,
        worker=after.worker,
        state=after.state,
        until=after.lease_until,
        attempts=after.attempts,
        takeovers=after.takeovers,
        result=after.result,
    )


def event_of(before: Stands, after: Stands) -> EventName:
    """Name what happened to a row by how it stands before and after."""
    if after.state is RUNNING and before.state is AVAILABLE:
        return "claim"
    if before.state is RUNNING:
        if after.state is RUNNING:
            if after.generation != before.generation or after.takeovers != before.takeovers:
                return "takeover"
            return "progress" if after.lease_until == before.lease_until else "renew"
        ended: EventName = str(after.ended)  # type: ignore[assignment]  # what ends a run is an event
        return ended
    if after.state is AVAILABLE:
        return "retry"
    return "cancel" if after.state == "cancelled" else "discard"
