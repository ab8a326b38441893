"""What became of calls whose answer was lost: each happened whole or not at all, and the store's history says which.

Nothing is searched: each call is looked up on its own. Where the store's history does not reach, a call stays open, and
the invariants give it the benefit of the doubt: it may have ended a right, but nothing relies on it.
"""

from __future__ import annotations

from msgspec.structs import replace

from tenure.proof.history import Call, Entry, Meta, Row
from tenure.proof.judge.evidence import Case, Evidence
from tenure.proof.needs import ENDINGS, MOVES

CLAIMS: frozenset[str] = frozenset({"claim", "takeover"})


def settle(evidence: Evidence) -> None:
    """Sort the calls without an answer of every case into what happened, what did not, and what stays open."""
    for case in evidence.cases.values():
        if case.unknown:
            _settle_writes(evidence, case)
        if evidence.lost_claims:
            _settle_claims(evidence, case)


def _settle_writes(evidence: Evidence, case: Case) -> None:
    # Of calls that were repeated because their answers were lost, the first stands for all: one of them did it.
    first = {(call.call, call.generation, call.key): call for call in reversed(case.unknown)}
    for call in first.values():
        happened = _happened(case, call, evidence.meta)
        if happened is None:
            case.open.append(call)
        elif happened:
            case.writes.append(call)


def is_operators(entry: Entry) -> bool:
    """Say whether an operator did this: it needed no right, or raised the generation above the one that it ended."""
    if entry.event not in MOVES or entry.owner is not None:
        return False
    return entry.event == "prune" or entry.right is None or entry.generation not in {None, entry.right}


def tells(meta: Meta, case: Case, event: str) -> bool:
    """Say whether the store's history would tell of such an end, had it happened to this job."""
    if meta.history == "abnormal":
        # It names no completions, and goes with the row when that is pruned.
        return event != "complete" and case.row is not None and not case.is_gone and not case.pruned
    return meta.history == "full"


def _happened(case: Case, call: Call, meta: Meta) -> bool | None:
    right = (call.call, call.generation)
    if call.call not in ENDINGS:
        return None
    answers = {one.outcome for one in case.asked[right]}
    if answers & {"ok", "already"}:
        # Accepted for the first time with another answer, or answered later that it stood there already.
        return "ok" not in answers
    if any(not is_operators(entry) for entry in case.told.get(right, ())):
        return None if meta.history != "full" and _by_an_operator(case, call) else True
    return False if tells(meta, case, call.call) else _by_the_row(case, call)


def _by_an_operator(case: Case, call: Call) -> bool:
    return any(move.call == call.call for move in case.moves)


def _by_the_row(case: Case, call: Call) -> bool | None:
    row = case.row
    if row is None or row.state is None or row.generation is None or case.pruned:
        return None
    if (row.generation, row.ended) == (call.generation, call.call):
        return True
    if call.call == "complete":
        return row.state == "completed" and row.generation == call.generation
    return None


def _settle_claims(evidence: Evidence, case: Case) -> None:
    """Find the claims that were granted although nobody was told, by what their owner did and what the store says."""
    known = {(claim.owner, claim.generation) for claim in case.claims}
    hints: list[Call | Entry | Row] = [*case.writes, *(one for one in case.entries if one.event in CLAIMS)]
    if case.row is not None and case.row.state == "running":
        hints.append(case.row)
    hints = [hint for hint in hints if hint.generation is not None and (hint.owner, hint.generation) not in known]
    for hint in sorted(hints, key=lambda hint: hint.owner is None):
        if (hint.owner, hint.generation) in known:
            continue
        claim = _lost_claim(evidence, hint, {generation for _, generation in known})
        if claim is not None:
            known.add((claim.owner, hint.generation))
            state = None if isinstance(hint, Call) else hint.state
            case.claims.append(replace(claim, job=case.job, generation=hint.generation, state=state))


def _lost_claim(evidence: Evidence, hint: Call | Entry | Row, known: set[int | None]) -> Call | None:
    """Find the claim without an answer that explains a hint; where nobody says whose it was, the first of all does."""
    if hint.owner is not None:
        return next(iter(evidence.lost_claims.get(hint.owner, ())), None)
    lost = [] if hint.generation in known else [claims[0] for claims in evidence.lost_claims.values()]
    first = min(lost, key=lambda claim: claim.sent, default=None)
    return first and replace(first, owner=None, worker=hint.worker, process="somebody")
