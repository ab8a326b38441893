"""Plain lives: most jobs are claimed once, kept for a while and completed, and one look shows that all was well.

Where nothing is refused, lost, taken over or done from outside, each invariant asks for the same few facts again and
again. They are looked at here at once, and more strictly: a life that is a little out of the ordinary is not plain, and
goes through every invariant. Only who asks for nothing but violations may leave plain lives out.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from tenure.proof.history import Call, Entry, Row
from tenure.proof.judge.evidence import Case, Evidence
from tenure.proof.needs import RENEWALS
from tenure.protocol.lifecycle import State

_AVAILABLE, _RUNNING, _COMPLETED = State.AVAILABLE, State.RUNNING, State.COMPLETED
_KEPT: Final = RENEWALS | {"progress"}
_ASKED: Final = _KEPT | {"step", "complete"}
_stands = attrgetter("state", "generation", "right", "attempts", "takeovers")
_asked = attrgetter("outcome", "generation", "owner", "process")
_TURNS: Final = 3  # of the shortest plain life: it is enqueued, claimed, completed


def is_plain(evidence: Evidence, case: Case) -> bool:
    """Say whether a job was claimed once, kept by its holder and completed, with nothing that an invariant minds."""
    if case.repeats or case.refusals or case.unknown or case.moves or case.swept:
        return False
    claim = case.claims[0] if len(case.claims) == 1 else None
    if claim is None or case.row is None or claim.outcome != "ok" or claim.lost is not None or not claim.generation:
        return False
    end = _end(case.writes, claim)
    if end is None or end.sent > evidence.first_calm:
        return False
    return (
        all(_lies_within(effect, claim, case.writes) for effect in case.effects)
        and _ends_with(case.row, end)
        and _is_told(case.entries, claim, end.result)
    )


def _end(writes: list[Call], claim: Call) -> Call | None:
    """Find the completion, where it is the last of what the holder of a claim, and nobody else, had accepted."""
    calls = [write.call for write in writes]
    if calls.count("complete") != 1 or calls.count("step") > 1 or not _ASKED.issuperset(calls):
        return None
    right, end = _asked(claim), writes[calls.index("complete")]
    for write in writes:
        if _asked(write) != right or write.sent < claim.sent or end.answered is None or write.sent > end.answered:
            return None
    return end


def _lies_within(effect: Call, claim: Call, writes: list[Call]) -> bool:
    """Say whether an effect began under the claim, before a deadline that it or a renewal until then can bear."""
    moment = effect.answered
    if effect.generation != claim.generation or effect.deadline is None or moment is None or moment < claim.sent:
        return False
    renewals = [write for write in writes if write.call in RENEWALS and write.sent <= moment]
    ends = max([grant.sent + (grant.lease or 0.0) for grant in (claim, *renewals)])
    return effect.sent <= effect.deadline <= ends


def _ends_with(row: Row, end: Call) -> bool:
    stands = (row.state, row.generation, row.result, row.attempts, row.takeovers)
    return stands == (_COMPLETED, end.generation, end.result, 0, 0)


def _is_told(entries: list[Entry], claim: Call, result: object) -> bool:
    """Say whether the store tells the same: enqueued, claimed, kept before each end of the lease, completed."""
    if len(entries) < _TURNS:
        return False
    generation = claim.generation
    first, taken, *kept, last = entries
    if (first.event, first.state, first.attempts, first.takeovers) != ("enqueue", _AVAILABLE, 0, 0):
        return False
    if taken.event != "claim" or _stands(taken) != (_RUNNING, generation, None, 0, 0) or taken.owner != claim.owner:
        return False
    until = taken.until
    for entry in kept:
        if entry.event not in _KEPT or _stands(entry) != (_RUNNING, generation, generation, 0, 0):
            return False
        if entry.owner != claim.owner or entry.at is None or until is None or entry.until is None or entry.at >= until:
            return False
        until = entry.until
    ended = last.event == "complete" and last.owner in {None, claim.owner} and last.result == result
    return ended and _stands(last) == (_COMPLETED, generation, generation, 0, 0)
