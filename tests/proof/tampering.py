"""Ways to spoil a good history in one line, each with the invariants of which at least one has to notice.

Each takes a history and a chance, and returns None where the history offers nothing to spoil in this way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace as changed
from itertools import pairwise
from typing import Any, TypeVar

from msgspec.structs import replace

from tenure.proof.history import Applied, Call, History, Line
from tenure.proof.needs import ENDINGS, WRITES
from tenure.protocol.lifecycle import State

L = TypeVar("L", bound=Line)
Spoil = Callable[[History, random.Random], History | None]


def _swapped(lines: list[L], old: L, *new: L) -> list[L]:
    return [part for line in lines for part in (new if line is old else (line,))]


def _pick(chance: random.Random, lines: Iterable[L]) -> L | None:
    found = list(lines)
    return chance.choice(found) if found else None


def _call(history: History, old: Call | None, **fields: Any) -> History | None:
    return None if old is None else changed(history, calls=_swapped(history.calls, old, replace(old, **fields)))


def _logged(history: History, old: Applied | None, **fields: Any) -> History | None:
    return None if old is None else changed(history, applied=_swapped(history.applied, old, replace(old, **fields)))


def _claims(history: History) -> list[Call]:
    return [one for one in history.calls if (one.call, one.outcome) == ("claim", "ok") and one.job is not None]


def _written(history: History) -> list[Applied]:
    return [line for line in history.applied if line.act == "apply"]


def a_generation_again(history: History, chance: random.Random) -> History | None:
    later = [
        (one, two)
        for one in _claims(history)
        for two in _claims(history)
        if one.job == two.job and (one.answered or 0) < two.sent
    ]
    if not later:
        return None
    one, two = chance.choice(later)
    return _call(history, two, generation=one.generation)


def a_refusal_accepted(history: History, chance: random.Random) -> History | None:
    return _call(history, _pick(chance, _superseded(history)), outcome="ok")


def _superseded(history: History) -> list[Call]:
    return [
        call
        for call in history.calls
        if call.outcome == "stale" and call.call in WRITES and call.current is None and _is_superseded(history, call)
    ]


def _is_superseded(history: History, call: Call) -> bool:
    return any(
        claim.job == call.job and (claim.generation or 0) > (call.generation or 0) and (claim.answered or 0) < call.sent
        for claim in _claims(history)
    )


def a_write_in_other_hands(history: History, chance: random.Random) -> History | None:
    accepted = (call for call in history.calls if call.outcome == "ok" and call.call in WRITES and call.owner)
    return _call(history, _pick(chance, accepted), owner="a stranger")


def a_result_replaced(history: History, chance: random.Random) -> History | None:
    rows = [row for row in history.rows if row.state is State.COMPLETED]
    row = _pick(chance, rows)
    return None if row is None else changed(history, rows=_swapped(history.rows, row, replace(row, result='"other"')))


def a_generation_forgotten(history: History, chance: random.Random) -> History | None:
    row = _pick(chance, (row for row in history.rows if row.generation))
    if row is None:
        return None
    older = replace(row, generation=(row.generation or 0) - 1)
    return changed(history, rows=_swapped(history.rows, row, older))


def a_longer_lease(history: History, chance: random.Random) -> History | None:
    return _call(history, _pick(chance, _taken_over(history)), lease=10_000.0)


def a_longer_belief(history: History, chance: random.Random) -> History | None:
    return _call(history, _pick(chance, _taken_over(history, and_never_ended=True)), deadline=1e9)


def _taken_over(history: History, *, and_never_ended: bool = False) -> list[Call]:
    lost = {(claim.job, claim.lost) for claim in _claims(history)}
    ended = {(call.job, call.generation) for call in history.calls if call.call in ENDINGS and call.owner}
    taken = [claim for claim in _claims(history) if (claim.job, claim.generation) in lost]
    return [claim for claim in taken if not and_never_ended or (claim.job, claim.generation) not in ended]


def two_writes_swapped(history: History, chance: random.Random) -> History | None:
    written = _written(history)
    pairs = [(one, two) for one, two in pairwise(written) if one.scope == two.scope]
    if not pairs:
        return None
    one, two = chance.choice(pairs)
    return changed(history, applied=_swapped(_swapped(history.applied, two), one, two, one))


def a_write_from_an_old_version(history: History, chance: random.Random) -> History | None:
    line = _pick(chance, (line for line in _written(history) if isinstance(line.before, int) and line.before > 0))
    return None if line is None else _logged(history, line, before=int(line.before or 0) - 1)


def a_key_twice(history: History, chance: random.Random) -> History | None:
    written = _written(history)
    if len(written) < 2:
        return None
    one, two = chance.sample(written, 2)
    return _logged(history, two, key=one.key)


def a_write_lost(history: History, chance: random.Random) -> History | None:
    accepted = {
        (call.scope, call.generation, call.sequence)
        for call in history.calls
        if (call.call, call.outcome) == ("apply", "ok")
    }
    lines = (line for line in _written(history) if (line.scope, line.generation, line.sequence) in accepted)
    line = _pick(chance, lines)
    return None if line is None else changed(history, applied=_swapped(history.applied, line))


def an_effect_too_late(history: History, chance: random.Random) -> History | None:
    effect = _pick(chance, (call for call in history.calls if call.call == "effect"))
    late = None if effect is None else (effect.deadline or 0.0) + 0.5
    return _call(history, effect, sent=late, answered=late)


def an_attempt_more(history: History, chance: random.Random) -> History | None:
    lost = sum(call.outcome == "unknown" for call in history.calls) + 1
    row = _pick(chance, (row for row in history.rows if row.attempts is not None))
    more = None if row is None else replace(row, attempts=(row.attempts or 0) + lost)
    return None if row is None or more is None else changed(history, rows=_swapped(history.rows, row, more))


def a_fork(history: History, chance: random.Random) -> History | None:
    accepted = [call for call in history.calls if call.outcome == "ok" and call.call in WRITES and call.owner]
    rights = [(call.job, call.generation) for call in accepted]
    again = (call for call in accepted if rights.count((call.job, call.generation)) > 1)
    return _call(history, _pick(chance, again), process="a fork", number=None)


def a_turn_left_out(history: History, chance: random.Random) -> History | None:
    # That an operator came in between can be left out without a trace, where nobody was told of it.
    told = (entry for entry in history.entries if entry.owner and entry.event in {"claim", "takeover", *ENDINGS})
    entry = _pick(chance, told)
    return None if entry is None else changed(history, entries=_swapped(history.entries, entry))


def a_turn_made_up(history: History, chance: random.Random) -> History | None:
    entry = _pick(chance, (entry for entry in history.entries if entry.event in {"claim", "takeover"}))
    return None if entry is None else changed(history, entries=_swapped(history.entries, entry, entry, entry))


def a_row_moved(history: History, chance: random.Random) -> History | None:
    row = _pick(chance, (row for row in history.rows if row.state is not None))
    if row is None:
        return None
    state = chance.choice([state for state in State if state is not row.state])
    return changed(history, rows=_swapped(history.rows, row, replace(row, state=state)))


SPOILS: dict[Spoil, set[str]] = {
    a_generation_again: {"I1", "I2"},
    a_refusal_accepted: {"I3"},
    a_write_in_other_hands: {"I3"},
    a_result_replaced: {"I4", "I12", "I18"},
    a_generation_forgotten: {"I5", "I18"},
    a_longer_lease: {"I6"},
    a_longer_belief: {"I7"},
    two_writes_swapped: {"I8"},
    a_write_from_an_old_version: {"I9"},
    a_key_twice: {"I10"},
    a_write_lost: {"I12"},
    an_effect_too_late: {"I16"},
    an_attempt_more: {"I15"},
    a_fork: {"I17"},
    a_turn_left_out: {"I3", "I5", "I6", "I12", "I18"},
    a_turn_made_up: {"I1", "I6"},
    a_row_moved: {"I18"},
}
