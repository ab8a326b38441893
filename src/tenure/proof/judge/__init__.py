"""The judge: goes through a history once for each invariant and says, in words, what contradicts it.

    judgement = judge(read([Path("history.jsonl")]))
    judgement.good, judgement["I9"].violations

Each invariant is one function over the evidence that yields its checks one by one: None for a check that held, a
`Violation` for one that did not. Its docstring is its promise. `INVARIANTS` is the table of all of them, with what each
needs of a run to be asserted at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from tenure.errors import Misuse
from tenure.proof.history import Call, History
from tenure.proof.judge import belief, destinations, lives, replay, rights, stale, tokens, whole
from tenure.proof.judge.evidence import Evidence, latest
from tenure.proof.judge.plain import is_plain
from tenure.proof.judge.settled import settle
from tenure.proof.judge.verdict import Check, Judgement, Result, Verdict, Violation
from tenure.proof.needs import ENDINGS, RENEWALS, check_call

__all__ = ["INVARIANTS", "Judgement", "Result", "Verdict", "Violation", "broken_in", "judge"]


_KEPT, _UNASSERTED = Verdict.KEPT, Verdict.UNASSERTED


def _always(_evidence: Evidence) -> str | None:
    return None


def _durable(evidence: Evidence) -> str | None:
    return None if evidence.meta.durable else "the store's class may lose what it acknowledged"


def _durable_or_told(evidence: Evidence) -> str | None:
    return None if evidence.history.entries else _durable(evidence)


def _durable_or_fenced(evidence: Evidence) -> str | None:
    return None if evidence.fenced else _durable(evidence)


def _steady_clocks(evidence: Evidence) -> str | None:
    return "clocks jump, stand still or run at wrong rates in this run" if evidence.meta.clock_jumps else None


def _calm(evidence: Evidence) -> str | None:
    return None if evidence.history.calms else "the faults never stopped in this run"


def _no_clones(evidence: Evidence) -> str | None:
    return (
        "whole processes are copied in this run, which the destination has to notice" if evidence.meta.clones else None
    )


def _full_history(evidence: Evidence) -> str | None:
    tells = {"abnormal": "the store's history tells abnormal turns only", "none": "the store's history is not told"}
    return tells.get(evidence.meta.history)


@dataclass(frozen=True)
class Invariant:
    """One line of the table: its number, its check, why a run does not assert it, and what it looks at."""

    number: str
    check: Callable[[Evidence], Iterator[Check]]
    about: str
    why_not: Callable[[Evidence], str | None] = _always

    @cached_property
    def promise(self) -> str:
        """The invariant as one sentence: the docstring of its check."""
        return (self.check.__doc__ or "").removeprefix(f"{self.number}: ")


INVARIANTS: tuple[Invariant, ...] = (
    Invariant("I1", tokens.generations_rise, "claims"),
    Invariant("I2", tokens.a_token_has_one_owner, "claims"),
    Invariant("I3", rights.only_the_holder_is_accepted, "accepted writes of owners"),
    Invariant("I4", lives.completed_once, "completions"),
    Invariant("I5", tokens.no_claim_is_lost, "claims and the rows in the end", _durable),
    Invariant("I6", rights.nobody_claims_what_is_held, "second claims of a job", _durable_or_told),
    Invariant("I7", belief.belief_ends_before_the_next_claim, "takeovers and deadlines", _steady_clocks),
    Invariant("I8", destinations.newer_beats_older, "destinations' logs"),
    Invariant("I9", destinations.no_update_is_lost, "writes that were computed from a version"),
    Invariant("I10", destinations.applied_once_per_key, "idempotency keys"),
    Invariant("I11", destinations.nothing_after_the_end, "destinations' logs"),
    Invariant("I12", whole.whole_or_not_at_all, "calls whose answer was lost"),
    Invariant("I13", stale.stale_is_truthful, "refusals", _durable_or_fenced),
    Invariant("I14", lives.ends_in_time, "rows in the end", _calm),
    Invariant("I15", lives.tries_are_counted, "the counters of rows"),
    Invariant("I16", belief.no_effect_after_the_deadline, "guarded effects"),
    Invariant("I17", rights.one_holder_of_a_handle, "accepted writes of owners", _no_clones),
    Invariant("I18", replay.history_gives_the_rows, "turns of jobs' lives", _full_history),
)
"""Every invariant of the protocol, in its order."""


def judge(history: History) -> Judgement:
    """Judge a run; raises Misuse where a line does not tell what it must, or the run names an unknown invariant."""
    evidence = _evidence_in(history)
    results = _results(evidence)
    good = all(result.good for result in results)
    return Judgement(good, results, _counts(history), _notes(evidence))


def broken_in(history: History) -> list[Result]:
    """Judge a run, and return no more than what speaks against it; raises what `judge` does."""
    evidence = _evidence_in(history)
    evidence.judged = [case for case in evidence.cases.values() if not is_plain(evidence, case)]
    return [result for result in _results(evidence) if not result.good]


def _evidence_in(history: History) -> Evidence:
    unknown = set(history.meta.must_fail) - {invariant.number for invariant in INVARIANTS}
    if unknown:
        raise Misuse(f"{history.meta.place or 'meta'}: must_fail names {', '.join(sorted(unknown))}, no invariant")
    for call in history.calls:
        check_call(call)
    evidence = Evidence(history)
    settle(evidence)
    return evidence


def _results(evidence: Evidence) -> tuple[Result, ...]:
    return tuple([_assert(invariant, evidence) for invariant in INVARIANTS])


def _notes(evidence: Evidence) -> tuple[str, ...]:
    return (*evidence.history.notes, *whole.unlogged(evidence), *belief.slips(evidence))


def _assert(invariant: Invariant, evidence: Evidence) -> Result:
    must_fail = invariant.number in evidence.meta.must_fail
    because = None if must_fail else invariant.why_not(evidence)
    checks = [] if because else list(invariant.check(evidence))
    violations = tuple(filter(None, checks))
    if must_fail:
        verdict = Verdict.MUST_FAIL if violations else Verdict.IDLE
        because = "this run is made to break it" + ("" if violations else ", and nothing did")
    elif not checks:
        verdict = _UNASSERTED
        because = because or f"the history tells of no {invariant.about}"
    else:
        verdict = Verdict.BROKEN if violations else _KEPT
    return Result(invariant.number, invariant.promise, verdict, len(checks), violations, because)


def _counts(history: History) -> dict[str, int]:
    """Count what a run has to have met before its verdict means much."""
    outcomes = [call.outcome for call in history.calls]
    accepted = [call for call in history.calls if call.outcome == "ok" and call.job is not None]
    claims = [call for call in accepted if call.call == "claim"]
    refused = [call for call in history.calls if call.outcome == "stale"]
    crossed = _crossed(history.calls, refused)
    return {
        "calls": len(outcomes),
        "claims": len(claims),
        "takeovers": len([claim for claim in claims if claim.lost is not None]),
        "completions": len([call for call in accepted if call.call == "complete"]),
        "writes applied": len([line for line in history.applied if line.act == "apply"]),
        "refused as stale": len(refused) - crossed,
        "renewals after the end of their run": crossed,
        "answers lost": outcomes.count("unknown"),
        "faults": len(history.faults),
    }


def _crossed(calls: Sequence[Call], refused: Sequence[Call]) -> int:
    """Count the refused renewals that met the end which their own holder had given that run: nobody was late there."""
    ends: dict[tuple[str | None, int | None, str | None], float] = {}
    for call in calls:
        if call.call in ENDINGS and call.outcome in {"ok", "already"}:
            right = (call.job, call.generation, call.owner)
            ends[right] = min(call.sent, ends.get(right, inf))
    renewals = [call for call in refused if call.call in RENEWALS]
    return sum(ends.get((call.job, call.generation, call.owner), inf) <= latest(call) for call in renewals)
