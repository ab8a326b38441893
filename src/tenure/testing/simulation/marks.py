"""Marks: the rare branches that a run of the default size has to reach, or the run fails (R49).

A simulation that never gets to where the protocol is hard proves nothing, and looks the same as one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tenure.protocol.events import Kind
from tenure.protocol.job import Ending, Moved, Turn, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb

_STALE, _ALREADY = Verdict.STALE, Verdict.ALREADY
_RUNNING, _COMPLETED, _DISCARDED = State.RUNNING, State.COMPLETED, State.DISCARDED

if TYPE_CHECKING:
    from tenure.testing.simulation.process import Process
    from tenure.testing.simulation.server import Change

MARKS: Final[dict[str, str]] = {
    "takeover": "a job whose lease had ended was taken over",
    "takeover of an own job": "a worker took over a job that it had lost itself",
    "late completion accepted": "a run was completed after its lease had ended and before anybody claimed",
    "claim answered after its lease": "the answer to a claim came when its lease was over already",
    "stale renewal": "a renewal was refused as stale",
    "lost claim given back": "a claim whose answer was lost was found and given back",
    "stale end refused": "the end of a run was refused as stale",
    "repeat answered already": "an end that was repeated after a lost answer was answered 'already'",
    "poison job discarded": "a job that kills its workers was put among the dead letters",
    "attempts used up": "a job that fails was put among the dead letters",
    "prefetch given back": "a job that waited too long for a slot was given back",
    "never begun": "a job that waited for a slot lost its lease before it began",
    "floor raised": "a failover lost the last claim, and the floor was raised",
    "destination followed": "the store was raised above a generation that a destination had met",
    "raise refused as stale": "a new owner's announcement was refused, since a newer one had been there",
    "apply refused as stale": "a late write was refused by the fence",
    "write applied before": "a write that was repeated after a lost answer had been applied",
    "effect stopped at the gate": "an effect was not started, since the lease could not be trusted any more",
    "lost by its own clock": "a holder stopped believing because its time ran out",
    "lost as the store says": "a holder was told by the store that its lease is lost",
    "left behind": "a handler that did not stop was left behind",
    "time limit": "a run was stopped at its time limit",
    "released at shutdown": "a worker that stopped gave back what had not finished",
    "suspect lease verified": "a lease was verified with the store after a jump of clocks",
    "taken away while running": "an operator took a running job away from its owner",
    "brought back": "an operator brought a job back that was over",
    "pruned and made again": "jobs were removed and made again with the same ids",
    "step remembered": "a later run got the remembered result of a step",
    "clone met its original": "a copy of a process ended a run that the original had ended",
    "update lost without a fence": "a destination without a fence lost an update",
}
"""Every mark by its name, with what it stands for."""


class Marks:
    """The marks that one history reached."""

    def __init__(self) -> None:
        self.reached: set[str] = set()

    def reach(self, mark: str) -> None:
        """Note a mark."""
        if mark not in MARKS:
            raise LookupError(f"there is no mark {mark!r}: add it to MARKS, with what it stands for")
        self.reached.add(mark)

    def changed(self, changes: list[Change], clock: Callable[[], float]) -> None:
        """Look at what changed in the store, at the moment that its clock shows."""
        for before, after in changes:
            if before is None or after is None or before.state is not _RUNNING:
                continue
            state = after.state
            if state is _COMPLETED:
                if before.lease_until <= clock():
                    self.reach("late completion accepted")
            elif state is _DISCARDED:
                self._discarded(before, after)

    def _discarded(self, before: Any, after: Any) -> None:
        if after.takeovers > before.takeovers:
            self.reach("poison job discarded")
        elif after.attempts > before.attempts:
            self.reach("attempts used up")

    def answered(self, process: Process, ask: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at what a process was answered."""
        if ask == "turn":
            self._turned(process, args[1], result)
        elif ask == "renew":
            if result and any(answer.verdict is _STALE for answer in result):
                self.reach("stale renewal")
        elif ask == "recall_step" and result is not None:
            self.reach("step remembered")

    def _turned(self, process: Process, endings: Sequence[Ending], turn: Turn) -> None:
        for ending, answer in zip(endings, turn.answers, strict=True) if endings else ():
            self._ended(process, ending.reason, answer.verdict)
        for row in turn.claimed:
            if row.lost_generation is not None and Token(row.id, row.lost_generation) in process.claimed:
                self.reach("takeover of an own job")
            process.claimed.add(Token(row.id, row.generation))

    def _ended(self, process: Process, reason: str | None, verdict: Verdict) -> None:
        if verdict is _STALE:
            self.reach("stale end refused")
        elif verdict is _ALREADY:
            self.reach("repeat answered already")
            if process.is_clone:
                self.reach("clone met its original")
        elif reason in _REASONS:
            self.reach(_REASONS[reason])

    def moved(self, verb: Verb, moved: list[Moved]) -> None:
        """Look at what an operator did."""
        if moved[0].moved and moved[0].state is _RUNNING:
            self.reach("taken away while running")
        if moved[0].moved and verb is Verb.RETRY:
            self.reach("brought back")

    def heard(self, process: Process, kind: Kind, job: str | None, generation: int | None, detail: str) -> None:
        """Look at an event of a worker."""
        if kind is Kind.JOB_TAKEN_OVER:
            self.reach("takeover")
        elif kind is Kind.TIMED_OUT:
            self.reach("time limit")
        elif kind is Kind.FLOOR_RAISED:
            self.reach("destination followed")
        elif kind is Kind.LEASE_LOST and job is not None and generation is not None:
            process.lost.add(Token(job, generation))
            self.reach("lost by its own clock" if detail.startswith("its time ran out") else "lost as the store says")


_REASONS: Final = {
    "the answer to its claim was lost": "lost claim given back",
    "the jobs before it took too long": "prefetch given back",
    "its lease ended before it began": "never begun",
    "the worker is shutting down": "released at shutdown",
    "the worker shut down": "released at shutdown",
}
