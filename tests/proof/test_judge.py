"""What a run asserts and what it does not, and what it must be seen to break."""

from __future__ import annotations

import re

import pytest

from tenure.errors import Misuse
from tenure.proof.history import AnyLine, Calm
from tenure.proof.judge import INVARIANTS, Verdict
from tests.proof.lines import RUN, applied, claim, fenced, judged, operated, owned, row

TWO_BELIEVERS = (claim(1, 0.0, deadline=35.0), claim(2, 31.0, "B", lost=1))

SOUND: tuple[AnyLine, ...] = (
    claim(1, 0.0),
    owned("renew", 1, 10.0),
    owned("effect", 1, 11.0),
    fenced("raise", 1, 11.0),
    fenced("apply", 1, 12.0),
    claim(2, 41.0, "B", lost=1),
    owned("renew", 1, 42.0, outcome="stale"),
    owned("progress", 1, 42.0, outcome="stale", current=2),
    fenced("raise", 2, 42.0, "B"),
    fenced("apply", 1, 42.0, outcome="stale", sequence=2),
    owned("fail", 2, 43.0, "B"),
    claim(3, 44.0),
    operated("release", 45.0),
    claim(5, 46.0, "B"),
    owned("complete", 3, 47.0, outcome="stale"),
    owned("step", 5, 47.0, "B", key="charge", result="a"),
    owned("step", 5, 48.0, "B", "already", key="charge", result="a"),
    owned("complete", 5, 49.0, "B", result="r"),
    owned("complete", 5, 50.0, "B", "already", result="r"),
    applied("raise", 1, at=11.2),
    applied("apply", 1, 1, at=12.2, before=0, after=1),
    applied("raise", 2, at=42.2),
    Calm(at=45.0, within=10.0),
    row("completed", 5, at=60.0, attempts=1, max_attempts=3, takeovers=1, max_takeovers=3, result="r"),
)


def test_a_sound_history_is_good() -> None:
    judgement = judged(*SOUND)
    assert judgement.violations == []
    silent = {result.invariant for result in judgement.results if result.verdict is Verdict.UNASSERTED}
    assert silent == {"I9", "I18"}
    assert judgement.counts == {
        "calls": 19,
        "claims": 4,
        "takeovers": 1,
        "completions": 1,
        "writes applied": 1,
        "refused as stale": 4,
        "renewals after the end of their run": 0,
        "answers lost": 0,
        "faults": 0,
    }


def test_the_gap_from_a_gate_to_its_write_is_told() -> None:
    judgement = judged(
        claim(1, 0.0),
        owned("effect", 1, 1.0, sequence=1, deadline=28.0),
        owned("effect", 1, 2.0, sequence=2, deadline=28.0),
        fenced("apply", 1, 1.25),
        fenced("apply", 1, 40.0, outcome="stale", sequence=2),
        applied("apply", 1, 1),
        applied("raise", 2),
    )
    assert judgement.violations == []
    [note] = judgement.notes
    assert note.startswith("from a gate to its write it took 38.000 s at most; after the deadline of their lease, or")
    assert note.endswith("write went out: 1 refused")


RAISED = "its generation there"
ACCEPTED = fenced("apply", 1, 40.0)
LOGGED = applied("apply", 1, 1)


@pytest.mark.parametrize(
    ("fate", "lines"),
    [
        (f"accepted before anybody newer had raised {RAISED}", [ACCEPTED, LOGGED]),
        (f"accepted before anybody newer had raised {RAISED}", [ACCEPTED, LOGGED, claim(2, 30.0, "B", lost=1)]),
        (f"accepted before anybody newer had raised {RAISED}", [ACCEPTED, fenced("raise", 2, 41.0, "B"), LOGGED]),
        (
            f"accepted before anybody newer had raised {RAISED}",
            [ACCEPTED, fenced("raise", 2, 40.2, "B"), LOGGED, applied("raise", 2)],
        ),
        (
            f"accepted before or after somebody newer had raised {RAISED}",
            [ACCEPTED, fenced("raise", 2, 40.2, "B"), LOGGED],
        ),
        (
            f"accepted after somebody newer had raised {RAISED}",
            [ACCEPTED, fenced("raise", 2, 40.2, "B"), applied("raise", 2), LOGGED],
        ),
        (f"accepted after somebody newer had raised {RAISED}", [ACCEPTED, fenced("raise", 2, 39.0, "B"), LOGGED]),
        ("refused", [fenced("apply", 1, 40.0, outcome="stale")]),
        ("failed", [fenced("apply", 1, 40.0, outcome="fail")]),
        ("without an answer", [fenced("apply", 1, 40.0, outcome="unknown")]),
        ("without an answer", [fenced("apply", 1, 20.0), fenced("apply", 1, 40.0, outcome="unknown"), LOGGED]),
        (
            f"accepted before anybody newer had raised {RAISED}",
            [fenced("apply", 1, 40.0, outcome="unknown"), LOGGED, applied("raise", 2)],
        ),
        ("told that it was done before", [fenced("apply", 1, 40.0, outcome="already")]),
    ],
)
def test_what_became_of_a_late_write_is_told(fate: str, lines: list[AnyLine]) -> None:
    judgement = judged(claim(1, 0.0), owned("effect", 1, 1.0, sequence=1, deadline=28.0), *lines)
    note = next(note for note in judgement.notes if note.startswith("from a gate"))
    assert note.endswith(f"or a newer claim, 1 write went out: 1 {fate}")


ROBBED = (operated("release", 30.0), claim(3, 31.0, "B"))


@pytest.mark.parametrize(
    ("late", "lines"),
    [
        (1, [owned("effect", 1, 27.0, sequence=1)]),  # the gate told no deadline: that of the claim counts
        (1, [owned("effect", 1, 1.0, sequence=1, deadline=28.0), owned("renew", 1, 20.0, answered=45.0)]),
        (0, [owned("effect", 1, 1.0, sequence=1, deadline=28.0), owned("renew", 1, 20.0)]),
        (1, [owned("effect", 1, 1.0, sequence=1, deadline=48.0), owned("renew", 1, 20.0), *ROBBED]),
    ],
)
def test_a_write_is_late_by_what_its_sender_had_been_told(late: int, lines: list[AnyLine]) -> None:
    judgement = judged(claim(1, 0.0), *lines, fenced("apply", 1, 40.0, outcome="stale"))
    note = next(note for note in judgement.notes if note.startswith("from a gate"))
    assert f"{late} write" in note


def test_renewals_that_met_the_end_of_their_own_run_are_counted_apart() -> None:
    counts = judged(
        claim(1, 0.0),
        owned("complete", 1, 1.2),
        owned("renew", 1, 1.0, outcome="stale", answered=1.9),
        claim(2, 40.0, "B"),
        owned("complete", 1, 41.0, outcome="stale"),
        owned("renew", 2, 42.0, "B", outcome="stale"),
    ).counts
    assert (counts["refused as stale"], counts["renewals after the end of their run"]) == (2, 1)


@pytest.mark.parametrize("named", ["d", ""])
def test_accepted_writes_of_a_destination_whose_log_is_empty_are_lost_where_the_run_names_it(named: str) -> None:
    lines = [claim(1, 0.0), fenced("apply", 1, 1.0, destination="d"), fenced("apply", 1, 2.0, "A", "unknown")]
    judgement = judged(*lines, destination=named)
    if named:
        assert judgement["I12"].verdict is Verdict.BROKEN
        assert "was accepted at 1.500 s, but the destination's log does not tell of it" in judgement.violations[0]
        assert not any("is told" in note for note in judgement.notes)
    else:
        assert judgement["I12"].verdict is Verdict.UNASSERTED
        [note] = judgement.notes
        assert note.startswith("of 1 accepted write no destination's log is told, and the run names none: whether")


def test_what_came_late_is_told_before_what_was_repeated_anywhere() -> None:
    judgement = judged(
        applied("apply", 1, 1, before=0, after=1),
        applied("apply", 1, 1, before=0, after=1),
        applied("apply", 2, 1, scope="t", before=0, after=1),
        applied("apply", 1, 2, scope="t", before=0, after=1),
    )
    for invariant in ("I8", "I9"):
        told = [violation.sentence for violation in judgement[invariant].violations]
        assert [one[: one.index(" was ")] for one in told] == [
            "scope t: write 2 of generation 1",
            "scope s: write 1 of generation 1",
        ]


# -- asserted or not


@pytest.mark.parametrize(
    ("invariant", "lines", "meta", "because"),
    [
        ("I5", [claim(6, 0.0), row("available", 5)], {"durable": False}, "the store's class may lose"),
        ("I6", [claim(1, 0.0), claim(2, 1.0, "B")], {"durable": False}, "the store's class may lose"),
        ("I7", TWO_BELIEVERS, {"clock_jumps": True}, "clocks jump"),
        ("I13", [claim(1, 0.0), owned("renew", 1, 1.0, outcome="stale")], {"durable": False}, "may lose"),
        ("I14", [row("available", 1, at=99.0)], {}, "the faults never stopped"),
        ("I17", [claim(1, 0.0), owned("progress", 1, 1.0, process="a clone")], {"clones": True}, "copied"),
        ("I18", [*RUN], {"history": "abnormal"}, "abnormal turns only"),
        ("I18", [*RUN], {}, "the store's history is not told"),
    ],
)
def test_what_a_run_cannot_show_is_not_asserted(
    invariant: str, lines: list[AnyLine], meta: dict[str, object], because: str
) -> None:
    result = judged(*lines, **meta)[invariant]
    assert result.verdict is Verdict.UNASSERTED
    assert result.checked == 0
    assert because in str(result.because)
    assert result.good


def test_an_empty_run_asserts_nothing_and_says_what_it_lacks() -> None:
    judgement = judged()
    assert {result.verdict for result in judgement.results} == {Verdict.UNASSERTED}
    assert judgement["I1"].because == "the history tells of no claims"
    assert all(result.because for result in judgement.results)


def test_each_invariant_has_its_number_and_its_promise() -> None:
    assert [invariant.number for invariant in INVARIANTS] == [f"I{number}" for number in range(1, 19)]
    for invariant in INVARIANTS:
        assert invariant.promise.endswith(".")
        assert not re.match(r"I\d", invariant.promise)


def test_a_run_that_must_break_an_invariant_is_good_when_it_does() -> None:
    judgement = judged(*TWO_BELIEVERS, clock_jumps=True, must_fail=("I7",))
    assert judgement["I7"].verdict is Verdict.MUST_FAIL
    assert judgement.good
    assert len(judgement["I7"].violations) == 1
    assert judgement.violations == []


def test_a_run_that_must_break_an_invariant_is_bad_when_it_does_not() -> None:
    judgement = judged(*SOUND, clock_jumps=True, must_fail=("I7",))
    assert judgement["I7"].verdict is Verdict.IDLE
    assert not judgement.good
    assert judgement.violations == ["I7: this run is made to break it, and nothing did"]


def test_an_unknown_invariant_is_refused() -> None:
    with pytest.raises(Misuse, match="must_fail names I19, no invariant"):
        judged(must_fail=("I7", "I19"))
