"""What a run has shown, and the sentences in which it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.proof.history import History
from tenure.proof.judge import Judgement, Result, Verdict
from tenure.proof.judge.belief import AFTER, BEFORE, MEANWHILE, late_writes
from tenure.proof.judge.evidence import Evidence
from tenure.proof.judge.words import some
from tenure.proof.needs import ENDINGS, FENCED
from tenure.proof.prove.plan import Plan
from tenure.proof.prove.story import Stories

_HELD = "late workers changed nothing"
_HELD_BUT = "late workers replaced nothing newer: of their writes, "
_NOTHING_MET = "no write came late in this run, so it shows little: run it for longer, or with pauses"
_BROKEN = "this should never happen: please report it, with the file that --history writes"
_CARELESS = (
    "let late writes through: it does not compare the generation and the number of a write, and write, in one atomic"
    " step"
)
_LOSES = "loses what it accepted: writes that it had acknowledged are not in it in the end, and no late one did that"
_REFUSES = "refuses writes as stale although it has met nothing newer"
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
_ACCEPTED = (BEFORE, MEANWHILE, AFTER)


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
        broken = [result for result in self.judgement.results if result.verdict is Verdict.BROKEN]
        if broken:
            return self._at_fault(broken)
        if plan.workload == "mutex":
            return _AS_A_LOCK if self.judgement.good else _STILL_A_LOCK
        return self._held if plan.fence else _NO_FENCE_KEPT

    def _at_fault(self, broken: list[Result]) -> str:
        """Tell who broke the promises, as far as the history tells it."""
        elsewhere = [result for result in broken if not _is_at_the_destination(result)]
        unfinished = self._unfinished if [result.invariant for result in elsewhere] == ["I14"] else None
        if (elsewhere and unfinished is None) or self.plan.workload == "mutex":
            return _BROKEN
        name = self.plan.destination
        deeds = list(self._deeds(broken))
        if not self.plan.fence and (name is None or _CARELESS in deeds):
            return _NO_FENCE
        if name is None:
            return _BROKEN
        told = [f"the destination {name} {' and '.join(deeds)}"] if deeds else []
        return "; ".join([*told, *([unfinished] if unfinished else ())])

    def _deeds(self, broken: list[Result]) -> Iterator[str]:
        """Name what the destination did wrong."""
        stories = Stories(self.history)
        invariants = {result.invariant for result in broken}
        lost = stories.lost(self.judgement)
        disordered = invariants & {"I8", "I11"} or stories.late_writes(self.judgement)
        late_only = "I12" in invariants and not lost
        if disordered or late_only:
            yield _CARELESS
        if lost or ("I9" in invariants and not disordered):
            yield _LOSES
        if "I13" in invariants:
            yield _REFUSES

    @property
    def _unfinished(self) -> str | None:
        """Tell why jobs did not end, where their destination is why; None where anything else may be."""
        causes = Stories(self.history).failing(self.judgement)
        if self.plan.destination is None or None in causes.values():
            return None
        told = f"{some(len(causes), 'job')} did not finish"
        silent = [cause for cause in causes.values() if cause is not None and cause.call in FENCED]
        if len(silent) == len(causes):
            return f"{told}, since the destination {self.plan.destination} did not answer"
        said = next((cause.detail for cause in causes.values() if cause is not None and cause.detail), "")
        return f"{told}, since what was asked of the destination {self.plan.destination} failed{said and f': {said}'}"

    @property
    def _held(self) -> str:
        """Tell what became of the late writes of a good run."""
        fates = Counter(late_writes(Evidence(self.history)).values())
        accepted = [f"{fates[fate]:,} {_were(fates[fate])} {fate}" for fate in _ACCEPTED if fates[fate]]
        if accepted:
            return _HELD_BUT + ", ".join(accepted)
        return _HELD if self.refused_writes or fates else _NOTHING_MET

    @property
    def refused_writes(self) -> int:
        """Count the late writes that the destination refused."""
        return sum((call.call, call.outcome) == ("apply", "stale") for call in self.history.calls)

    @property
    def refused_ends(self) -> int:
        """Count the late ends of runs that the store refused."""
        return sum(call.outcome == "stale" and call.call in ENDINGS for call in self.history.calls)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _is_at_the_destination(result: Result) -> bool:
    told = (violation.sentence for violation in result.violations)
    return result.invariant in _AT_DESTINATIONS and all(sentence.startswith("scope ") for sentence in told)
