"""A move of the lifecycle table, carried out on a row: the table says what happens, this file only does it."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tenure.protocol.job import HistoryEntry
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import FINAL, Actor, Counter, Move, Need, State, Verb, move
from tenure.store.memory.world import RUNNING, Instant, Row, World

_OWNER: Final = Actor.OWNER
_DISCARDED: Final = State.DISCARDED
_NOTHING, _DUE, _LEASE_LIVE, _ = Need


def permitted(row: Row, actor: Actor, verb: Verb, now: Instant) -> Move | None:
    """Look up the move that `actor` may make with `verb` at this moment; None where there is none."""
    step = move(actor, verb, row.state)
    return step if step is not None and _meets(row, step.need, now) else None


def permitted_owner(row: Row | None, owner: str, token: Token, verb: Verb, now: Instant) -> Move | None:
    """Look up the move that the holder of `token` may make; None where the row carries another right (R5)."""
    if row is None or (row.owner, row.generation) != (owner, token.generation):
        return None
    return permitted(row, _OWNER, verb, now)


def next_generation(row: Row, floor: int) -> int:
    """Compute the generation of the next right to this job: above every earlier one, and above the floor (R3)."""
    return (row.generation if row.generation > floor else floor) + 1


def carry_out(row: Row, step: Move, now: Instant, *, floor: int = 0, **changes: Any) -> Row:
    """Make `step` and return the row after it: state, generation and counters by the table, the rest from `changes`.

    A generation that rises lies above `floor`. A counter that reaches its bound sends the job to `discarded` instead,
    which is a reason by itself.
    """
    target = step.target or row.state
    if step.counts is not None:
        count, bound = _count(row, step.counts)
        changes[step.counts] = count
        if bound is not None and count >= bound:
            target = _DISCARDED
            changes["reason"] = changes.get("reason") or _bound_reason(step.counts, count)
    if step.restarts:
        changes.update(dict.fromkeys(Counter, 0))
    if step.raises:
        changes["generation"] = next_generation(row, floor)
    if _ends_a_run(step):
        changes["ended"], changes["ended_at"] = step.verb, now.at
    if target is not RUNNING:
        changes["owner"] = changes["lease_until"] = None
    return replace(row, state=target, finished_at=now.at if target in FINAL else None, **changes)


def note(world: World, before: Row, after: Row, now: Instant, event: Verb) -> None:
    """Write to the history what became of the right that `before` shows (R46)."""
    entry = HistoryEntry(before.id, before.generation, now.at, event, before.worker, after.reason, after.failure)
    world.note(entry)


def note_refused(world: World, owner: str, token: Token, now: Instant, verb: Verb) -> None:
    """Write to the history that an owner's write was refused, under the generation that it held."""
    worker = _name(world, owner, token)
    world.note(HistoryEntry(token.job, token.generation, now.at, f"stale {verb} refused", worker, None, None))


def _name(world: World, owner: str, token: Token) -> str | None:
    """Name an owner; who holds a bare lease has not reported itself, but the end of its right is in the history."""
    reported = world.workers.get(owner)
    if reported is not None:
        return reported.record.name
    told = [entry for entry in world.history.get(token.job, ()) if entry.generation == token.generation]
    return max((entry.worker for entry in told if entry.worker is not None), default=None)


def _meets(row: Row, need: Need, now: Instant) -> bool:
    if need is _NOTHING:
        return True
    if need is _DUE:
        return row.run_at <= now.at
    remaining = row.lease_remaining(now)
    return remaining is not None and (remaining > 0) == (need is _LEASE_LIVE)


def _count(row: Row, counter: Counter) -> tuple[int, int | None]:
    if counter is Counter.ATTEMPTS:
        return row.attempts + 1, row.max_attempts
    return row.takeovers + 1, row.max_takeovers


def _bound_reason(counter: Counter, count: int) -> str:
    if counter is Counter.ATTEMPTS:
        return "attempts used up"
    return "worker lost once" if count == 1 else f"worker lost {count} times"


def _ends_a_run(step: Move) -> bool:
    return step.source is RUNNING and (step.raises or step.target is not RUNNING)
