"""What a run has shown, and the sentences in which it is told."""

from __future__ import annotations

from dataclasses import dataclass

from tenure.proof.history import History
from tenure.proof.judge import Judgement, Verdict
from tenure.proof.needs import ENDINGS
from tenure.proof.prove.plan import Plan
from tenure.proof.prove.story import Stories

_HELD = "late workers changed nothing"
_NOTHING_MET = "no write came late in this run, so it shows little: run it for longer, or with pauses"
_BROKEN = "this should never happen: please report it, with the file that --history writes"
_CARELESS = (
    "let late writes through: it does not compare the generation and the number of a write, and write, in one atomic"
    " step"
)
_NO_FENCE = (
    "updates were lost, and that is the point: without the comparison at the destination, late writes replaced newer"
    " ones. Leases make work efficient; the fence makes it correct"
)
_NO_FENCE_KEPT = "nothing was lost without a fence, this time: run it for longer"
_AS_A_LOCK = (
    "a lease is no lock: workers were inside while another had entered, and only a fence at the destination helps"
)
_STILL_A_LOCK = "no two workers were inside at once, this time: run it for longer, and with pauses"

_AT_DESTINATIONS = {"I8", "I9", "I11", "I12", "I13"}


@dataclass(frozen=True, slots=True)
class Proof:
    """What a run has shown."""

    plan: Plan
    history: History
    judgement: Judgement
    jobs: int
    seconds: float

    @property
    def stories(self) -> list[list[str]]:
        """Tell in words what happened to the jobs that broke a promise."""
        return Stories(self.history).of(self.judgement)

    @property
    def summary(self) -> str:
        """Tell in one sentence what the run was and what it met."""
        meta, counts = self.history.meta, self.judgement.counts
        return (
            f"seed {self.plan.seed} on {meta.store}: {self.jobs:,} jobs in {self.seconds:.0f} s,"
            f" {counts['takeovers']:,} takeovers; of late workers, {self.refused_writes:,} writes were refused by the"
            f" destination and {self.refused_ends:,} ends of runs by the store"
        )

    @property
    def conclusion(self) -> str:
        """Tell what follows from it."""
        plan = self.plan
        broken = {result.invariant for result in self.judgement.results if result.verdict is Verdict.BROKEN}
        if broken - _AT_DESTINATIONS or (broken and plan.fence and plan.destination is None):
            return _BROKEN
        if plan.workload == "mutex":
            return _AS_A_LOCK if self.judgement.good else _STILL_A_LOCK
        if broken:
            return f"the destination {plan.destination} {_CARELESS}" if plan.fence else _NO_FENCE
        if plan.fence:
            return _HELD if self.refused_writes else _NOTHING_MET
        return _NO_FENCE_KEPT

    @property
    def refused_writes(self) -> int:
        """Count the late writes that the destination refused."""
        return sum((call.call, call.outcome) == ("apply", "stale") for call in self.history.calls)

    @property
    def refused_ends(self) -> int:
        """Count the late ends of runs that the store refused."""
        return sum(call.outcome == "stale" and call.call in ENDINGS for call in self.history.calls)
