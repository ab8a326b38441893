"""What may have happened is no violation: what the judge must not complain of."""

from __future__ import annotations

import pytest

from tenure.proof.history import AnyLine, Calm, Row
from tests.proof.lines import RUN, applied, claim, ended, entry, fenced, judged, lost_claim, operated, owned, row, taken

FINE: dict[str, tuple[list[AnyLine], dict[str, object]]] = {
    "a late end": ([claim(1, 0.0), owned("complete", 1, 99.0)], {}),
    "a renewal too late, and a late end": (
        [claim(1, 0.0), owned("renew", 1, 40.0, outcome="stale"), owned("complete", 1, 41.0)],
        {},
    ),
    "answers that crossed": ([claim(2, 0.0), claim(1, 0.1, "B"), operated("release", 0.1)], {}),
    "an end that may have been accepted": (
        [claim(1, 0.0), owned("release", 1, 1.0, outcome="unknown"), claim(2, 2.0, "B")],
        {},
    ),
    "an operator who may have come between": (
        [claim(1, 0.0), operated("release", 1.0, outcome="unknown"), owned("progress", 1, 2.0, outcome="stale")],
        {},
    ),
    "a takeover of which nobody was told": (
        [claim(1, 0.0), lost_claim(31.0, "B"), owned("progress", 1, 32.0, outcome="stale")],
        {},
    ),
    "a claim of which nobody was told, given back": (
        [lost_claim(0.0), owned("release", 1, 2.0), claim(2, 3.0, "B")],
        {},
    ),
    "a claim of which nobody was told, by the store's history": (
        [lost_claim(0.0), lost_claim(30.0, "B"), *RUN, taken("takeover", 2, 30.2, "B", right=1)],
        {"history": "full"},
    ),
    "a claim of which nobody was told, by the row": ([claim(1, 0.0), lost_claim(31.0), row("running", 2)], {}),
    "a completion of which nobody was told, by the row": (
        [claim(1, 0.0), owned("complete", 1, 1.0, outcome="unknown", result="r"), row("completed", 1, result="r")],
        {},
    ),
    "a completion that was sent twice": (
        [claim(1, 0.0), owned("complete", 1, 1.0, outcome="unknown"), owned("complete", 1, 2.0, outcome="already")],
        {},
    ),
    "a failure that was sent twice": (
        [
            claim(1, 0.0),
            owned("fail", 1, 1.0, outcome="unknown"),
            owned("fail", 1, 2.0, outcome="already"),
            row("available", 1, attempts=1),
        ],
        {},
    ),
    "a claim of which nobody was told, and its end neither": (
        [
            lost_claim(0.0),
            owned("release", 1, 2.0, outcome="unknown"),
            entry("release", None, 2.2, right=1),
            row("available", 1),
        ],
        {"history": "abnormal"},
    ),
    "an end that was sent twice and never answered": (
        [
            claim(1, 0.0),
            owned("release", 1, 1.0, outcome="unknown"),
            claim(2, 2.0, "B"),
            owned("release", 1, 40.0, outcome="unknown"),
            entry("release", None, 1.2, right=1),
            row("running", 2),
        ],
        {"history": "abnormal"},
    ),
    "a takeover that arrived long after it was sent": (
        [
            claim(1, 0.0),
            lost_claim(31.0, "B"),
            owned("progress", 1, 33.0),
            *RUN,
            taken("takeover", 2, 34.0, "B", right=1),
        ],
        {"history": "full"},
    ),
    "a failure of which nobody was told": (
        [claim(1, 0.0), owned("fail", 1, 1.0, outcome="unknown"), row("available", 1, attempts=1)],
        {},
    ),
    "a failure that never arrived": (
        [claim(1, 0.0), owned("fail", 1, 1.0, outcome="unknown"), row("running", 1, attempts=0)],
        {},
    ),
    "a pruned job": ([claim(6, 0.0), owned("complete", 6, 1.0), operated("prune", 2.0), row(None)], {}),
    "a prune of others": (
        [claim(6, 0.0), owned("complete", 6, 1.0), operated("prune", 2.0, job=None), row("completed", 6)],
        {},
    ),
    "a prune of many, in the history": (
        [
            claim(1, 0.0),
            owned("complete", 1, 1.0),
            operated("prune", 2.0, job=None),
            *RUN,
            ended("complete", 1, 1.2, "completed"),
            entry("prune", None, 2.2),
        ],
        {"history": "full"},
    ),
    "a prune of many": ([claim(6, 0.0), owned("complete", 6, 1.0), operated("prune", 2.0, job=None), row(None)], {}),
    "an id that came back": (
        [claim(6, 0.0), owned("complete", 6, 1.0), operated("prune", 2.0), claim(7, 3.0), owned("complete", 7, 4.0)],
        {},
    ),
    "counters that began again": (
        [claim(1, 0.0), owned("fail", 1, 1.0), operated("retry", 2.0), claim(2, 3.0), row("running", 2, attempts=0)],
        {},
    ),
    "whole milliseconds": ([claim(1, 0.0, deadline=None), claim(2, 29.499, "B", lost=1)], {}),
    "a claim that a failover lost": (
        [claim(1, 0.0), claim(1001, 2.0, "B"), entry("enqueue", 0, -1.0, "available"), taken("claim", 1001, 2.2, "B")],
        {"durable": False},
    ),
    "a renewal that a failover lost": (
        [claim(1, 0.0), owned("renew", 1, 20.0, deadline=None), claim(1001, 31.0, "B", lost=1), *RUN],
        {"durable": False},
    ),
    "a refusal by a store that had lost the claim": (
        [claim(2, 0.0), owned("progress", 2, 1.0, outcome="stale", current=1), fenced("raise", 2, 0.8)],
        {"durable": False},
    ),
    "a right that came back when a takeover was lost": (
        [
            claim(1, 0.0),
            lost_claim(31.0, "B"),
            owned("step", 1, 32.0, outcome="stale"),
            owned("step", 1, 40.0),
            fenced("raise", 1, 41.0),
        ],
        {"durable": False},
    ),
    "a lease cut short by a clock that jumped": (
        [claim(1, 0.0, deadline=None), claim(2, 9.0, "B", lost=1)],
        {"clock_jumps": True},
    ),
    "a renewal refused after a jump": (
        [claim(1, 0.0), owned("renew", 1, 1.0, outcome="stale")],
        {"clock_jumps": True},
    ),
    "a belief that ended with the run": (
        [claim(1, 0.0, deadline=99.0), owned("release", 1, 20.0, outcome="unknown"), claim(2, 31.0, "B", lost=1)],
        {},
    ),
    "an effect on the word of a renewal under way": (
        [claim(1, 0.0), owned("renew", 1, 20.0, answered=29.0), owned("effect", 1, 28.5, deadline=48.0)],
        {},
    ),
    "a belief on a slow clock": ([claim(1, 0.0), owned("effect", 1, 29.0, deadline=33.0)], {"clock_jumps": True}),
    "a gate that was closed": ([claim(1, 0.0), owned("effect", 1, 99.0, outcome="fail")], {}),
    "an announcement repeated": ([applied("raise", 1), applied("apply", 1, 1), applied("raise", 1)], {}),
    "a scope that was reset": ([applied("raise", 900), applied("reset", None), applied("raise", 1)], {}),
    "a new owner after a seal": ([applied("seal", 1), applied("raise", 2), applied("apply", 2, 1)], {}),
    "a write refused after a seal": (
        [fenced("seal", 1, 1.0), fenced("apply", 1, 2.0, outcome="stale"), applied("seal", 1, at=1.2)],
        {},
    ),
    "a destination without a log": ([fenced("apply", 1, 1.0), fenced("apply", 1, 2.0, outcome="stale")], {}),
    "writes computed from nothing": ([applied("apply", 1, 1, after=1), applied("apply", 1, 2, after=2)], {}),
    "a key that was forgotten": (
        [applied("apply", 1, 1, key="k", at=0.0), applied("apply", 2, 1, key="k", at=61.0)],
        {"retention": 60.0},
    ),
    "a repeat with the first answer": (
        [applied("apply", 1, 1, key="k", value=[1]), applied("repeat", 2, 1, key="k", value=[1])],
        {},
    ),
    "a job that is not due": (
        [Calm(at=0.0, within=9.0), Row(job="j", state=row("available").state, at=99.0, due_in=5.0)],
        {},
    ),
    "a row that was read too early": ([Calm(at=0.0, within=9.0), row("running", 1, at=8.0)], {}),
    "a job that came back with a delay": (
        [Calm(at=0.0, within=9.0), claim(1, 1.0), owned("retry", 1, 2.0), claim(2, 62.0), owned("complete", 2, 63.0)],
        {},
    ),
    "versions of a lease, each with a holder": (
        [claim(1, 0.0), owned("renew", 1, 1.0, version=1), owned("renew", 1, 2.0, version=2, process="a clone")],
        {},
    ),
    "a poison job": (
        [
            claim(1, 0.0),
            claim(2, 31.0, "B", lost=1, lease=None, deadline=None, state=row("discarded").state),
            row("discarded", 2, takeovers=1, max_takeovers=1),
        ],
        {},
    ),
    "an end in both histories": (
        [
            claim(1, 0.0),
            owned("fail", 1, 1.0),
            *RUN,
            ended("fail", 1, 1.2, "available", attempts=1),
            row("available", 1, attempts=1),
        ],
        {"history": "full"},
    ),
    "the same verb of an owner and an operator": (
        [
            claim(1, 0.0),
            owned("release", 1, 1.0, outcome="unknown"),
            operated("release", 2.0),
            entry("release", None, 1.2, right=1),
            entry("release", None, 2.2, right=1),
        ],
        {"history": "abnormal"},
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_what_may_have_happened_is_no_violation(name: str) -> None:
    lines, meta = FINE[name]
    assert judged(*lines, **meta).violations == []


def test_a_renewal_that_comes_in_at_the_gate_counts_for_the_deadline() -> None:
    lines = [claim(1, 0.0), owned("renew", 1, 10.2), owned("effect", 1, 10.0, deadline=38.0)]
    assert judged(*lines)["I16"].verdict == "kept"
