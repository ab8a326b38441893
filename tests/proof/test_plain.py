"""Plain lives are left out only where no invariant minds them: whatever is spoiled in a history, the same is found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from tenure.errors import Misuse
from tenure.proof.history import Call, Calm, Entry, History, Line, Meta, Row
from tenure.proof.judge import broken_in, judge
from tenure.proof.judge.evidence import Evidence
from tenure.proof.judge.plain import is_plain
from tenure.proof.judge.settled import settle
from tenure.protocol.lifecycle import State
from tenure.testing.simulation import Theatre

LEFT_ALONE = {"place", "destination", "scope", "detail", "call", "act"}
SPOILED = 60  # times, for each history


def _call(call: Any, sent: float, **fields: Any) -> Call:
    told: dict[str, Any] = {
        "job": "j",
        "generation": 1,
        "owner": "o",
        "process": "p",
        "answered": sent + 0.1,
        "outcome": "ok",
    } | fields
    return Call(call=call, sent=sent, **told)


def _entry(event: Any, at: float, state: State, **fields: Any) -> Entry:
    told: dict[str, Any] = {
        "job": "j",
        "generation": 1,
        "owner": "o",
        "right": 1,
        "attempts": 0,
        "takeovers": 0,
    } | fields
    return Entry(event=event, at=at, state=state, **told)


LIFE: dict[str, Line] = {
    "claim": _call("claim", 1.0, lease=10.0, deadline=10.0, state=State.RUNNING),
    "effect": _call("effect", 2.0, deadline=10.0, sequence=1),
    "renewal": _call("renew", 3.0, lease=10.0, deadline=12.0),
    "late effect": _call("effect", 4.0, deadline=12.0, sequence=2),
    "completion": _call("complete", 5.0, result="1"),
    "enqueued": _entry("enqueue", 100.0, State.AVAILABLE, generation=0, owner=None, right=None),
    "claimed": _entry("claim", 101.0, State.RUNNING, right=None, until=111.0),
    "renewed": _entry("renew", 103.0, State.RUNNING, until=113.0),
    "completed": _entry("complete", 105.0, State.COMPLETED, owner=None, result="1"),
    "row": Row(job="j", state=State.COMPLETED, generation=1, attempts=0, takeovers=0, result="1"),
}

BENT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("claim", {"lost": 0}),
    ("claim", {"generation": 2}),
    ("claim", {"owner": "another"}),
    ("claim", {"process": "another"}),
    ("claim", {"sent": 3.05, "answered": 3.06}),
    ("effect", {"generation": 2}),
    ("effect", {"deadline": None}),
    ("effect", {"deadline": 11.5}),
    ("effect", {"deadline": 1.5}),
    ("effect", {"sent": 0.1, "answered": 0.2}),
    ("late effect", {"deadline": 13.5}),
    ("renewal", {"owner": "another"}),
    ("renewal", {"generation": 2}),
    ("renewal", {"process": "a fork"}),
    ("renewal", {"sent": 5.2, "answered": 5.3}),
    ("renewal", {"outcome": "stale"}),
    ("renewal", {"outcome": "already"}),
    ("renewal", {"outcome": "unknown"}),
    ("renewal", {"call": "complete", "result": "1"}),
    ("completion", {"call": "release"}),
    ("completion", {"result": "2"}),
    ("enqueued", {"state": State.RUNNING}),
    ("enqueued", {"event": "claim"}),
    ("enqueued", {"attempts": 1}),
    ("claimed", {"event": "takeover"}),
    ("claimed", {"generation": 2}),
    ("claimed", {"owner": "another"}),
    ("claimed", {"until": 102.0}),
    ("claimed", {"takeovers": 1}),
    ("renewed", {"event": "release"}),
    ("renewed", {"owner": "another"}),
    ("renewed", {"right": 2}),
    ("renewed", {"at": 111.0}),
    ("renewed", {"state": State.AVAILABLE}),
    ("renewed", {"attempts": 1}),
    ("completed", {"event": "cancel"}),
    ("completed", {"owner": "another"}),
    ("completed", {"right": 2}),
    ("completed", {"result": "2"}),
    ("completed", {"state": State.CANCELLED}),
    ("row", {"state": State.RUNNING}),
    ("row", {"generation": 2}),
    ("row", {"attempts": 1}),
    ("row", {"takeovers": 1}),
    ("row", {"result": "2"}),
)
"""What makes a life out of the ordinary."""

MORE: dict[str, Line] = {
    "a second claim": _call("claim", 7.0, generation=2),
    "a second completion": _call("complete", 5.05, result="1"),
    "a cancel": _call("cancel", 4.0, owner=None, generation=None),
    "a refusal": _call("complete", 7.0, outcome="stale", current=2),
    "a repeat": _call("complete", 7.0, outcome="already", result="1"),
    "a lost answer": _call("complete", 7.0, outcome="unknown", answered=None),
    "two steps": _call("step", 4.0, key="s", result="1"),
    "a renewal afterwards": _call("renew", 5.2, lease=10.0),
    "a calm": Calm(at=4.5, within=1.0),
}


def _is_plain(*lines: Line) -> bool:
    evidence = Evidence(History.of([Meta(history="full"), *lines]))  # type: ignore[list-item]  # each is a kind of line
    settle(evidence)
    return is_plain(evidence, evidence.cases["j"])


def test_a_plain_life_is_plain() -> None:
    assert _is_plain(*LIFE.values())
    assert _is_plain(*LIFE.values(), MORE["two steps"])


@pytest.mark.parametrize(("name", "fields"), BENT, ids=lambda part: str(part))
def test_a_life_that_is_bent_is_not(name: str, fields: dict[str, Any]) -> None:
    assert not _is_plain(*(replace(line, **fields) if one == name else line for one, line in LIFE.items()))


@pytest.mark.parametrize("name", LIFE)
def test_a_life_of_which_a_line_is_missing_is_not(name: str) -> None:
    plain = _is_plain(*(line for one, line in LIFE.items() if one != name))
    assert plain is (name in {"effect", "late effect", "renewed"})


@pytest.mark.parametrize("name", MORE)
def test_a_life_with_more_in_it_is_not(name: str) -> None:
    twice = [MORE[name]] * (2 if name == "two steps" else 1)
    assert not _is_plain(*LIFE.values(), *twice)


@pytest.fixture(scope="module")
def histories() -> list[History]:
    theatre = Theatre("memory")
    with theatre.open():
        return [theatre.play(seed).history for seed in range(1, 26)]


def test_many_lives_are_plain(histories: list[History]) -> None:
    cases = plain = 0
    for history in histories:
        evidence = Evidence(history)
        settle(evidence)
        cases += len(evidence.cases)
        plain += sum(is_plain(evidence, case) for case in evidence.cases.values())
    assert plain > cases / 3


def test_what_is_spoiled_is_found_all_the_same(histories: list[History]) -> None:
    chance = random.Random(17)
    broken = 0
    for history in histories:
        for _ in range(SPOILED):
            spoiled = _spoiled(history, chance)
            try:
                judgement = judge(spoiled)
            except Misuse:
                continue
            told = [f"{one.invariant}: {violation}" for one in broken_in(spoiled) for violation in one.violations]
            assert sorted(told) == sorted(judgement.violations)
            broken += bool(told)
    assert broken > len(histories) * SPOILED / 5


def _spoiled(history: History, chance: random.Random) -> History:
    """Change one field of one line, drop a line, or tell it twice."""
    pile = chance.choice(("calls", "calls", "entries", "entries", "rows", "applied"))
    lines: list[Any] = list(getattr(history, pile))
    if not lines:
        return history
    place = chance.randrange(len(lines))
    luck = chance.random()
    if luck < 0.1:
        del lines[place]
    elif luck < 0.2:
        lines.insert(place, lines[place])
    else:
        lines[place] = _bent(lines, place, chance)
    if pile == "calls":
        lines.sort(key=lambda call: call.sent)
    piles: dict[str, Any] = {pile: lines}
    return changed(history, **piles)


def _bent(lines: Sequence[Line], place: int, chance: random.Random) -> Line:
    line = lines[place]
    name = chance.choice([name for name in line.__struct_fields__ if name not in LEFT_ALONE])
    old: Any = getattr(line, name)
    others = [getattr(other, name) for other in lines if getattr(other, name) != old]
    if isinstance(old, float) and chance.random() < 0.7:
        new: Any = old + chance.choice((-1.0, -0.3, -0.01, 0.01, 0.3, 1.0))
    elif isinstance(old, int) and not isinstance(old, bool) and chance.random() < 0.7:
        new = max(0, old + chance.choice((-1, 1)))
    else:
        new = chance.choice(others) if others else old
    return replace(line, **{name: new})
