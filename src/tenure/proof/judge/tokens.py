"""Tokens: they rise, they have one owner, and none that was given out is lost."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.proof.history import Call, Entry, Row
from tenure.proof.judge.evidence import Case, Evidence, latest
from tenure.proof.judge.settled import CLAIMS
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import Words, turn, who


def generations_rise(evidence: Evidence) -> Iterator[Check]:
    """I1: The generations of a job rise strictly from claim to claim, whatever became of the job in between."""
    for case in evidence.judged:
        yield from _rise_as_answered(case, evidence.words)
        yield from _rise_in_the_store(case)


def _rise_as_answered(case: Case, words: Words) -> Iterator[Check]:
    answered = sorted(case.claims, key=latest)
    place, highest = 0, None
    for claim in case.claims_as_sent:
        while latest(answered[place]) < claim.sent:
            if highest is None or _generation(answered[place]) > _generation(highest):
                highest = answered[place]
            place += 1
        if highest is None or _generation(highest) < _generation(claim):
            yield None
        else:
            yield broken(
                f"job {case.job}: {who(claim)} was given generation {claim.generation} {words.when(claim)}, after"
                f" {words.granted(highest)}",
                highest,
                claim,
            )


def _rise_in_the_store(case: Case) -> Iterator[Check]:
    before: Entry | None = None
    for entry in case.entries:
        if entry.event not in CLAIMS or entry.generation is None:
            continue
        if before is None or before.generation is None or before.generation < entry.generation:
            yield None
        else:
            yield broken(
                f"job {case.job}: the store's history tells of {turn(entry)} with generation"
                f" {entry.generation}, after one by {who(before)} with generation {before.generation}",
                before,
                entry,
            )
        before = entry


def a_token_has_one_owner(evidence: Evidence) -> Iterator[Check]:
    """I2: A generation of a job is given to one owner, once."""
    for case in evidence.judged:
        first: dict[int, Call] = {}
        for claim in case.claims_as_sent:
            met = first.setdefault(_generation(claim), claim)
            if met is claim:
                yield None
                continue
            yield broken(
                f"job {case.job}: generation {claim.generation} was given to {who(met)} {evidence.words.when(met)} and"
                f" to {who(claim)} {evidence.words.when(claim)}",
                met,
                claim,
            )


def no_claim_is_lost(evidence: Evidence) -> Iterator[Check]:
    """I5: No acknowledged claim is lost: what the store knows in the end is not older than any token it gave out."""
    for case in evidence.judged:
        told = {entry.generation for entry in case.entries if entry.event in CLAIMS}
        for claim in case.claims:
            if claim.outcome != "ok":
                continue
            if case.row is not None and not case.pruned:
                yield _against_the_row(case, case.row, claim, evidence.words)
            if evidence.meta.history == "full":
                yield _against_the_history(case, claim, told, evidence.words)


def _against_the_row(case: Case, row: Row, claim: Call, words: Words) -> Check:
    if case.is_gone:
        stands = "the job is gone and nobody pruned it"
    elif row.generation is not None and row.generation < _generation(claim):
        stands = f"the store knows only generation {row.generation}"
    else:
        return None
    given = f"{who(claim)} was given generation {claim.generation} {words.when(claim)}"
    return broken(f"job {case.job}: {given}, but in the end {stands}", claim, row)


def _against_the_history(case: Case, claim: Call, told: set[int | None], words: Words) -> Check:
    if claim.generation in told:
        return None
    given = f"{who(claim)} was given generation {claim.generation} {words.when(claim)}"
    return broken(f"job {case.job}: {given}, but the store's history does not tell of it", claim)


def _generation(claim: Call) -> int:
    return claim.generation or 0
