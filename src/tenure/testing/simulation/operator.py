"""The operator: somebody who cancels, releases, discards, retries and prunes jobs, over a network like everybody's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tenure.errors import OutcomeUnknown, TenureError
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op
from tenure.testing.simulation.network import Members

if TYPE_CHECKING:
    from tenure.testing.simulation.world import World

_VERBS: Final = (Verb.CANCEL, Verb.RELEASE, Verb.RELEASE, Verb.DISCARD, Verb.RETRY)
_DEEDS: Final = 4


class Operator(Members):
    """Acts a few times when the plan has an operator."""

    def __init__(self, world: World) -> None:
        super().__init__("operator")
        self.world = world

    def plan_all(self) -> None:
        """Start to act at the planned moments."""
        deeds = {"operator": self._act, "prune": self._prune}
        for fault in self.world.plan.faults:
            if fault.what in deeds:
                self.world.links.append(self.to_store)
                self.world.scheduler.at(
                    fault.at or 0.0, self.world.scheduler.spawn, self, fault.what, deeds[fault.what]
                )

    def failed(self, error: Exception) -> None:
        """Hear of an error that nothing expected."""
        self.world.broken(f"operator: {type(error).__name__}: {error}")

    def _act(self) -> None:
        world = self.world
        for _ in range(_DEEDS):
            verb = _VERBS[int(len(_VERBS) * world.chance.random())]
            jobs = [world.plan.jobs[int(len(world.plan.jobs) * world.chance.random())].id]
            if world.calm:
                return
            moved = self._ask(world.server.verbs.operate, verb, jobs)
            if moved is not None:
                world.marks.moved(verb, moved)
            world.scheduler.sleep(0.1 * world.chance.random())

    def _prune(self) -> None:
        """Remove what is over, and make jobs with the same ids: their tokens must not begin again (R3)."""
        world = self.world
        if world.calm or self._ask(world.server.verbs.prune, 0.0, limit=len(world.plan.jobs)) is None:
            return
        there = {row.job for row in world.server.rows()}
        gone = [job for job in world.plan.jobs if job.id not in there]
        if gone and self._ask(world.server.verbs.enqueue, gone) is not None:
            world.marks.reach("pruned and made again")

    def _ask(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
        """Ask the store; None when nothing was done or nothing was heard."""
        world = self.world
        name = verb.__name__
        note = world.book.asked(self.name, name, args)
        execute = world.pruned if name == "prune" else world.executed
        try:
            result = world.network.ask(
                name,
                self.to_store,
                lambda: execute(self, verb, args, kwargs),
                world.plan.patience,
                again=lambda: world.book.again(note),
            )
        except OutcomeUnknown:
            return None
        except TenureError:
            world.book.failed(note)
            return None
        world.book.answered(note, result)
        return result
