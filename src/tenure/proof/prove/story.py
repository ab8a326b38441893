"""What happened to one job, in words: the turns of its life, as workers, destination and nemesis saw them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cached_property

from tenure.proof.history import Call, Fault, History
from tenure.proof.judge import Judgement, Violation
from tenure.proof.judge.words import Words, deed, who
from tenure.proof.needs import ENDINGS, FENCED, MOVES

_OUTCOMES = {
    "ok": "accepted",
    "already": "answered: it was done before",
    "stale": "REFUSED as stale",
    "fail": "not done",
    "unknown": "no answer",
}
_FAULTS = {
    "pause": ("{whom} is stopped", "{whom} goes on, {after:.1f} s later, and knows nothing of it"),
    "kill": ("{whom} is killed", ""),
    "crash": ("the store's server is killed", "the store's server is there again, {after:.1f} s later"),
    "disk": ("the store has no room left", "the store has room again, {after:.1f} s later"),
    "jump": ("the store's clock jumps {detail}", ""),
}
"""What is told of a fault when it began, and when it was over."""

_LOST = (
    "So: what the destination had accepted is not in it in the end, and no late write has replaced it. A destination"
    " that answers that it wrote has to keep what it wrote."
)
_DISORDER = frozenset({"I8", "I9", "I11"})
_MOST = 3


class Stories:
    """Tells the jobs of one run."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._words = Words(history.origin)
        self._calls: dict[str, list[Call]] = {}
        for call in history.calls:
            job = call.job or call.scope
            if job is not None:
                self._calls.setdefault(job, []).append(call)

    def of(self, judgement: Judgement) -> list[list[str]]:
        """Tell the jobs of the first violations, those with late writes first; one list of lines for each."""
        jobs: dict[str, None] = {}
        ranked = sorted(judgement.results, key=lambda result: result.invariant not in {"I9", "I12"})
        for result in ranked:
            for violation in result.violations:
                job = self._about(violation)
                if job is not None:
                    jobs.setdefault(job)
        doubted, lost = self.disordered(judgement), self.lost(judgement)
        telling = sorted(jobs, key=lambda job: not any(_late(self._calls[job], sure=job not in doubted)))
        return [
            [*self.tell(job, moral=True, sure=job not in doubted), *([_LOST] if job in lost else ())]
            for job in telling[:_MOST]
        ]

    def tell(self, job: str, *, moral: bool = False, sure: bool = False) -> list[str]:
        """Tell one job, a line for each turn of its life; with the moral, where it broke a promise.

        Where it is `sure` that the destination kept the order, only writes sent after a newer generation was told are
        late: an answer may come in long after its write did.
        """
        calls = self._calls[job]
        concerned = {call.process for call in calls} | {"store"}
        began, ended = calls[0].sent, max(call.answered or call.sent for call in calls)
        turns = [
            (call.answered or call.sent, self._turn(call)) for call in calls if call.call not in {"renew", "effect"}
        ]
        for fault in self._history.faults:
            if fault.whom in concerned and fault.began <= ended and (fault.ended or fault.began) >= began:
                turns += [(moment, told) for moment, told in self._fault(fault) if began <= moment <= ended]
        lines = [f"{self._words.time(moment):>9}  {told}" for moment, told in sorted(turns)]
        return [f"What happened to job {job}:", *lines, *(self._moral(calls, sure=sure) if moral else ())]

    def disordered(self, judgement: Judgement) -> set[str]:
        """Name the jobs in whose scope the destination's log tells that something came late."""
        return self._jobs(judgement, _DISORDER)

    def lost(self, judgement: Judgement) -> set[str]:
        """Name the jobs of which the destination has lost an accepted write, which no late one has replaced."""
        doubted = self.disordered(judgement)
        return {
            job
            for job in self._jobs(judgement, {"I12"}, at="scope ")
            if not any(_late(self._calls[job], sure=job not in doubted)) and not any(_overtaken(self._calls[job]))
        }

    def failing(self, judgement: Judgement) -> dict[str, Call | None]:
        """Give for each job that did not end in time the failed end of its last run, or a call that got no answer."""
        return {job: _stuck(self._calls[job]) for job in sorted(self._jobs(judgement, {"I14"}))}

    def _jobs(self, judgement: Judgement, invariants: Container[str], at: str = "") -> set[str]:
        broken = (result for result in judgement.results if result.invariant in invariants)
        told = (one for result in broken for one in result.violations if one.sentence.startswith(at))
        return {job for violation in told if (job := self._about(violation)) is not None}

    def _about(self, violation: Violation) -> str | None:
        words = violation.sentence.replace(":", " ").split()
        return next((word for word in words if word in self._calls), None)

    def _turn(self, call: Call) -> str:
        under = f" under generation {call.generation}" if call.generation is not None else ""
        if call.call == "claim":
            lost = "" if call.lost is None else f", taking over from generation {call.lost}, whose lease had ended"
            return f"{who(call)} is given generation {call.generation}{lost}"
        if call.owner is None and call.call in MOVES:
            return f"a rival makes it change hands: {call.call}"
        outcome = _OUTCOMES[call.outcome]
        if call.call in ENDINGS:
            why = f" ({call.detail})" if call.detail else ""
            return f"{call.process} ends its run with {call.call}{under}{why}: {outcome} by the store"
        again = f" ({call.detail})" if call.detail else ""
        since = f", sent at {self._words.time(call.sent)}"
        return f"{who(call)}'s {deed(call)}{under}{again}{since}: {outcome} by the destination"

    def _fault(self, fault: Fault) -> Iterator[tuple[float, str]]:
        after = (fault.ended or fault.began) - fault.began
        began, over = (
            words.format(whom=fault.whom, detail=fault.detail, after=after)
            for words in _FAULTS.get(fault.what, ("", ""))
        )
        if began:
            yield fault.began, began
        if over and fault.ended is not None:
            yield fault.ended, over

    def disturbed(self) -> list[str]:
        """List the jobs that were run by more than one worker, or whose workers were refused something."""
        return [
            job
            for job, calls in self._calls.items()
            if len({call.generation for call in calls if call.call == "claim"}) > 1
            or any(call.outcome == "stale" for call in calls)
        ]

    def late_writes(self, judgement: Judgement) -> set[tuple[str, int | None]]:
        """Name, by process and number, the writes in jobs with violations that came late and were accepted."""
        broken = (violation for result in judgement.results for violation in result.violations)
        jobs = {job for violation in broken if (job := self._about(violation)) is not None}
        doubted = self.disordered(judgement)
        late = (call for job in jobs for call, _ in _late(self._calls[job], sure=job not in doubted))
        return {(call.process, call.number) for call in late}

    def _moral(self, calls: list[Call], *, sure: bool) -> Iterator[str]:
        """Name the writes that were accepted although the destination had been told of a newer generation."""
        for late, newer in _late(calls, sure=sure):
            pause = self._pause_within(late)
            why = "" if pause is None else f" It had been stopped for {pause:.1f} s on the way."
            yield (
                f"So: {who(late)}'s {deed(late)} under generation {late.generation} was accepted"
                f" {self._words.when(late)}, although {who(newer)} had told the destination of generation"
                f" {newer.generation} {self._words.when(newer)}.{why} A destination that compares the generation and"
                " writes in one atomic step refuses such a write."
            )
        for late, first in _overtaken(calls):
            yield (
                f"So: {who(late)}'s {deed(late)} under generation {late.generation} was accepted"
                f" {self._words.when(late)}, although its {deed(first)} had been accepted {self._words.when(first)}."
                " A destination that also compares the numbers of writes refuses one that came before, or that another"
                " has overtaken."
            )

    def _pause_within(self, call: Call) -> float | None:
        for began, ended in self._pauses.get(call.process, ()):
            if began <= (call.answered or 0) and ended >= call.sent:
                return ended - began
        return None

    @cached_property
    def _pauses(self) -> dict[str, list[tuple[float, float]]]:
        pauses: dict[str, list[tuple[float, float]]] = {}
        for fault in self._history.faults:
            if fault.what == "pause" and fault.ended is not None:
                pauses.setdefault(fault.whom, []).append((fault.began, fault.ended))
        return pauses


def _stuck(calls: list[Call]) -> Call | None:
    """Find what kept a job from its end: its last run failed, or its destination has not answered it yet."""
    own = [call for call in calls if call.owner is not None and call.call not in {"renew", "effect"}]
    asked = [call for call in own if call.call in FENCED]
    ends = [call for call in own if call.call in ENDINGS and call.outcome == "ok"]
    if ends and ends[-1].call in {"fail", "retry"}:
        return ends[-1]
    return asked[-1] if asked and asked[-1].outcome == "unknown" else None


def _late(calls: list[Call], *, sure: bool) -> Iterator[tuple[Call, Call]]:
    """Find each accepted call that was answered after one of a newer generation, or if `sure`, was sent after it."""
    told = [call for call in calls if call.call in {"raise", "apply"} and call.outcome == "ok"]
    for late in told:
        newer = (
            call
            for call in told
            if (call.generation or 0) > (late.generation or 0)
            and (call.answered or 0) < (late.sent if sure else late.answered or 0)
        )
        first = next(newer, None)
        if first is not None:
            yield late, first


def _overtaken(calls: list[Call]) -> Iterator[tuple[Call, Call]]:
    """Find each accepted write that was sent when it, or a later one, had been accepted; with the last of those."""
    writes = [call for call in calls if (call.call, call.outcome) == ("apply", "ok") and call.sequence is not None]
    for late in writes:
        before = [
            call
            for call in writes
            if call.generation == late.generation
            and (call.sequence or 0) >= (late.sequence or 0)
            and (call.answered or call.sent) <= late.sent
            and call is not late
        ]
        if before:
            yield late, before[-1]
