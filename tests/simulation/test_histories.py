"""A small run of what `make simulate` does for a minute."""

from __future__ import annotations

from pathlib import Path

from tenure.proof.history import read, write
from tenure.proof.judge import judge
from tenure.testing.simulation import Played, Theatre, run
from tenure.testing.simulation.exhaustive import plan_of
from tenure.testing.simulation.plan import Fault, draw

HISTORIES = {"memory": 150, "sqlite": 30}


def test_no_history_breaks_a_promise(any_theatre: Theatre) -> None:
    report = run(any_theatre, seed=1, histories=HISTORIES[any_theatre.store])
    assert [(played.seed, played.violations) for played, _ in report.broken] == []
    assert report.histories == HISTORIES[any_theatre.store]
    assert report.good


def test_a_few_histories_reach_most_of_what_is_rare(theatre: Theatre) -> None:
    report = run(theatre, seed=1000, histories=150)
    assert len(report.missing) <= 8


def first(theatre: Theatre, what: str) -> Played:
    """Play histories with one kind of fault until one of them reaches a mark."""
    for seed in range(1, 400):
        plan = draw(seed)
        if plan.fenced or what == "update lost without a fence":
            played = theatre.perform(plan)
            if what in played.reached:
                return played
    raise AssertionError(f"400 histories did not reach: {what}")


def test_a_destination_without_a_fence_loses_updates(theatre: Theatre) -> None:
    played = first(theatre, "update lost without a fence")
    assert played.history.meta.destination == "without a fence"


def test_a_store_that_lost_a_claim_goes_on_above_it(any_theatre: Theatre) -> None:
    played = first(any_theatre, "floor raised")
    assert played.violations == ()
    assert not played.history.meta.durable
    assert any((call.generation or 0) > 10**9 for call in played.history.calls if call.call == "claim")


def test_a_history_can_be_written_for_the_judge(theatre: Theatre, tmp_path: Path) -> None:
    played = theatre.play(3)
    write(played.history, tmp_path / "history.jsonl")
    judgement = judge(read([tmp_path / "history.jsonl"]))
    assert judgement.good
    assert judgement.counts["claims"] >= 10


def test_a_history_ends_when_nothing_can_happen_any_more(any_theatre: Theatre) -> None:
    trace = any_theatre.perform(plan_of("update"), trace=True).trace or []
    completed = next(moment for moment, who, what in trace if who == "store" and "complete j0:1: done" in what)
    assert completed <= trace[-1][0] < completed + 0.2


def test_a_worker_that_is_cut_off_its_store_starts_later(theatre: Theatre) -> None:
    plan = plan_of("work")
    plan.faults.append(Fault("cut store", 0, at=0.0, seconds=0.4))
    trace = theatre.perform(plan, trace=True).trace or []
    asked = {whom: moment for moment, who, what in reversed(trace) if who == "store" for whom in [what.split(":")[0]]}
    assert asked["w2.1"] < 0.01
    assert asked["w1.1"] > 0.4
