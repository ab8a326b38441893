"""A refusal is the truth: who is told that its token is stale was superseded, and stays so."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import inf

from tenure.proof.history import Applied, Call
from tenure.proof.judge.evidence import Case, Evidence, latest
from tenure.proof.judge.rights import ROUNDING
from tenure.proof.judge.verdict import Check, Violation, broken
from tenure.proof.judge.words import Words, deed, who
from tenure.proof.needs import RENEWALS


def stale_is_truthful(evidence: Evidence) -> Iterator[Check]:
    """I13: Who is told that its token is stale was superseded before the answer, and is never accepted again."""
    if evidence.meta.durable:  # a loss takes away rights that nothing superseded, and gives back some that were
        for case in evidence.judged:
            for refusal in case.refusals:
                yield _truthful(evidence, case, refusal)
            yield from _stays_stale(case.refusals, case.writes, f"job {case.job}", evidence.words)
    yield from _truthful_at_the_destinations(evidence)


def _truthful(evidence: Evidence, case: Case, refusal: Call) -> Check:
    if refusal.current is not None and refusal.current < (refusal.generation or 0):
        told = _refused(case, refusal, evidence.words)
        return broken(f"{told}, for an older generation, {refusal.current}", refusal)
    claim = case.claim_of(refusal.generation)
    if claim is None or claim.owner != refusal.owner or claim.state == "discarded":
        return None
    if _was_superseded(evidence, case, claim, refusal):
        return None
    return broken(f"{_refused(case, refusal, evidence.words)}, though nothing had superseded it", claim, refusal)


def _refused(case: Case, refusal: Call, words: Words) -> str:
    told = f"job {case.job}: {who(refusal)}'s {deed(refusal)} under generation {refusal.generation}"
    return f"{told} was refused as stale {words.when(refusal)}"


def _was_superseded(evidence: Evidence, case: Case, claim: Call, refusal: Call) -> bool:
    by, generation = latest(refusal), claim.generation or 0
    causes = (case.first_sent_above(generation), case.maybe_ends.get(generation))
    if any(cause is not None and cause.sent <= by for cause in causes) or case.maybe_spans.maybe(claim.sent, by):
        return True
    if evidence.meta.history != "full" and evidence.first_lost_claim <= by:
        return True
    if refusal.call not in RENEWALS or evidence.meta.clock_jumps:
        return refusal.call in RENEWALS
    granted = [grant for grant in case.grants.get(generation, ()) if latest(grant) < refusal.sent]
    return all(grant.sent + (grant.lease or 0.0) - ROUNDING <= by for grant in granted)


def _stays_stale(refusals: list[Call], writes: list[Call], where: str, words: Words) -> Iterator[Check]:
    """See that nothing is accepted after a refusal; a lease that only ended still lets its holder end the run late."""
    if not refusals:
        return
    told: dict[tuple[str | None, int | None, bool], Call] = {}
    for refusal in sorted(refusals, key=latest):
        told.setdefault((refusal.owner, refusal.generation, refusal.call in RENEWALS), refusal)
    for write in writes:
        kinds = (False, True) if write.call in RENEWALS else (False,)
        met = [told.get((write.owner, write.generation, kind)) for kind in kinds]
        earlier = next((one for one in met if one is not None and latest(one) < write.sent), None)
        if any(met):
            yield None if earlier is None else _accepted_again(where, earlier, write, words)


def _accepted_again(where: str, earlier: Call, write: Call, words: Words) -> Violation:
    return broken(
        f"{where}: {who(write)}'s {deed(write)} under generation {write.generation} was accepted {words.when(write)},"
        f" after that token had been refused as stale {words.when(earlier)}",
        earlier,
        write,
    )


def _truthful_at_the_destinations(evidence: Evidence) -> Iterator[Check]:
    refusals, accepted = defaultdict(list), defaultdict(list)
    for call in evidence.fenced:
        place = (call.destination, call.scope or "")
        if call.outcome == "stale" and call.generation is not None:
            refusals[place].append(call)
        elif call.outcome != "fail":
            accepted[place].append(call)
    for place, refused in refusals.items():
        log = evidence.logs.get(place, [])
        if place[0] in evidence.logged:
            met = _Met([*accepted[place], *log])
            for refusal in refused:
                yield _met_something_newer(met, refusal, evidence.words)
        if all(line.act != "reset" for line in log):
            done = [call for call in accepted[place] if call.outcome != "unknown"]
            yield from _stays_stale(refused, done, f"scope {place[1]}", evidence.words)


def _met_something_newer(met: _Met, refusal: Call, words: Words) -> Check:
    if met.by(latest(refusal)) > (refusal.generation or 0):
        return None
    told = f"{who(refusal)}'s {deed(refusal)} under generation {refusal.generation} was refused as stale"
    told = f"{told} {words.when(refusal)}"
    return broken(f"scope {refusal.scope}: {told}, though the destination had met nothing newer", refusal)


class _Met:
    """The generations that a scope can have met, by the moment; a seal counts for a little more than its own."""

    def __init__(self, lines: Iterable[Call | Applied]) -> None:
        met = sorted((_moment(line), _height(line)) for line in lines)
        self._moments = [moment for moment, _ in met]
        self._heights = list(accumulate((height for _, height in met), max))

    def by(self, moment: float) -> float:
        """Return the highest that can have been met by a moment."""
        place = bisect_right(self._moments, moment)
        return self._heights[place - 1] if place else 0.0


def _moment(line: Call | Applied) -> float:
    if isinstance(line, Call):
        return line.sent
    return -inf if line.at is None else line.at


def _height(line: Call | Applied) -> float:
    seals = (line.call if isinstance(line, Call) else line.act) == "seal"
    return (line.generation or 0) + (0.5 if seals else 0.0)
