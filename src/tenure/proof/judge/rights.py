"""Rights: who is accepted holds the job, nobody takes what another holds, and a handle is used by one process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tenure.proof.history import Call, Entry
from tenure.proof.judge.evidence import Case, Evidence, latest, precedes, right_of, sent
from tenure.proof.judge.settled import CLAIMS, is_operators
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import deed, turn, who
from tenure.proof.needs import WRITES

ROUNDING = 0.002
"""Seconds that a store which counts in whole milliseconds may take off a lease."""


def only_the_holder_is_accepted(evidence: Evidence) -> Iterator[Check]:
    """I3: Whoever's write was accepted owned the job just before, under this generation and no other."""
    for case in evidence.judged:
        for write in case.writes:
            reason = _why_not_the_holder(evidence, case, write)
            if reason is None:
                yield None
                continue
            text, cause = reason
            yield broken(
                f"job {case.job}: {who(write)}'s {deed(write)} under generation {write.generation} was accepted"
                f" {evidence.words.when(write)}, though {text}",
                write,
                cause,
            )
        yield from _accepted_in_the_store(case)


def _why_not_the_holder(evidence: Evidence, case: Case, write: Call) -> tuple[str, Call | None] | None:
    claim = case.claim_of(write.generation)
    if claim is None or claim.owner != write.owner:
        return f"{who(write)} never was given that generation", claim
    if precedes(write, claim):
        return f"{who(write)} asked for that generation only {evidence.words.at(claim.sent)}", claim
    newer = case.first_granted_above(write.generation or 0)
    ends = case.ends.get(write.generation or 0, ())
    moved = case.spans.surely(latest(claim), write.sent) if case.moves else None
    for cause in (newer, *ends, moved):
        if cause is not None and cause is not write and precedes(cause, write):
            return evidence.words.did(cause), cause
    return None


def _accepted_in_the_store(case: Case) -> Iterator[Check]:
    before: Entry | None = None
    for entry in case.entries:
        if entry.generation is None:
            continue
        if entry.event in WRITES and not is_operators(entry) and before is not None and before.state is not None:
            right = right_of(entry)
            strangers = None not in {entry.owner, before.owner} and entry.owner != before.owner
            if before.state == "running" and before.generation == right and not strangers:
                yield None
            else:
                yield broken(
                    f"job {case.job}: the store's history tells that {who(entry)}'s {entry.event} under generation"
                    f" {right} was accepted while the job was {before.state} under generation {before.generation}",
                    before,
                    entry,
                )
        before = entry


def nobody_claims_what_is_held(evidence: Evidence) -> Iterator[Check]:
    """I6: By the store's clock, no claim succeeds before the lease before it ended, unless that right was given up."""
    for case in evidence.judged:
        if evidence.meta.durable:  # what was answered before a loss says nothing of the claims after it
            yield from _taken_as_answered(evidence, case)
        yield from _taken_in_the_store(case)


def _taken_as_answered(evidence: Evidence, case: Case) -> Iterator[Check]:
    for claim in case.claims:
        if claim.outcome != "ok":
            continue
        if claim.lost is None:
            yield from _claimed_as_waiting(evidence, case, claim)
        elif not evidence.meta.clock_jumps:
            yield from _taken_over(evidence, case, claim)


def _taken_over(evidence: Evidence, case: Case, claim: Call) -> Iterator[Check]:
    for grant in case.grants.get(claim.lost or 0, ()):
        early = grant.sent + (grant.lease or 0.0) - ROUNDING - latest(claim)
        if grant.outcome != "ok" or early <= 0:
            yield None
            continue
        yield broken(
            f"job {case.job}: {who(claim)} took over from generation {claim.lost} {evidence.words.when(claim)}, at"
            f" least {early:.3f} s before the lease ended that {who(grant)}'s {deed(grant)} had given it"
            f" {evidence.words.when(grant)}",
            grant,
            claim,
        )


def _claimed_as_waiting(evidence: Evidence, case: Case, claim: Call) -> Iterator[Check]:
    before = case.before(claim)
    if before is None or before.state == "discarded" or precedes(claim, before):
        return
    ended = _ended_between(case, before, claim) or case.maybe_spans.maybe(before.sent, latest(claim))
    if ended is not None:
        yield None
    else:
        yield broken(
            f"job {case.job}: {who(claim)} was given generation {claim.generation} {evidence.words.when(claim)} as if"
            f" nobody held the job, though nothing had ended generation {before.generation} of {who(before)}",
            before,
            claim,
        )


def _ended_between(case: Case, before: Call, claim: Call) -> Call | None:
    """Find an end of the run before, or of one in between whose claim is not known."""
    place = bisect_left(case.ended_generations, before.generation or 0)
    for generation in case.ended_generations[place:]:
        if generation >= (claim.generation or 0):
            return None
        if case.maybe_ends[generation].sent <= latest(claim):
            return case.maybe_ends[generation]
    return None


def _taken_in_the_store(case: Case) -> Iterator[Check]:
    before: Entry | None = None
    until: float | None = None
    for entry in case.entries:
        if entry.event in CLAIMS and before is not None and before.state is not None:
            problem = _taken_wrongly(entry, before, until)
            if problem is None:
                yield None
            else:
                told = f"the store's history tells of {turn(entry)}"
                yield broken(f"job {case.job}: {told} with generation {entry.generation}{problem}", before, entry)
        if entry.state is not None:
            before = entry
            until = entry.until if entry.state == "running" and entry.until is not None else until


def _taken_wrongly(entry: Entry, before: Entry, until: float | None) -> str | None:
    if before.state != ("running" if entry.event == "takeover" else "available"):
        return f" while the job was {before.state} under generation {before.generation}"
    if entry.event == "takeover" and None not in {until, entry.at} and entry.at < until:  # type: ignore[operator]
        return f", {until - entry.at:.3f} s before the lease of generation {before.generation} ended"  # type: ignore[operator]
    return None


def one_holder_of_a_handle(evidence: Evidence) -> Iterator[Check]:
    """I17: Of two processes that hold one handle, as after a fork, at most one is accepted under a version of it."""
    for case in evidence.judged:
        users: dict[tuple[int | None, int | None], dict[str, Call]] = {}
        for write in sorted(case.writes, key=sent):
            users.setdefault((write.generation, write.version), {}).setdefault(write.process, write)
        for (generation, _), firsts in users.items():
            if len(firsts) == 1:
                yield None
                continue
            used = " and ".join(f"{one.process} ({one.call} {evidence.words.when(one)})" for one in firsts.values())
            yield broken(
                f"job {case.job}: {len(firsts)} processes used generation {generation}, and all were accepted: {used}",
                *firsts.values(),
            )
