"""The verbs of those who claim and own; what each promises stands in `tenure.store.contract`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from tenure.errors import LeaseHeld, Misuse, NotAllowed, NotFound
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Outlook, Turn, Verdict, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import ENDINGS, FINAL, Actor, Move, State, Verb
from tenure.store.contract import MAX_GENERATION
from tenure.store.memory.moves import carry_out, next_generation, note, note_refused, permitted, permitted_owner
from tenure.store.memory.world import AVAILABLE, RUNNING, Instant, Row, World
from tenure.store.rows import to_ms

_CLAIMER: Final = Actor.CLAIMER
_CLAIM, _TAKEOVER, _RENEW, _COMPLETE, _RELEASE = Verb.CLAIM, Verb.TAKEOVER, Verb.RENEW, Verb.COMPLETE, Verb.RELEASE
_DONE, _STALE = Verdict.DONE, Verdict.STALE


def claim(world: World, claimer: Claimer, wanted: Wanted) -> list[Claimed]:
    """Take abandoned jobs, then due ones; rows whose generation is used up are passed over (R4)."""
    now = world.now()
    takeable: list[tuple[Row, Move]] = []
    for row in _candidates(world, wanted, now):
        if len(takeable) >= wanted.limit:
            break
        step = _claiming(world, row, now)
        if step is not None:
            takeable.append((row, step))
    return [_take(world, row, step, claimer, now=now, duration=row.lease) for row, step in takeable]


def claim_named(world: World, claimer: Claimer, job: str, duration: float, *, create: bool) -> Claimed:
    """Take one job by its id for `duration` seconds, which becomes the length of its lease."""
    now = world.now()
    row = world.jobs.get(job)
    if row is None:
        if not create:
            raise NotFound(job)
        row = Row(job, None, "", 0, now.at, now.at, duration, named=True)
        world.save(row)
    if row.state is State.RUNNING and (remaining := row.lease_remaining(now) or 0.0) > 0:
        raise LeaseHeld(job, holder=row.worker, generation=row.generation, remaining=remaining)
    step = _claiming(world, row, now)
    if step is None:
        raise NotAllowed(job, verb=Verb.CLAIM, state=row.state, reason=_why_not(row, now))
    return _take(world, row, step, claimer, now=now, duration=duration)


def renew(world: World, owner: str, tokens: Sequence[Token], duration: float | None = None) -> list[Answer]:
    """Prolong leases that have not ended; answer only for the others."""
    now = world.now()
    refused = []
    for token in tokens:
        row = world.jobs.get(token.job)
        if row is None or permitted_owner(row, owner, token, _RENEW, now) is None:
            refused.append(_answer(token, _STALE, row))
        else:
            until = now.tick + (row.lease if duration is None else duration)
            world.save(replace(row, lease_until=max(until, row.lease_until or until)))
    return refused


def settle(world: World, owner: str, endings: Sequence[Ending]) -> list[Answer]:
    """End runs under their tokens, each independently."""
    now = world.now()
    return [_settle_one(world, owner, ending, now) for ending in endings]


def turn(
    world: World,
    claimer: Claimer,
    endings: Sequence[Ending],
    wanted: Sequence[Wanted],
    *,
    careful: bool = False,  # noqa: ARG001 -- nobody can lock a single job here
) -> Turn:
    """Settle, then claim."""
    answers = settle(world, claimer.owner, endings) if endings else []
    claimed: list[Claimed] = []
    for want in wanted:
        claimed += claim(world, claimer, want)
    return Turn(answers, claimed)


def outlook(world: World, queues: Sequence[str]) -> Outlook:
    """Tell what time has made claimable, and when it will the next time."""
    now = world.now()
    due = abandoned = False
    ahead: list[float] = []
    for row in world.index.running.values():
        if row.queue in queues:
            left = (row.lease_until or 0.0) - now.tick
            abandoned = abandoned or left <= 0
            if left > 0:
                ahead.append(left)
    for run_at in world.index.due_times(queues, now.at):
        due = due or run_at <= now.at
        if run_at > now.at:
            ahead.append((run_at - now.at).total_seconds())
    return Outlook(due, abandoned, min(ahead) if ahead else None)


def progress(world: World, owner: str, token: Token, value: str) -> Answer:
    """Store a progress value under the token."""
    row = world.jobs.get(token.job)
    if row is None or permitted_owner(row, owner, token, Verb.PROGRESS, world.now()) is None:
        return _refuse(world, row, owner, token, Verb.PROGRESS)
    world.save(replace(row, progress=value))
    return Answer(token, Verdict.DONE)


def recall_step(world: World, job: str, step: str) -> str | None:
    """Look up the remembered result of a named effect."""
    return world.steps.get(job, {}).get(step)


def record_step(world: World, owner: str, token: Token, step: str, result: str) -> Answer:
    """Remember a named effect's result under the token; the first result stays."""
    row = world.jobs.get(token.job)
    if permitted_owner(row, owner, token, Verb.STEP, world.now()) is None:
        return _refuse(world, row, owner, token, Verb.STEP)
    known = world.steps.get(token.job, {})
    if step in known:
        return Answer(token, Verdict.ALREADY, result=known[step])
    world.write(world.steps, token.job, {**known, step: result})
    return Answer(token, Verdict.DONE)


def guard(world: World, owner: str, token: Token) -> Answer:
    """Tell whether the token still owns its job; the world's lock is the transaction."""
    row = world.jobs.get(token.job)
    ours = row is not None and (row.owner, row.generation) == (owner, token.generation)
    return Answer(token, Verdict.DONE) if ours else _answer(token, Verdict.STALE, row)


def held(world: World, owner: str) -> list[Token]:
    """List what this owner holds, in order of id."""
    rows = sorted(world.index.running.items())
    return [Token(job, row.generation) for job, row in rows if row.owner == owner]


def _candidates(world: World, wanted: Wanted, now: Instant) -> Iterator[Row]:
    if wanted.takeovers and world.index.running:
        owned = [row for row in world.index.running.values() if row.queue in wanted.queues and row.task in wanted.tasks]
        yield from sorted(owned, key=attrgetter("lease_until", "id"))
    for job in world.index.due(wanted, now.at):
        yield world.jobs[job]


def _claiming(world: World, row: Row, now: Instant) -> Move | None:
    """Look up the move with which anybody may take this row now; None also where its generations are used up (R4)."""
    step = permitted(row, _CLAIMER, _TAKEOVER if row.state is RUNNING else _CLAIM, now)
    return step if step is not None and next_generation(row, world.floor) <= MAX_GENERATION else None


def _why_not(row: Row, now: Instant) -> str:
    if row.state in FINAL:
        return ""
    return "not due" if row.run_at > now.at else "its generations are used up"


def _take(world: World, row: Row, step: Move, claimer: Claimer, *, now: Instant, duration: float) -> Claimed:
    if step.verb is _TAKEOVER:
        changes = {"lost_generation": row.generation, "lost_worker": row.worker, "failure": None}
    else:
        changes = {"lost_generation": None, "lost_worker": None}
    after = carry_out(row, step, now, floor=world.floor, **changes)
    if after.state is RUNNING:
        after = replace(
            after,
            owner=claimer.owner,
            worker=claimer.worker,
            claimed_at=now.at,
            lease=duration,
            lease_until=now.tick + duration,
        )
    world.save(after)
    if step.verb is _TAKEOVER:
        note(world, row, after, now, step.verb)
    return _claimed(after)


def _settle_one(world: World, owner: str, ending: Ending, now: Instant) -> Answer:
    if ending.verb not in ENDINGS:
        raise Misuse(f"{ending.verb} does not end a run; use one of {', '.join(sorted(ENDINGS))}")
    row = world.jobs.get(ending.token.job)
    step = permitted_owner(row, owner, ending.token, ending.verb, now)
    if row is None or step is None:
        return _repeated_or_refused(world, row, owner, ending)
    completes = ending.verb is _COMPLETE
    after = carry_out(
        row,
        step,
        now,
        run_at=_due_again(ending, now) if step.target is AVAILABLE else row.run_at,
        result=ending.result if completes else None,
        reason=None if completes else ending.reason,
        failure=None if completes else ending.failure,
    )
    world.save(after)
    if not completes:
        note(world, row, after, now, ending.verb)
    return Answer(ending.token, _DONE)


def _due_again(ending: Ending, now: Instant) -> datetime:
    return now.at if ending.verb is _RELEASE else now.at + timedelta(seconds=ending.delay)


def _repeated_or_refused(world: World, row: Row | None, owner: str, ending: Ending) -> Answer:
    """Tell a repeated end from a stale one: the same verb stands there, under the same generation (R7)."""
    token = ending.token
    if row is not None and (
        _ended_by(row, token, ending.verb) or (ending.confirms and _ended_by(row, token, Verb.COMPLETE))
    ):
        return _answer(token, Verdict.ALREADY, row)
    return _refuse(world, row, owner, token, ending.verb)


def _ended_by(row: Row, token: Token, verb: Verb) -> bool:
    return row.state is not State.RUNNING and (row.generation, row.ended) == (token.generation, verb)


def _refuse(world: World, row: Row | None, owner: str, token: Token, verb: Verb) -> Answer:
    if row is not None:
        note_refused(world, owner, token, world.now(), verb)
    return _answer(token, Verdict.STALE, row)


def _answer(token: Token, verdict: Verdict, row: Row | None) -> Answer:
    if row is None:
        return Answer(token, verdict)
    return Answer(token, verdict, row.state, row.generation, row.worker, row.ended, row.result)


def _claimed(row: Row) -> Claimed:
    return Claimed(
        id=row.id,
        generation=row.generation,
        state=row.state,
        task=row.task,
        queue=row.queue,
        priority=row.priority,
        arguments=row.arguments,
        attempts=row.attempts,
        takeovers=row.takeovers,
        max_attempts=row.max_attempts,
        lease=row.lease,
        timeout=row.timeout,
        trace=row.trace,
        lost_generation=row.lost_generation,
        lost_worker=row.lost_worker,
        run_at_ms=to_ms(row.run_at),
    )
