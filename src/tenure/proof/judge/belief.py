"""Belief: a holder stops believing before the next one can begin, and starts nothing once it has stopped."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from math import inf

from tenure.proof.history import Applied, Call
from tenure.proof.judge.evidence import Case, Evidence, highest_so_far, latest, precedes
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import Words, some, who
from tenure.proof.needs import ENDINGS, RENEWALS


def belief_ends_before_the_next_claim(evidence: Evidence) -> Iterator[Check]:
    """I7: A holder's belief in its lease ends before the next claim takes the job over, on the judge's clock."""
    for case in evidence.judged:
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
    for case in evidence.judged:
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
    """Tell how long it took from a gate to its write, and what became of writes that were sent too late (I16)."""
    passed = list(_passed(evidence))
    if not passed:
        return []
    longest = max(write.sent - gate.sent for write, gate in passed)
    late = late_writes(evidence)
    told = f"after the deadline of their lease, or a newer claim, {some(len(late), 'write')} went out"
    fates = Counter(late.values())
    told += "".join(f"{', ' if place else ': '}{fates[fate]} {fate}" for place, fate in enumerate(_told(fates)))
    return [f"from a gate to its write it took {longest:.3f} s at most; {told}"]


REFUSED, REPEATED, FAILED, UNKNOWN = "refused", "told that it was done before", "failed", "without an answer"
BEFORE = "accepted before anybody newer had raised its generation there"
MEANWHILE = "accepted before or after somebody newer had raised its generation there"
AFTER = "accepted after somebody newer had raised its generation there"
_FATES = {"stale": REFUSED, "already": REPEATED, "fail": FAILED, "unknown": UNKNOWN}


def _told(fates: Counter[str]) -> Iterator[str]:
    return (fate for fate in (REFUSED, BEFORE, MEANWHILE, AFTER, REPEATED, FAILED, UNKNOWN) if fates[fate])


def _passed(evidence: Evidence) -> Iterator[tuple[Call, Call]]:
    """Pair the writes with their gates."""
    gates = {
        (effect.job, effect.generation, effect.sequence): effect
        for case in evidence.cases.values()
        for effect in case.effects
    }
    for write in evidence.fenced:
        gate = gates.get((write.job, write.generation, write.sequence))
        if write.call == "apply" and write.sequence is not None and gate is not None and write.sent >= gate.sent:
            yield write, gate


def late_writes(evidence: Evidence) -> dict[tuple[str, float], str]:
    """Tell of each write that was sent after its deadline, or a newer claim, by process and moment its fate."""
    late = [
        write
        for write, gate in _passed(evidence)
        if write.sent > _believed_until(evidence, write, gate) or _superseded(evidence, write)
    ]
    if not late:
        return {}
    raises: dict[tuple[str, str | None], list[Call]] = {}
    for call in evidence.fenced:
        if call.outcome not in {"stale", "fail"}:
            raises.setdefault((call.destination, call.scope), []).append(call)
    return {
        (write.process, write.sent): _fate(evidence, write, told)
        if write.outcome == "ok" or _alone_in_the_log(evidence, write, told)
        else _FATES[write.outcome]
        for write in late
        for told in [raises.get((write.destination, write.scope), [])]
    }


def _alone_in_the_log(evidence: Evidence, write: Call, told: list[Call]) -> bool:
    """Tell whether the log has a write that was never answered, and has it of no other call that sent the same."""
    log = evidence.logs.get((write.destination, str(write.scope)), ())
    if write.outcome != "unknown" or not any(_is_of(line, write) for line in log):
        return False
    same = [one for one in told if _same(one, write) and one is not write]
    return not any(one.outcome == "ok" or one.sent < write.sent for one in same if one.outcome != "already")


def _superseded(evidence: Evidence, write: Call) -> bool:
    newer = evidence.cases[str(write.job)].first_granted_above(write.generation or 0)
    return newer is not None and precedes(newer, write)


def _believed_until(evidence: Evidence, write: Call, gate: Call) -> float:
    """Return when the sender of a write had to stop, as far as it was told when it sent."""
    given = evidence.cases[str(write.job)].grants.get(write.generation or 0, ())
    known = [_end(grant) for grant in given if latest(grant) <= write.sent]
    if gate.deadline is not None:
        renewed = [_end(one) for one in given if one.call in RENEWALS and gate.sent < latest(one) <= write.sent]
        known = [gate.deadline, *renewed]
    return max(known, default=inf)


def _fate(evidence: Evidence, write: Call, told: list[Call]) -> str:
    """Tell whether a late write was accepted before anybody newer had been there, by the log where there is one."""
    newer = [call for call in told if (call.generation or 0) > (write.generation or 0) and call.sent <= latest(write)]
    if not newer:
        return BEFORE
    log = evidence.logs.get((write.destination, str(write.scope)), [])
    here = next((place for place, line in enumerate(log) if _is_of(line, write)), None)
    first = next((place for place, line in enumerate(log) if (line.generation or 0) > (write.generation or 0)), None)
    if here is not None and first is not None and first < here:
        return AFTER
    announced = here is not None and any(line.act == "raise" for line in log)
    if announced:
        return BEFORE
    return AFTER if any(call.outcome == "ok" and latest(call) < write.sent for call in newer) else MEANWHILE


def _is_of(line: Applied, write: Call) -> bool:
    return line.act == "apply" and _right(line) == _right(write)


def _same(one: Call, other: Call) -> bool:
    return one.call == other.call and _right(one) == _right(other)


def _right(line: Applied | Call) -> tuple[str | None, int | None, int | None]:
    return line.job, line.generation, line.sequence
