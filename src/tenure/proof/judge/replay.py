"""Replay: the store's history, gone through from its beginning, arrives at the rows that stand in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tenure.proof.history import Entry, Row
from tenure.proof.judge.evidence import Case, Evidence
from tenure.proof.judge.settled import CLAIMS, is_operators
from tenure.proof.judge.verdict import Check, broken
from tenure.proof.judge.words import shown, turn
from tenure.proof.needs import RENEWALS
from tenure.protocol.lifecycle import Actor, Counter, Move, State, Verb, move

_AVAILABLE, _RUNNING, _COMPLETED = State.AVAILABLE, State.RUNNING, State.COMPLETED
_CLAIMER, _OWNER, _OPERATOR = Actor
_VERBS = {str(verb): verb for verb in Verb}
_COUNTERS = tuple(map(str, Counter))
_SHOWN = ("state", "generation", "attempts", "takeovers", "result")
_stands = attrgetter(*_SHOWN)


@dataclass(slots=True)
class _Job:
    """A job as the entries up to here leave it; None is what they do not tell."""

    state: State | None
    generation: int | None = None
    attempts: int | None = None
    takeovers: int | None = None
    until: float | None = None
    result: Any = None


def history_gives_the_rows(evidence: Evidence) -> Iterator[Check]:
    """I18: Replaying the store's history by the table of moves gives the rows that stand in the end."""
    for case in evidence.judged:
        told = case.entries
        job = _Job(None)
        for place, entry in enumerate(told):
            step = _step(job, entry)
            problem = None if place == 0 and entry.event != "enqueue" else _problem(job, entry, step, case.row)
            if problem is None:
                yield None
            else:
                turned = f"the store's history tells of {turn(entry)} {problem}"
                yield broken(f"job {case.job}: {turned}", *told[max(0, place - 1) : place + 1])
            _turn(job, entry, step)
        if told and case.row is not None:
            yield _arrives(case, job, told[-1], case.row)


def _problem(job: _Job, entry: Entry, step: Move | None, row: Row | None) -> str | None:
    """Tell how an entry contradicts the table of moves; who may claim and who is accepted is for I6 and I3 to say."""
    if entry.event == "enqueue":
        return None if job.state is None else f"while it was there already, {job.state}"
    if entry.event == "refused":
        return _met_another(job, entry)
    if step is None:
        where = "was not there" if job.state is None else f"was {job.state}"
        return f"while the job {where}: no operator can do that" if is_operators(entry) else None
    if entry.event in RENEWALS and entry.at is not None and job.until is not None and entry.at >= job.until:
        return f"{entry.at - job.until:.3f} s after the lease had ended"
    return _wrong_generation(job, entry, step) or _wrong_count(job, entry, step) or _wrong_state(job, entry, step, row)


def _met_another(job: _Job, entry: Entry) -> str | None:
    """Tell what a refusal, which changes nothing, met that the turns before it do not explain."""
    for name in ("state", "generation", *_COUNTERS):
        met, stood = getattr(entry, name), getattr(job, name)
        if met is not None and met != stood and (stood is not None or name == "state"):
            return f"that met {name} {met}, and not {_named(stood)}"
    return None


def _step(job: _Job, entry: Entry) -> Move | None:
    if job.state is None or entry.event in {"enqueue", "refused"}:
        return None
    actor = _CLAIMER if entry.event in CLAIMS else _OPERATOR if is_operators(entry) else _OWNER
    return move(actor, _VERBS[entry.event], job.state)


def _wrong_generation(job: _Job, entry: Entry, step: Move) -> str | None:
    if entry.generation is None or job.generation is None or step.target is None:
        return None
    # That the generations of claims rise is for I1 to say.
    right = step.verb in CLAIMS or (entry.generation > job.generation) == step.raises
    return None if right else f"which turned generation {job.generation} into {entry.generation}"


def _wrong_count(job: _Job, entry: Entry, step: Move) -> str | None:
    counted = step.restarts or step.counts is not None
    if not counted and (entry.attempts, entry.takeovers) == (job.attempts, job.takeovers):
        return None
    for counter, before, after in (
        (Counter.ATTEMPTS, job.attempts, entry.attempts),
        (Counter.TAKEOVERS, job.takeovers, entry.takeovers),
    ):
        if before is not None and after is not None and after != _count(before, counter, step):
            return f"which turned {before} {counter} into {after}"
    return None


def _count(before: int, counter: Counter, step: Move) -> int:
    return 0 if step.restarts else before + (step.counts is counter)


def _wrong_state(job: _Job, entry: Entry, step: Move, row: Row | None) -> str | None:
    if entry.state == step.target or (entry.state is None and step.target is not None):
        return None
    if step.counts is not None and entry.state is State.DISCARDED and _is_used_up(job, step.counts, row):
        return None
    return f"which left the job {entry.state or 'gone'} instead of {step.target or 'gone'}"


def _is_used_up(job: _Job, counter: Counter, row: Row | None) -> bool:
    most, before = getattr(row, f"max_{counter}", None), getattr(job, counter)
    return most is None or before is None or before + 1 >= most


def _turn(job: _Job, entry: Entry, step: Move | None) -> None:
    """Go on to how the job stands after an entry: by what that tells, else by the table."""
    if entry.event == "enqueue":
        job.state, job.attempts, job.takeovers, job.until, job.result = _AVAILABLE, 0, 0, None, None
    job.attempts = _counted(job.attempts, Counter.ATTEMPTS, step) if entry.attempts is None else entry.attempts
    job.takeovers = _counted(job.takeovers, Counter.TAKEOVERS, step) if entry.takeovers is None else entry.takeovers
    gone = entry.event == "prune"
    job.state = None if gone else entry.state or (job.state if step is None else step.target)
    job.generation = job.generation if entry.generation is None else entry.generation
    job.until = entry.until if entry.until is not None and job.state is _RUNNING else job.until
    job.result = entry.result if entry.event == "complete" else job.result if job.state is _COMPLETED else None


def _counted(before: int | None, counter: Counter, step: Move | None) -> int | None:
    return before if step is None or before is None else _count(before, counter, step)


def _arrives(case: Case, job: _Job, last: Entry, row: Row) -> Check:
    if _stands(job) == _stands(row):
        return None
    names = _SHOWN if row.state is not None else ("state",)
    told = {name: getattr(job, name) for name in names if getattr(job, name) is not None or name == "state"}
    wrong = [
        name for name, value in told.items() if getattr(row, name) not in {None, value} or _vanished(name, row, value)
    ]
    if not wrong:
        return None
    differences = " and ".join(f"{name} {_named(told[name])}, not {_named(getattr(row, name))}" for name in wrong)
    return broken(f"job {case.job}: replaying the store's history gives {differences} as in the row", last, row)


def _vanished(name: str, row: Row, value: object) -> bool:
    return name == "state" and row.state != value


def _named(value: object) -> str:
    return "gone" if value is None else str(value) if isinstance(value, State | int) else shown(value)
