"""`Theatre`: plays histories by their seeds, and has each of them judged."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from tenure.errors import BadSettings
from tenure.proof.history import History
from tenure.proof.judge import broken_in
from tenure.testing.simulation.cast import Cast
from tenure.testing.simulation.outside import seams, simulated
from tenure.testing.simulation.plan import Plan, draw
from tenure.testing.simulation.process import Belief
from tenure.testing.simulation.server import MemoryServer, Server
from tenure.testing.simulation.sqlite import File, SqliteServer
from tenure.testing.simulation.threads import Stage
from tenure.testing.simulation.world import Trace, World

STORES: Final = ("memory", "sqlite")
_NEWEST: Final = 0  # the generation of objects that no collection has seen yet

_UNFENCED: Final = frozenset({"I8", "I9", "I11", "I13"})
"""What a destination without a fence does not keep; that it loses updates is what a run has to see."""

_PRUNED: Final = frozenset({"I13"})
"""What a history does not keep in which jobs were made again: a refusal may meet the new job, not claimed yet."""


@dataclass(frozen=True, slots=True)
class Played:
    """A history, what was found wrong with it by the simulation itself and by the judge, and the marks it reached."""

    seed: int
    history: History
    violations: tuple[str, ...]
    reached: frozenset[str]
    trace: Trace | None = None

    def digest(self) -> str:
        """Name the history by everything in it."""
        encode = msgspec.json.Encoder(order="deterministic").encode
        digest = hashlib.sha256()
        for line in self.history.lines():
            digest.update(encode(line))
        return digest.hexdigest()


class Theatre:
    """Plays histories one after the other; inside `open`, which replaces what the worker knows of the outside world."""

    def __init__(self, store: str = "memory") -> None:
        if store not in STORES:
            raise BadSettings(f"the simulation has no store {store!r}: {' or '.join(STORES)}")
        self.store = store
        self._stage = Stage()
        self._cast = Cast()
        self._chance = Random()
        self._file: File | None = None

    @contextmanager
    def open(self) -> Iterator[Theatre]:
        """Let histories be played inside the block."""
        lease = {"tenure.worker.worker:Lease": Belief}
        self._file = File() if self.store == "sqlite" else None
        try:
            with simulated({**seams(self._stage, self._chance), **lease}):
                yield self
        finally:
            if self._file is not None:
                self._file.remove()

    def play(self, seed: int, *, trace: bool = False) -> Played:
        """Play the history of a seed and have it judged."""
        return self.perform(draw(seed), trace=trace)

    def perform(self, plan: Plan, *, trace: bool = False, **settings: Any) -> Played:
        """Play a plan and have its history judged."""
        self._chance.seed(plan.seed)
        written: Trace | None = [] if trace else None
        make_server: Callable[[Callable[[], float]], Server] = (
            MemoryServer if self._file is None else partial(SqliteServer, self._file)
        )
        world = World(plan, self._stage, self._cast, self._chance, trace=written, make_server=make_server, **settings)
        history = world.play()
        violations = [*world.violations, *_judged(world, history)]
        played = Played(plan.seed, history, tuple(violations), frozenset(world.marks.reached), written)
        world.untie()
        del world
        gc.collect(_NEWEST)  # what is a knot all the same is found while it is in the cache, at a tenth of the cost
        return played


def _judged(world: World, history: History) -> list[str]:
    """Have a history judged, and return what is wrong with it; what a run is made to show becomes a mark."""
    broken = broken_in(history)
    if not broken:
        return []
    excused: frozenset[str] = frozenset()
    if not world.plan.fenced:
        excused |= _UNFENCED
        if any(result.invariant == "I9" for result in broken):
            world.marks.reach("update lost without a fence")
    if any(fault.what == "prune" for fault in world.plan.faults):
        excused |= _PRUNED
    return [
        f"{result.invariant}: {violation}"
        for result in broken
        if result.invariant not in excused
        for violation in result.violations
    ]
