"""What `tenure prove` makes of a run: the rebuilt log, the lock's beliefs, the story, the page, the conclusion."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tenure.errors import Misuse
from tenure.proof.history import AnyLine, Call, Calm, Fault, History, Meta
from tenure.proof.judge import judge
from tenure.proof.judge.belief import BEFORE
from tenure.proof.prove.gathering import as_locks, rebuilt_log
from tenure.proof.prove.outcome import Proof
from tenure.proof.prove.picture import Picture
from tenure.proof.prove.plan import Plan
from tenure.proof.prove.report import page
from tenure.proof.prove.story import Stories
from tests.proof.lines import applied, claim, fenced, owned, row

# -- the log of a destination that keeps none


class Kept:
    """A destination in which `value` was left."""

    def __init__(self, *names: str) -> None:
        self.value = json.dumps(names) if names else None

    def read(self, scope: str) -> str | None:
        return self.value


def wrote(generation: int, at: float, *names: str, outcome: str = "ok") -> Call:
    return fenced("apply", generation, at, outcome=outcome, value=json.dumps(names))


def log(kept: Kept, *calls: Call) -> list[tuple[int | None, Any, Any]]:
    return [(line.generation, line.before, line.after) for line in rebuilt_log(kept, "d", calls)]  # type: ignore[arg-type]  # it is only read


def test_what_is_left_is_the_log() -> None:
    calls = [wrote(1, 1.0, "a"), wrote(1, 2.0, "a", "b"), wrote(2, 3.0, "a", "b", "c")]
    assert log(Kept("a", "b", "c"), *calls) == [(1, "nothing", "a"), (1, "a", "b"), (2, "b", "c")]


def test_writes_that_were_replaced_stand_before_what_replaced_them() -> None:
    calls = [
        wrote(1, 1.0, "a"),
        wrote(2, 5.0, "a", "b"),
        wrote(2, 6.0, "a", "b", "c"),
        wrote(1, 4.0, "a", "late"),
        wrote(3, 9.0, "a", "late", "d"),
    ]
    assert log(Kept("a", "late", "d"), *calls) == [
        (1, "nothing", "a"),
        (2, "a", "b"),
        (2, "b", "c"),
        (1, "a", "late"),
        (3, "late", "d"),
    ]


def test_a_write_without_an_answer_is_in_the_log_only_where_it_is_left() -> None:
    calls = [wrote(1, 1.0, "a"), wrote(1, 2.0, "a", "b", outcome="unknown"), wrote(2, 3.0, "a", "c")]
    assert log(Kept("a", "c"), *calls) == [(1, "nothing", "a"), (2, "a", "c")]
    assert log(Kept("a", "b"), *calls[:2]) == [(1, "nothing", "a"), (1, "a", "b")]


@pytest.mark.parametrize("left", ["garbage", 42, None, '{"a": 1}'])
def test_what_is_no_list_of_writes_has_lost_them_all(left: Any) -> None:
    kept = Kept()
    kept.value = left
    assert log(kept, wrote(1, 1.0, "a")) == []


def test_a_destination_that_cannot_be_read_in_the_end_is_named() -> None:
    class Away(Kept):
        def read(self, scope: str) -> str | None:
            raise ConnectionError("no server")

    with pytest.raises(Misuse, match="the destination d could not be read in the end: ConnectionError: no server"):
        log(Away(), wrote(1, 1.0, "a"))


def test_a_write_that_vanished_at_the_end_is_missed_by_the_judge() -> None:
    second = fenced("apply", 1, 2.0, value='["a", "b"]', sequence=2)
    calls = [claim(1, 0.0), wrote(1, 1.0, "a"), second]
    lines = rebuilt_log(Kept("a"), "", calls)  # type: ignore[arg-type]  # it is only read
    broken = judge(History.of([Meta(), *calls, *lines]))["I12"].violations
    assert [violation.sentence for violation in broken] == [
        "scope s: A's write 2 under generation 1 was accepted at 2.500 s, but the destination's log does not tell of it"
    ]


def test_a_lease_as_a_lock_is_believed_in_from_entering_to_leaving() -> None:
    calls = [
        claim(1, 0.0),
        Call(
            process="process A", call="effect", sent=1.0, answered=50.0, outcome="ok", job="j", generation=1, owner="x"
        ),
        claim(2, 40.0, "B", lost=1),
    ]
    history = as_locks(History.of([Meta(must_fail=("I7",)), *calls]))
    assert [(call.call, call.deadline) for call in history.calls] == [("claim", 50.0), ("claim", None)]
    assert judge(history).good


# -- words and picture


def careless_run() -> History:
    """A is stopped inside its write, B takes over and writes, and A's write is accepted all the same."""
    calls = [
        claim(1, 0.0, lease=1.0, deadline=0.9),
        fenced("raise", 1, 1.0, scope="j"),
        fenced("apply", 1, 2.0, scope="j", answered=9.0, value='["late"]', number=7),
        claim(2, 4.0, "B", lost=1),
        fenced("raise", 2, 5.0, "B", scope="j"),
        fenced("apply", 2, 6.0, "B", scope="j", value='["<b>"]'),
        owned("complete", 2, 7.0, "B"),
        owned("complete", 1, 10.0, outcome="stale", current=2),
    ]
    paused = Fault(what="pause", whom="process A", began=2.1, ended=8.5)
    log = rebuilt_log(Kept("late"), "", calls)  # type: ignore[arg-type]  # it is only read
    return History.of([Meta(began=0.0, seed=3, destination="d"), *calls, paused, *log])


def test_the_story_names_the_late_write_and_the_pause() -> None:
    history = careless_run()
    judgement = judge(history)
    assert {result.invariant for result in judgement.results if result.violations} >= {"I8", "I9"}
    (told,) = Stories(history).of(judgement)
    assert told[0] == "What happened to job j:"
    assert "  2.100 s  process A is stopped" in told
    assert "  8.500 s  process A goes on, 6.4 s later, and knows nothing of it" in told
    assert "  4.500 s  B is given generation 2, taking over from generation 1, whose lease had ended" in told
    assert told[-1] == (
        "So: A's write 1 under generation 1 was accepted at 9.000 s, although B had told the destination of generation"
        " 2 at 5.500 s. It had been stopped for 6.4 s on the way. A destination that compares the generation and writes"
        " in one atomic step refuses such a write."
    )
    moments = [float(line.split()[0]) for line in told[1:-1]]
    assert moments == sorted(moments)


def test_the_story_names_the_write_that_another_had_overtaken() -> None:
    calls = [
        claim(1, 0.0),
        fenced("apply", 1, 1.0, scope="j", sequence=1, value='["a"]'),
        fenced("apply", 1, 2.0, scope="j", sequence=2, value='["a", "b"]'),
        fenced("apply", 1, 3.0, scope="j", sequence=1, value='["a"]', detail="sent again"),
        owned("complete", 1, 7.0),
    ]
    told = Stories(History.of([Meta(began=0.0), *calls])).tell("j", moral=True)
    assert told[-1] == (
        "So: A's write 1 under generation 1 was accepted at 3.500 s, although its write 2 had been accepted at 2.500 s."
        " A destination that also compares the numbers of writes refuses one that came before, or that another has"
        " overtaken."
    )
    assert sum(line.startswith("So: ") for line in told) == 1


def test_the_story_tells_what_befell_the_store_meanwhile() -> None:
    befell = [
        Fault(what="crash", whom="store", began=1.0, ended=1.5),
        Fault(what="disk", whom="store", began=2.0, ended=4.0),
        Fault(what="jump", whom="store", began=5.0, ended=5.0, detail="by -2.0 s"),
        Fault(what="disk", whom="store", began=6.0, ended=60.0),
        Fault(what="kill", whom="somebody else", began=6.5, ended=6.5),
        Fault(what="delay", whom="store", began=6.5, ended=6.6, detail="held"),
    ]
    history = History.of([Meta(began=0.0), claim(1, 0.0, answered=0.5), owned("complete", 1, 7.0), *befell])
    assert Stories(history).tell("j")[2:-1] == [
        "  1.000 s  the store's server is killed",
        "  1.500 s  the store's server is there again, 0.5 s later",
        "  2.000 s  the store has no room left",
        "  4.000 s  the store has room again, 2.0 s later",
        "  5.000 s  the store's clock jumps by -2.0 s",
        "  6.000 s  the store has no room left",
    ]


def test_the_picture_tells_what_was_disturbed() -> None:
    disturbed = [
        Fault(what="cut", whom="store", began=1.0, ended=1.5, detail="drop"),
        Fault(what="reorder", whom="destination", began=2.0, ended=3.0, detail="3 others overtook a request"),
        Fault(what="disk", whom="store", began=3.0, ended=4.0),
        Fault(what="jump", whom="store", began=5.0, ended=5.0, detail="by -2.0 s"),
    ]
    history = History.of([Meta(began=0.0), claim(1, 0.0), *disturbed])
    marks = [mark for mark in ET.fromstring(Picture(history).draw()) if mark.get("class") == "net"]
    assert ["".join(mark.itertext()) for mark in marks] == [
        "the network to the store is cut: drop",
        "on the way to the destination, 3 others overtook a request",
        "the store has no room",
        "the store's clock jumps by -2.0 s",
    ]


def test_a_good_run_has_no_story() -> None:
    history = History.of([Meta(began=0.0), claim(1, 0.0), owned("complete", 1, 1.0)])
    assert Stories(history).of(judge(history)) == []


def test_the_page_needs_nothing_else_and_marks_what_came_late() -> None:
    history = careless_run()
    proof = Proof(Plan(destination="m:<d>"), history, judge(history), 1, 10.0)
    text = page(proof)
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)|@import|url\(|https?://""", text) == []
    picture = text[text.index("<svg width", text.index('class="picture"')) : text.index("</svg></div>") + 6]
    marks = [(mark.tag, mark.get("class")) for mark in ET.fromstring(picture).iter() if mark.get("class")]
    assert marks.count(("rect", "run")) == 2
    assert marks.count(("circle", "late")) == 1
    assert marks.count(("rect", "pause")) == 1
    assert marks.count(("circle", "store")) == 1
    told = json.loads(re.search(r'id="told">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]  # it is there
    assert list(told) == ["j"]
    assert "m:&lt;d&gt;" in text
    assert "m:<d>" not in text
    assert "$" not in text.replace("${run.dataset.job}", "")


TWO_OWNERS = History.of([Meta(), claim(1, 0.0), claim(1, 1.0, "B")])
AS_LOCKS = Plan(workload="mutex")


@pytest.mark.parametrize(
    ("plan", "history", "says"),
    [
        (Plan(destination="m:f"), careless_run(), "the destination m:f let late writes through"),
        (Plan(fence=False), careless_run(), "updates were lost, and that is the point"),
        (Plan(), careless_run(), "this should never happen"),
        (Plan(), TWO_OWNERS, "this should never happen"),
        (Plan(destination="m:f"), TWO_OWNERS, "this should never happen"),
        (Plan(fence=False), TWO_OWNERS, "this should never happen"),
        (AS_LOCKS, TWO_OWNERS, "this should never happen"),
        (Plan(), History.of([Meta(), claim(1, 0.0)]), "no write came late in this run"),
        (Plan(fence=False), History.of([Meta(), claim(1, 0.0)]), "nothing was lost without a fence, this time"),
        (AS_LOCKS, History.of([Meta(must_fail=("I7",)), claim(1, 0.0)]), "no two workers were inside at once"),
    ],
)
def test_a_run_is_concluded_by_what_it_was_made_to_show(plan: Plan, history: History, says: str) -> None:
    assert Proof(plan, history, judge(history), 1, 10.0).conclusion.startswith(says)


def bars(*lines: AnyLine) -> list[tuple[str, str]]:
    """Tell the worker, and the moments between which each bar is drawn."""
    drawn = ET.fromstring(Picture(History.of([Meta(began=0.0), *lines])).draw())
    told = ["".join(mark.itertext()) for mark in drawn if mark.get("class") == "run"]
    return [(one.split(":")[0], one.rpartition(", ")[2]) for one in told]


KILLED = Fault(what="kill", whom="process A", began=50.0)


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        ([], "50.000"),
        ([owned("complete", 1, 1.0, outcome="stale")], "1.500"),
        ([fenced("apply", 1, 2.0, outcome="stale")], "2.500"),
        ([owned("renew", 1, 3.0, outcome="stale")], "3.500"),
        ([owned("renew", 1, 3.0)], "50.000"),
        ([owned("renew", 1, 3.0), claim(2, 40.0, "B", lost=1)], "3.500"),
        ([owned("renew", 1, 3.0), claim(2, 60.0, "B", lost=1)], "50.000"),
    ],
)
def test_a_bar_ends_with_the_last_that_was_heard_of_its_run(lines: list[AnyLine], ended: str) -> None:
    assert bars(claim(1, 0.0), *lines, KILLED)[0] == ("process A", f"0.500 s to {ended} s")


# -- who is at fault


def lossy_run(*more: AnyLine) -> History:
    """Two workers, one after the other; A's answer came in late, its write did not."""
    calls = [
        claim(1, 0.0, lease=1.0, deadline=0.9),
        fenced("raise", 1, 1.0, scope="j", destination="m:f"),
        fenced("apply", 1, 2.0, scope="j", destination="m:f", answered=9.0, value='["a"]'),
        claim(2, 4.0, "B", lost=1),
        fenced("raise", 2, 5.0, "B", scope="j", destination="m:f"),
        fenced("apply", 2, 6.0, "B", scope="j", destination="m:f", value='["b"]'),
        owned("complete", 2, 7.0, "B"),
    ]
    return History.of([Meta(began=0.0, destination="m:f"), *calls, *more])


@pytest.mark.parametrize("fence", [True, False])
def test_a_destination_that_keeps_nothing_is_told_to_lose_what_it_accepted(fence: bool) -> None:
    history = lossy_run()
    proof = Proof(Plan(destination="m:f", fence=fence), history, judge(history), 1, 10.0)
    assert [one.invariant for one in proof.judgement.results if one.violations] == ["I12"]
    assert proof.conclusion.startswith("the destination m:f loses what it accepted")
    assert "let late writes through" not in proof.conclusion
    [story] = proof.stories
    assert [line for line in story if line.startswith("So: ")] == [story[-1]]
    assert "is not in it in the end, and no late write has replaced it" in story[-1]


def failing_run(*calls: Call) -> History:
    started = [claim(1, 0.0), fenced("apply", 1, 1.0, outcome="unknown", scope="j", destination="m:f")]
    return History.of([Meta(began=0.0), *started, *calls, Calm(at=3.0, within=5.0), row("available", 1, at=9.0)])


@pytest.mark.parametrize(
    ("destination", "calls", "says"),
    [
        (
            "m:f",
            [owned("fail", 1, 2.0, detail="ValueError: bad column")],
            "1 job did not finish, since what was asked of the destination m:f failed: ValueError: bad column",
        ),
        (
            "m:f",
            [owned("retry", 1, 2.0)],
            "1 job did not finish, since what was asked of the destination m:f failed",
        ),
        ("m:f", [], "1 job did not finish, since the destination m:f did not answer"),
        ("m:f", [owned("release", 1, 8.0)], "1 job did not finish, since the destination m:f did not answer"),
        ("m:f", [fenced("apply", 1, 1.5, scope="j", sequence=2)], "this should never happen"),
        (None, [owned("fail", 1, 2.0)], "this should never happen"),
    ],
)
def test_jobs_that_do_not_finish_since_their_destination_fails_are_told_so(
    destination: str | None, calls: list[Call], says: str
) -> None:
    history = failing_run(*calls)
    proof = Proof(Plan(destination=destination), history, judge(history), 1, 10.0)
    assert proof.conclusion.startswith(says)
    why = [call.detail for call in calls if call.detail]
    assert all(any(f"with fail under generation 1 ({told})" in line for line in proof.stories[0]) for told in why)


NEWER = "late workers replaced nothing newer: of their writes,"
RAISED = (claim(2, 42.0, "B", lost=1), fenced("raise", 2, 43.0, "B", scope="j"), applied("raise", 2, scope="j"))


def gated(sequence: int, at: float, outcome: str = "ok", *, number: int = 1) -> list[Call]:
    """A gate that told a deadline at 28 s, and its write."""
    gate = owned("effect", 1, 1.0, sequence=sequence, deadline=28.0)
    return [gate, fenced("apply", 1, at, outcome=outcome, sequence=sequence, scope="j", number=number)]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (gated(1, 40.0, "stale"), "late workers changed nothing"),
        (gated(1, 40.0, "unknown"), "late workers changed nothing"),
        (
            [*gated(1, 40.0), applied("apply", 1, 1, scope="j"), *RAISED, *gated(2, 44.0, "stale")],
            f"{NEWER} 1 was {BEFORE}",
        ),
        (
            [*gated(1, 40.0, "unknown"), applied("apply", 1, 1, scope="j")],
            f"{NEWER} 1 was {BEFORE}",
        ),
        (
            [*gated(1, 40.0), *gated(2, 41.0), applied("apply", 1, 1, scope="j"), applied("apply", 1, 2, scope="j")],
            f"{NEWER} 2 were {BEFORE}",
        ),
        ([*gated(1, 20.0), applied("apply", 1, 1, scope="j")], "no write came late in this run"),
    ],
)
def test_a_good_run_is_concluded_by_what_became_of_its_late_writes(lines: list[AnyLine], says: str) -> None:
    history = History.of([Meta(began=0.0), claim(1, 0.0), *lines])
    judgement = judge(history)
    assert judgement.good, judgement.violations
    assert Proof(Plan(), history, judgement, 1, 10.0).conclusion.startswith(says)


def test_a_refusal_that_nothing_explains_and_a_broken_store_are_not_the_destinations_carelessness() -> None:
    refused = fenced("apply", 1, 3.0, outcome="stale", scope="j", sequence=2)
    kept = applied("apply", 1, 1, scope="j")
    history = History.of([Meta(began=0.0), claim(1, 0.0), fenced("apply", 1, 1.0, scope="j"), refused, kept])
    told = Proof(Plan(destination="m:f"), history, judge(history), 1, 10.0).conclusion
    assert told == "the destination m:f refuses writes as stale although it has met nothing newer"
    stale = History.of([Meta(began=0.0), claim(1, 0.0), owned("complete", 1, 1.0, outcome="stale")])
    assert Proof(Plan(destination="m:f"), stale, judge(stale), 1, 10.0).conclusion.startswith(
        "this should never happen"
    )
