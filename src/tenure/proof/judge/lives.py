"""Lives: a job completes once, its tries are counted, and once nothing is disturbed any more it comes to its end."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.proof.history import Call, Calm, Row
from tenure.proof.judge.evidence import Case, Evidence, latest, precedes
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import Words, shown, some, who
from tenure.protocol import lifecycle

_LIVE: frozenset[str] = frozenset(map(str, lifecycle.LIVE))
_FAILURES: frozenset[str] = frozenset(
    str(verb) for verb in lifecycle.ENDINGS if lifecycle.ending(verb).counts is lifecycle.Counter.ATTEMPTS
)
_COMING_BACK: frozenset[str] = frozenset(
    str(verb) for verb in lifecycle.ENDINGS if lifecycle.ending(verb).target is lifecycle.State.AVAILABLE
)


def completed_once(evidence: Evidence) -> Iterator[Check]:
    """I4: At most one completion of a job is accepted, by the token that the row keeps; a repeat gets its result."""
    for case in evidence.judged:
        completions = [write for write in case.writes if write.call == "complete"]
        yield from _one_completion(case, completions, evidence.words)
        for completion in completions:
            if completion.outcome == "ok" and not case.pruned and case.row is not None:
                yield _completion_stands(case.row, completion, evidence.words)
        yield from _repeats(case, completions, evidence.words)


def _one_completion(case: Case, completions: list[Call], words: Words) -> Iterator[Check]:
    first: Call | None = None
    for completion in completions:
        if first is None or case.pruned:
            yield None
        else:
            yield broken(
                f"job {case.job} completed twice: {who(first)} under generation {first.generation} {words.when(first)},"
                f" and {who(completion)} under generation {completion.generation} {words.when(completion)}",
                first,
                completion,
            )
        first = first or completion


def _completion_stands(row: Row, completion: Call, words: Words) -> Check:
    if row.state != "completed":
        stands = "gone" if row.state is None else str(row.state)
    elif row.generation not in {None, completion.generation}:
        stands = f"completed under generation {row.generation}"
    elif completion.result is not None and row.result != completion.result:
        stands = f"completed with the result {shown(row.result)} instead of {shown(completion.result)}"
    else:
        return None
    told = f"{who(completion)}'s completion under generation {completion.generation} was accepted"
    return broken(
        f"job {row.job}: {told} {words.when(completion)}, but in the end the job is {stands}", completion, row
    )


def _repeats(case: Case, completions: list[Call], words: Words) -> Iterator[Check]:
    repeats = [repeat for repeat in case.repeats if repeat.call == "complete" and repeat.result is not None]
    for repeat in repeats if not case.pruned else ():
        sources = [one for one in completions if one.generation == repeat.generation]
        stored = [case.row] if case.row is not None and case.row.state == "completed" else sources or repeats[:1]
        if any(source.result == repeat.result for source in stored):
            yield None
            continue
        yield broken(
            f"job {case.job}: {who(repeat)} repeated its completion under generation {repeat.generation} and was"
            f" answered {shown(repeat.result)} {words.when(repeat)}, but the result is {shown(stored[0].result)}",
            repeat,
            *stored,
        )


def tries_are_counted(evidence: Evidence) -> Iterator[Check]:
    """I15: Attempts are the runs that failed, takeovers those whose worker was lost; neither exceeds its maximum."""
    lost = 0 if evidence.meta.history == "full" else sum(len(claims) for claims in evidence.lost_claims.values())
    for case in evidence.judged:
        row = case.row
        if row is None or row.state is None:
            continue
        if row.attempts is not None:
            failures = [write for write in case.writes if write.call in _FAILURES]
            maybe = [call for call in case.open if call.call in _FAILURES]
            yield _counted(case, row, "attempt", row.attempts, _since_the_restart(case, failures, maybe))
            yield _bounded(row, "attempt", row.attempts, row.max_attempts)
        if row.takeovers is not None:
            taken = [claim for claim in case.claims if claim.lost is not None]
            maybe = [claim for claim in case.claims if claim.outcome == "unknown"]
            low, high = _since_the_restart(case, taken, maybe)
            yield _counted(case, row, "takeover", row.takeovers, (low, high + lost))
            yield _bounded(row, "takeover", row.takeovers, row.max_takeovers)


def _since_the_restart(case: Case, done: list[Call], maybe: list[Call]) -> tuple[int, int]:
    """Count how many of these surely, and how many possibly, came after the counters began again."""
    restarts = [move for move in case.moves if move.call in {"retry", "prune"}] if case.moves else []
    if not restarts:
        return len(done), len(done) + len(maybe)
    sure = [move for move in restarts if move.outcome == "ok"]
    surely_after = [call for call in done if all(precedes(move, call) for move in restarts)]
    maybe_after = [call for call in (*done, *maybe) if not any(precedes(call, move) for move in sure)]
    return len(surely_after), len(maybe_after)


def _counted(case: Case, row: Row, what: str, count: int, bounds: tuple[int, int]) -> Check:
    low, high = bounds
    if low <= count <= high:
        return None
    seen = str(low) if low == high else f"{low} to {high}"
    happened = "failed runs" if what == "attempt" else "lost workers"
    counted = f"{some(count, what)} in the end, and {seen} by what was answered"
    return broken(f"job {case.job}: the row counts {counted} ({happened})", row)


def _bounded(row: Row, what: str, count: int, most: int | None) -> Check:
    if most is None or count < most or (count == most and row.state not in _LIVE):
        return None
    if count > most:
        return broken(f"job {row.job}: the row counts {some(count, what)}, more than its maximum of {most}", row)
    return broken(f"job {row.job}: its maximum of {some(most, what)} is used up, and in the end it is {row.state}", row)


def ends_in_time(evidence: Evidence) -> Iterator[Check]:
    """I14: Once nothing is disturbed any more, every job that can run comes to its end in bounded time."""
    calm = evidence.history.calms[-1]
    bound = calm.at + calm.within
    for case in evidence.judged:
        row = case.row
        if row is not None and row.due_in <= 0 and (row.at is None or row.at >= bound):
            yield _is_over(row, calm)
        for completion in case.completions:
            if completion.sent > calm.at:
                yield _in_time(case, completion, calm, evidence.words)


def _is_over(row: Row, calm: Calm) -> Check:
    if row.state not in _LIVE:
        return None
    stands = f"it is still {row.state} in the end, more than {calm.within:g} s after the faults had stopped"
    return broken(f"job {row.job}: {stands}", calm, row)


def _in_time(case: Case, completion: Call, calm: Calm, words: Words) -> Check:
    late = completion.sent - calm.at - calm.within
    # A job that came back with a delay of its own may take longer.
    came_back = any(one.call in _COMING_BACK and latest(one) > calm.at for one in (*case.writes, *case.open))
    if late <= 0 or came_back:
        return None
    told = f"{who(completion)} completed it {words.when(completion)}"
    return broken(f"job {case.job}: {told}, {late:.3f} s after the time in which it had to be over", calm, completion)
