"""What was never answered happened whole or not at all, and what was answered is what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tenure.proof.history import Applied, Call, Entry
from tenure.proof.judge.evidence import Case, Evidence, latest, right_of
from tenure.proof.judge.settled import CLAIMS, is_operators
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import Words, deed, shown, some, turn, who, written
from tenure.proof.needs import ENDINGS, MOVES

_ENDS = ENDINGS | MOVES


def whole_or_not_at_all(evidence: Evidence) -> Iterator[Check]:
    """I12: A call without an answer happened whole or not at all; no answer contradicts what happened."""
    for case in evidence.judged:
        for call in case.unknown:
            yield _done_by_half(case, call, evidence.words)
        for entry in case.entries:
            if entry.event in CLAIMS:
                if entry.generation is not None:
                    yield _explained(case, entry, case.claim_of(entry.generation), evidence.words)
            elif entry.event in _ENDS:
                yield _explained(case, entry, _asked_for(case, entry), evidence.words)
        if evidence.meta.history == "full":
            yield from _told_of(case, evidence.words)
        yield from _row_asked_for(case)
    yield from _applied_as_answered(evidence)


def _done_by_half(case: Case, call: Call, words: Words) -> Check:
    told = case.told.get((call.call, call.generation), [])
    # An operator may have done the same to the job; most stores' histories do not tell the two apart.
    moves = sum(move.call == call.call for move in case.moves)
    if call.call in ENDINGS and len(told) > 1 + moves:
        return broken(f"{_lost(case, call, words)} happened {some(len(told), 'time')}", call, *told)
    row = case.row
    if call.call != "complete" or row is None or row.result is None:
        return None
    if row.state != "completed" and row.result == call.result:
        half = f"{_lost(case, call, words)} happened by half"
        return broken(f"{half}: its result is there and the job is {row.state}", call, row)
    alike = case.asked["complete", call.generation]
    settled = any(one.outcome == "ok" or (one.outcome == "unknown" and one.result == row.result) for one in alike)
    if row.generation != call.generation or settled:
        return None
    return broken(
        f"{_lost(case, call, words)} happened by half: the job is completed with the result {shown(row.result)}, and"
        f" {shown(call.result)} was sent",
        call,
        row,
    )


def _lost(case: Case, call: Call, words: Words) -> str:
    return f"job {case.job}: {who(call)}'s {deed(call)} under generation {call.generation}, {words.when(call)},"


def _asked_for(case: Case, entry: Entry) -> bool:
    if (entry.event, right_of(entry)) in case.asked or (entry.event == "prune" and case.swept):
        return True
    return any(move.call == entry.event for move in case.moves)


def _explained(case: Case, entry: Entry, asked: object, words: Words) -> Check:
    if asked:
        return None
    told = f"job {case.job}: the store's history tells of {turn(entry)} under generation {right_of(entry)}"
    failed = [one for one in case.failed if one.call == entry.event and one.generation in {None, right_of(entry)}]
    if failed:
        return broken(
            f"{told}, though {who(failed[0])} was answered {words.at(latest(failed[0]))} that nothing was done",
            failed[0],
            entry,
        )
    return broken(f"{told}, which nobody asked for", entry)


def _told_of(case: Case, words: Words) -> Iterator[Check]:
    """Look for what was acknowledged in a store's history that tells everything."""
    for call in case.writes:
        if call.outcome != "ok" or call.call not in ENDINGS:
            continue
        if any(not is_operators(entry) for entry in case.told.get((call.call, call.generation), ())):
            yield None
        else:
            accepted = f"{who(call)}'s {deed(call)} under generation {call.generation} was accepted {words.when(call)}"
            yield broken(f"job {case.job}: {accepted}, but the store's history does not tell of it", call)
    moves = [move for move in case.moves if move.outcome == "ok"]
    if not moves:
        return
    told: Counter[str] = Counter(entry.event for entry in case.entries if is_operators(entry))
    for verb, count in Counter(move.call for move in moves).items():
        if count <= told[verb]:
            yield None
        else:
            accepted = f"{some(count, verb)} of operators were accepted, but the store's history tells of {told[verb]}"
            yield broken(f"job {case.job}: {accepted}", *(move for move in moves if move.call == verb))


def _row_asked_for(case: Case) -> Iterator[Check]:
    row = case.row
    if row is None or row.generation is None or row.state is None or not case.claims:
        return
    if row.state == "running":
        asked = case.claim_of(row.generation) is not None
    elif row.state == "completed":
        asked = ("complete", row.generation) in case.asked
    else:
        return
    if asked:
        yield None
    else:
        stands = f"in the end it is {row.state} under generation {row.generation}"
        yield broken(f"job {case.job}: {stands}, which nobody asked for", row)


def _applied_as_answered(evidence: Evidence) -> Iterator[Check]:
    calls: dict[tuple[object, ...], list[Call]] = {}
    for call in evidence.fenced:
        if call.call != "raise":
            calls.setdefault(_write(call, call.call), []).append(call)
    applied: dict[tuple[object, ...], Applied] = {}
    for line in evidence.history.applied:
        applied.setdefault(_write(line, "apply" if line.act == "repeat" else line.act), line)
    recorded = {key[:3] for key in calls}
    for key, line in applied.items():
        if key[:3] in recorded:
            yield _applied_as_told(line, calls.get(key, []), evidence.words)
    for key, sent in calls.items():
        yield from _logged(evidence, sent, applied.get(key))


def _logged(evidence: Evidence, calls: list[Call], line: Applied | None) -> Iterator[Check]:
    done = next((call for call in calls if call.outcome in {"ok", "already"}), None)
    if done is None or done.destination not in evidence.must_log:
        return
    if line is not None:
        yield None
    else:
        accepted = (
            f"{who(done)}'s {deed(done)} under generation {done.generation} was accepted {evidence.words.when(done)}"
        )
        yield broken(f"scope {done.scope}: {accepted}, but the destination's log does not tell of it", done)


def unlogged(evidence: Evidence) -> list[str]:
    """Tell how many accepted writes are not judged, since no log of their destination is told (I12)."""
    writes = {
        _write(call, "apply")
        for call in evidence.fenced
        if (call.call, call.outcome) == ("apply", "ok") and call.destination not in evidence.must_log
    }
    if not writes:
        return []
    told = f"of {some(len(writes), 'accepted write')} no destination's log is told, and the run names none"
    return [f"{told}: whether they were kept is not asserted"]


def _write(line: Call | Applied, act: str) -> tuple[object, ...]:
    return (line.destination, line.scope, act, line.job, line.generation, line.sequence, line.key)


def _applied_as_told(line: Applied, calls: list[Call], words: Words) -> Check:
    if any(call.outcome not in {"stale", "fail"} for call in calls):
        return None
    told = f"scope {line.scope}: {written(line)} is in the destination's log"
    if not calls:
        return broken(f"{told}, and nobody sent it", line)
    answer = f"{who(calls[0])} was answered {words.when(calls[0])} that it was refused ({calls[0].outcome})"
    return broken(f"{told}, though {answer}", calls[0], line)
