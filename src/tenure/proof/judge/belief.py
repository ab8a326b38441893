"""Belief: a holder stops believing before the next one can begin, and starts nothing once it has stopped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from tenure.proof.history import Call
from tenure.proof.judge.evidence import Case, Evidence, highest_so_far, latest
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import Words, some, who
from tenure.proof.needs import ENDINGS


def belief_ends_before_the_next_claim(evidence: Evidence) -> Iterator[Check]:
    """I7: A holder's belief in its lease ends before the next claim takes the job over, on the judge's clock."""
    for case in evidence.cases.values():
        stopped = _stopped(case)
        for claim in case.claims:
            if claim.outcome == "ok" and claim.lost is not None:
                yield from _believes_alone(case, claim, stopped.get(claim.lost), evidence.words)


def _stopped(case: Case) -> dict[int, float]:
    """Return when the holder of each generation stopped by itself: when it sent the end of its run."""
    stopped: dict[int, float] = {}
    for end in (*case.writes, *case.repeats, *case.refusals, *case.unknown):
        if end.call in ENDINGS and end.generation is not None:
            stopped[end.generation] = min(end.sent, stopped.get(end.generation, end.sent))
    return stopped


def _believes_alone(case: Case, claim: Call, stopped: float | None, words: Words) -> Iterator[Check]:
    grants = [grant for grant in case.grants.get(claim.lost or 0, ()) if grant.deadline is not None]
    if not grants:
        return
    longest = max(grants, key=lambda grant: grant.deadline or 0.0)
    until = longest.deadline or 0.0
    until = until if stopped is None else min(until, stopped)
    if until <= latest(claim):
        yield None
        return
    yield broken(
        f"job {case.job}: {who(longest)} believed in generation {longest.generation} until {words.time(until)}, but"
        f" {who(claim)} had taken over with generation {claim.generation} {words.when(claim)}: two believers for"
        f" {until - latest(claim):.3f} s",
        longest,
        claim,
    )


def no_effect_after_the_deadline(evidence: Evidence) -> Iterator[Check]:
    """I16: No guarded effect starts after its holder's own deadline, and that deadline lies within a granted lease."""
    for case in evidence.cases.values():
        grants = {generation: _Granted(given) for generation, given in case.grants.items()} if case.effects else {}
        for effect in case.effects:
            granted = grants.get(effect.generation or 0)
            yield _started_in_time(evidence, case, effect, granted.last(latest(effect)) if granted else None)


def _started_in_time(evidence: Evidence, case: Case, effect: Call, grant: Call | None) -> Check:
    wrong = _started_wrongly(evidence, effect, grant)
    if wrong is None:
        return None
    started = f"job {case.job}: {who(effect)} started an effect under generation {effect.generation}"
    return broken(f"{started} {evidence.words.at(effect.sent)}, {wrong}", grant, effect)


def _started_wrongly(evidence: Evidence, effect: Call, grant: Call | None) -> str | None:
    if grant is None:
        lost = evidence.lost_claims.get(str(effect.owner))
        return None if lost else "which had never been given to anybody by then"
    deadline = _end(grant) if effect.deadline is None else effect.deadline
    if effect.sent > deadline:
        return f"{effect.sent - deadline:.3f} s after it had stopped believing in its lease"
    beyond = deadline - _lease_end(grant)
    if beyond > 0 and not evidence.meta.clock_jumps:
        return f"believing {beyond:.3f} s longer than any lease that it was given"
    return None


class _Granted:
    """The grants of one generation, to be asked for the one that reaches furthest among those sent by a moment.

    That moment is when the gate had opened: a renewal may come in while its holder stands before it.
    """

    def __init__(self, grants: list[Call]) -> None:
        self._sents = [grant.sent for grant in grants]
        self._furthest = highest_so_far(grants, _lease_end)

    def last(self, moment: float) -> Call | None:
        place = bisect_right(self._sents, moment)
        return self._furthest[place - 1] if place else None


def _lease_end(grant: Call) -> float:
    return grant.sent + (grant.lease or 0.0)


def _end(grant: Call) -> float:
    return _lease_end(grant) if grant.deadline is None else grant.deadline


def slips(evidence: Evidence) -> list[str]:
    """Tell how long it took from a gate to its write, and what became of writes sent after the deadline (I16)."""
    gates = {
        (effect.job, effect.generation, effect.sequence): effect
        for case in evidence.cases.values()
        for effect in case.effects
    }
    writes = [call for call in evidence.fenced if call.call == "apply" and call.sequence is not None]
    passed = [(write, gates.get((write.job, write.generation, write.sequence))) for write in writes]
    gaps = [(write, gate) for write, gate in passed if gate is not None and write.sent >= gate.sent]
    if not gaps:
        return []
    longest = max(write.sent - gate.sent for write, gate in gaps)
    late = [write for write, gate in gaps if gate.deadline is not None and write.sent > gate.deadline]
    refused = sum(write.outcome in {"stale", "fail"} for write in late)
    newest = sum(write.outcome == "ok" and _is_newest(evidence, write) for write in late)
    told = f"after the deadline of its gate {some(len(late), 'write')} went out: {refused} refused, {newest} applied"
    told += " before anybody newer had asked for the job"
    return [f"from a gate to its write it took {longest:.3f} s at most; {told}"]


def _is_newest(evidence: Evidence, write: Call) -> bool:
    """Tell whether no newer claim of the job that is known had been sent before the write was answered."""
    case = evidence.cases.get(str(write.job))
    claims = () if case is None else case.claims
    return not any(
        (claim.generation or 0) > (write.generation or 0) and claim.sent <= latest(write) for claim in claims
    )
