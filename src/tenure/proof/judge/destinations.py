"""Destinations: newer beats older, no update is lost, nothing is applied twice, and nothing after the end."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.proof.history import Applied, Call
from tenure.proof.judge.evidence import Case, Evidence, latest
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import Words, shown, who, written


def newer_beats_older(evidence: Evidence) -> Iterator[Check]:
    """I8: In each scope (generation, sequence) rises strictly; nothing passes that is older than an announcement."""
    repeated: list[Check] = []  # told last: what came late from another generation does more harm
    for log in evidence.logs.values():
        mark: Applied | None = None
        for line in log:
            if line.act == "reset":
                mark = None
            elif line.act != "repeat":
                problem = _passed_wrongly(line, mark)
                check = None if problem is None else broken(f"scope {line.scope}: {problem}", mark, line)
                if check is None or mark is None or line.generation != mark.generation:
                    yield check
                else:
                    repeated.append(check)
                mark = line if mark is None or _rank(line) > _rank(mark) else mark
    yield from repeated


def _rank(line: Applied) -> tuple[int, int]:
    return line.generation or 0, line.sequence or 0


def _passed_wrongly(line: Applied, mark: Applied | None) -> str | None:
    if line.generation is None:
        return "a write without a generation was applied"
    if mark is None:
        return None
    if None not in {line.job, mark.job} and line.job != mark.job:
        return f"job {line.job} wrote where the generations of job {mark.job} are counted, and cannot be compared"
    if line.generation < (mark.generation or 0):
        return f"{_done(line)} after {_done(mark)}"
    ordered = line.act == "apply" and line.sequence is not None and line.generation == mark.generation
    if ordered and line.sequence <= (mark.sequence or 0):  # type: ignore[operator]  # it is in order, so it has one
        return f"{_done(line)} after {_done(mark)}"
    return None


def _done(line: Applied) -> str:
    if line.act == "apply":
        return f"{written(line)} was applied"
    return f"generation {line.generation} {'was announced' if line.act == 'raise' else 'sealed it'}"


def no_update_is_lost(evidence: Evidence) -> Iterator[Check]:
    """I9: No update is lost: each write that was applied was computed from the version that it replaced."""
    repeated: list[Check] = []  # told last, as above
    for log in evidence.logs.values():
        last: Applied | None = None
        for line in log:
            if line.act != "apply":
                continue
            if last is not None and None not in {line.before, last.after}:
                check = _computed_from(last, line)
                if check is None or line.generation != last.generation:
                    yield check
                else:
                    repeated.append(check)
            last = line
    yield from repeated


def _computed_from(last: Applied, line: Applied) -> Check:
    if line.before == last.after:
        return None
    return broken(
        f"scope {line.scope}: {written(line)} was computed from version {shown(line.before)} and replaced version"
        f" {shown(last.after)}, that of {written(last)}: what was written in between is lost",
        last,
        line,
    )


def applied_once_per_key(evidence: Evidence) -> Iterator[Check]:
    """I10: A key is applied once for as long as it is kept, and a repeat gets the first answer."""
    first: dict[tuple[str, str], Applied] = {}
    for log in evidence.logs.values():
        for line in log:
            if line.key is None or line.act not in {"apply", "repeat"}:
                continue
            met = first.get((line.destination, line.key))
            if met is not None and _is_forgotten(met, line, evidence.meta.retention):
                met = None
            if met is None:
                first[line.destination, line.key] = line
            yield _as_at_first(met, line)
    for case in evidence.judged:
        if not case.pruned:
            yield from _steps(case, evidence.words)


def _is_forgotten(first: Applied, line: Applied, retention: float | None) -> bool:
    return retention is not None and first.at is not None and line.at is not None and line.at - first.at > retention


def _as_at_first(first: Applied | None, line: Applied) -> Check:
    if first is None:
        repeats = line.act == "repeat"
        return (
            broken(f"key {line.key} was answered as a repeat, and nothing was applied under it", line)
            if repeats
            else None
        )
    if line.act == "apply":
        return broken(f"key {line.key} was applied twice: by {written(first)} and by {written(line)}", first, line)
    if line.value == first.value:
        return None
    told = f"key {line.key} was answered {shown(line.value)} when it was repeated by {written(line)}"
    return broken(f"{told}, and {shown(first.value)} at first", first, line)


def _steps(case: Case, words: Words) -> Iterator[Check]:
    """Look at the steps that a store remembers: job and step are a key as well."""
    first: dict[str | None, Call] = {}
    lost = {call.key for call in case.unknown if call.call == "step"}
    steps = [call for call in (*case.writes, *case.repeats) if call.call == "step"]
    for step in sorted(steps, key=lambda call: (call.outcome != "ok", call.sent)):
        met = first.setdefault(step.key, step)
        if met is step or step.outcome == "ok" or step.key not in lost or met.outcome == "ok":
            yield _step_as_at_first(case, met, step, words)


def _step_as_at_first(case: Case, met: Call, step: Call, words: Words) -> Check:
    if met is step:
        return None
    if step.outcome == "ok":
        twice = f"by {who(met)} {words.when(met)}, and by {who(step)} {words.when(step)}"
        return broken(f"job {case.job}: the step {step.key} was recorded twice: {twice}", met, step)
    if step.result == met.result:
        return None
    told = f"{who(step)} was answered {shown(step.result)} {words.when(step)}"
    return broken(f"job {case.job}: the step {step.key} has the result {shown(met.result)}, and {told}", met, step)


def nothing_after_the_end(evidence: Evidence) -> Iterator[Check]:
    """I11: Nothing is applied after the seal, or after the completion of its job."""
    for log in evidence.logs.values():
        seal: Applied | None = None
        for line in log:
            if line.act == "seal":
                seal = line
            elif line.act == "apply":
                yield from _before_the_seal(line, seal)
                if line.at is not None:
                    yield from _before_the_completion(evidence, line, line.at)
    timed = {line.destination for line in evidence.history.applied if line.at is not None}
    for call in evidence.fenced:
        if (call.call, call.outcome) == ("apply", "ok") and call.destination not in timed:
            yield from _before_the_completion(evidence, call, call.sent)


def _before_the_seal(line: Applied, seal: Applied | None) -> Iterator[Check]:
    if seal is None:
        return
    if (line.generation or 0) > (seal.generation or 0):
        yield None
    else:
        told = f"{written(line)} was applied after generation {seal.generation} had sealed it"
        yield broken(f"scope {line.scope}: {told}", seal, line)


def _before_the_completion(evidence: Evidence, line: Applied | Call, moment: float) -> Iterator[Check]:
    case = evidence.cases.get(line.job or "")
    end = None if case is None else case.completion_from(line.generation or 0)
    if end is None:
        return
    if moment <= latest(end):
        yield None
    else:
        told = f"{written(line)} of job {line.job} was applied {evidence.words.at(moment)}"
        late = f"{moment - latest(end):.3f} s after {who(end)} had completed the job"
        yield broken(f"scope {line.scope}: {told}, {late}", end, line)
