"""The summary of a play: each of its lines can be false, and whoever reads only the exit status learns of it too."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tenure.demo import __main__ as command
from tenure.demo import main, play
from tenure.demo.children import Stalled, Told
from tenure.demo.destinations.place import Way
from tenure.demo.events import Summary
from tenure.demo.story import Story
from tenure.demo.telling import conclusion
from tenure.demo.worker import Player
from tenure.errors import StaleToken, Unavailable
from tenure.protocol.lease import Effect, Token
from tenure.protocol.lifecycle import State

A, B = 7, 8
B_PAGE = f"written by B under generation {B}"
KEPT = ["", "", B_PAGE, B_PAGE]
DAMAGED = ["", f"drafted by A under generation {A}", B_PAGE, f"written by A under generation {A}"]
REFUSED, APPLIED = Told("delivered", "A", A, refused=True), Told("delivered", "A", A)
NOTED = [(A, "stale complete refused")]


def summary(*, fence: bool = True, seen: list[str] | None = None, **different: Any) -> Summary:
    """Sum up a play in which all was as it should be, but for what is different."""
    told: dict[str, Any] = {
        "writes": [REFUSED, REFUSED] if fence else [APPLIED, APPLIED],
        "effect": Told("effect", "A", A, refused=True, seconds=0.5),
        "completion": Told("complete", "A", A, refused=True),
        "record": SimpleNamespace(generation=B, state=State.COMPLETED, worker="B"),
        "noted": NOTED,
        **different,
    }
    client = SimpleNamespace(
        get=lambda _: told["record"],
        history=lambda _: [SimpleNamespace(generation=generation, event=event) for generation, event in told["noted"]],
    )
    nobody: Any = None
    story = Story(
        cast=nobody,
        client=cast("Any", client),
        job="j",
        queue="q",
        straight=Way("sql", {}, fence),
        page=nobody,
        held=nobody,
        answers=lambda: True,
        a=Told("claimed", "A", A),
        late_effect=told["effect"],
        late_completion=told["completion"],
        late_writes=told["writes"],
        seen=(KEPT if fence else DAMAGED) if seen is None else seen,
    )
    return story.summary("a store")


@pytest.mark.parametrize("fence", [True, False])
def test_a_play_as_it_should_be(fence: bool) -> None:
    as_it_should = summary(fence=fence)
    assert (as_it_should.ok, as_it_should.failed) == (True, [])
    assert (as_it_should.stale_write_refused, as_it_should.damage_shown) == (fence, not fence)
    assert as_it_should.effects_applied == (1 if fence else 3)
    assert "not as it should be" not in conclusion(as_it_should)


def by(worker: str, generation: int = B, state: State = State.COMPLETED) -> dict[str, Any]:
    return {"record": SimpleNamespace(generation=generation, state=state, worker=worker)}


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "B is not above A": (
        "generation_b is not above generation_a",
        by("B", A) | {"seen": ["", "", f"written by B under generation {A}", f"written by B under generation {A}"]},
    ),
    "A's completion was taken": (
        "stale_completion_refused is false",
        {"completion": Told("complete", "A", A)},
    ),
    "the store noted no refusal": ("stale_completion_refused is false", {"noted": []}),
    "the store noted a refusal of another's": ("stale_completion_refused is false", {"noted": [(B, NOTED[0][1])]}),
    "A completed it all the same": ("stale_completion_refused is false", by("A")),
    "nobody completed it": ("stale_completion_refused is false", by("B", state=State.RUNNING)),
    "A's effect was let through": (
        "zombie_stopped_by_own_clock is false",
        {"effect": Told("effect", "A", A, seconds=0.5)},
    ),
    "A's effect was refused while its lease lasted": (
        "zombie_stopped_by_own_clock is false",
        {"effect": Told("effect", "A", A, refused=True, seconds=-0.5)},
    ),
    "one late write was taken": ("stale_write_refused is false", {"writes": [REFUSED, APPLIED]}),
    "a write was refused and done": ("stale_write_refused is false", {"seen": [*KEPT[:3], DAMAGED[3]]}),
    "a draft was refused and done": ("stale_write_refused is false", {"seen": ["", DAMAGED[1], B_PAGE, B_PAGE]}),
    "B's page was never there": ("stale_write_refused is false", {"seen": [""] * 4}),
    "no damage at the destination": ("damage_shown is false", {"fence": False, "seen": KEPT}),
    "the draft came too late to do damage": ("damage_shown is false", {"fence": False, "seen": ["", *DAMAGED[2:], ""]}),
    "a write was refused without a fence": ("damage_shown is false", {"fence": False, "writes": [APPLIED, REFUSED]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_as_it_should_be_is_told(name: str) -> None:
    what, different = WRONG[name]
    wrong = summary(**different)
    assert (wrong.ok, wrong.failed) == (False, [what])
    assert conclusion(wrong) == f"This is not as it should be: {what}."


def test_an_effect_that_only_the_destination_refused_was_started() -> None:
    class Page:
        """A page with a fence."""

        answer = ""

        def write(self, token: Token, _text: str) -> None:
            raise StaleToken(token.job, token.generation, current=B)

    job = SimpleNamespace(generation=A, effect=lambda: nullcontext(Effect("j", A)))
    nobody: Any = None
    a = Player(nobody, "A", nobody, nobody, nobody)
    told = a._another_effect(cast("Any", job), Page(), 0.0)  # type: ignore[arg-type] # nobody reads it here
    assert not told.refused
    assert told.text == f"it was started, and the destination refused it: generation {B} has been here"


# -- the exit status


def stage(monkeypatch: pytest.MonkeyPatch, end: Summary | Exception) -> None:
    """Let every play come to this end at once."""

    def played(*_: object) -> Summary:
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr(main, "_play", played)


@pytest.mark.parametrize(("refused", "status"), [(True, 0), (False, 1)])
def test_the_exit_status_is_that_of_the_summary(
    refused: bool, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(monkeypatch, replace(summary(), stale_completion_refused=refused))
    assert play(json=True) == status
    assert json.loads(capsys.readouterr().out)["summary"]["ok"] is refused


def test_a_play_that_came_to_no_end_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(monkeypatch, Stalled("B never came"))
    assert play(json=True) == 1
    assert json.loads(capsys.readouterr().out) == {"summary": {"ok": False, "problem": "B never came"}}


def test_a_play_that_cannot_begin_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(monkeypatch, Unavailable("nobody answers"))
    monkeypatch.setattr(sys, "argv", ["tenure.demo"])
    assert command.main() == 1
    assert capsys.readouterr().err == "nobody answers\n"
