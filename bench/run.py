"""Measure Tenure beside its peers and the limits of this machine: each question in one run, by turns.

    python -m bench.run                      all questions on every store, most of an hour
    python -m bench.run --quick              one round with few jobs, some minutes
    python -m bench.run --store sqlite --question drain --entrant huey
    python -m bench.run --page               write the page again from the results of the last run

Writes bench/results.json, docs/performance.md and its pictures; with --results elsewhere, that file alone. Figures are
of one machine and one run; only their ratios mean something. Nothing here is a test. A peer that is missing or fails is
named with the reason and does not stop the run.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import page
from bench.arenas import ARENAS, Arena
from bench.entrant import STORES, Entrant
from bench.measure import Figures, Measure
from bench.questions import FULL, QUESTIONS, QUICK, Question, Scale, filling
from bench.results import RATE, About, Answer, Results, Row, machine

RESULTS = Path(__file__).parent / "results.json"


def ask(question: Question, arena: Arena, entrants: Sequence[Entrant], scale: Scale) -> list[Row]:
    """Measure everybody by turns, each round beginning with another; who fails drops out with the reason."""
    rows = [Row(entrant=entrant.name, role=entrant.role) for entrant in entrants]
    standing = []
    for entrant, row in zip(entrants, rows, strict=True):
        row.problem = question.refusal(entrant) or ""
        if not row.problem and _size(question, arena, entrant, row, scale):
            standing.append((entrant, row))
    rounds = 1 if question.once else scale.rounds
    if question.at_once:
        _at_once(question, arena, standing * rounds)
        return rows
    for turn in range(rounds):
        first = turn % max(1, len(standing))
        for entrant, row in standing[first:] + standing[:first]:
            _note(row, _measured(question.measure, arena, entrant, row))
        standing = [(entrant, row) for entrant, row in standing if not row.problem]
    return rows


def _at_once(question: Question, arena: Arena, standing: Sequence[tuple[Entrant, Row]]) -> None:
    """Measure everybody at the same time, each as often as it stands in the list; they only wait."""

    def measured(one: tuple[Entrant, Row]) -> None:
        entrant, row = one
        _note(row, _measured(question.measure, arena, entrant, row))

    with ThreadPoolExecutor(max(1, len(standing))) as pool:
        list(pool.map(measured, standing))


def _size(question: Question, arena: Arena, entrant: Entrant, row: Row, scale: Scale) -> bool:
    """Find out how many jobs fill the time; the pilots also warm everything up."""
    if question.size is not None:
        row.jobs = question.size(scale)
        return True
    row.jobs, rate = question.pilot, 0.0
    for pilot in question.pilots or (question.measure,):
        figures = _measured(pilot, arena, entrant, row)
        if figures is None:
            return False
        rate = figures[RATE]
        row.jobs = filling(rate, scale)
    row.jobs = question.sized(rate, scale)
    return True


def _note(row: Row, figures: Figures | None) -> None:
    for name, value in (figures or {}).items():
        row.figures.setdefault(name, []).append(value)


def _measured(measure: Measure, arena: Arena, entrant: Entrant, row: Row) -> Figures | None:
    try:
        figures = measure(arena, entrant, row.jobs)
    except Exception as error:  # noqa: BLE001 -- whatever goes wrong with one entrant must not stop the others
        row.problem = str(error) or type(error).__name__
        print(f"  {entrant.name}: {row.problem}", flush=True)
        return None
    print(f"  {entrant.name}: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()), flush=True)
    return figures


def run(asked: argparse.Namespace) -> Results:
    """Ask what was asked for on every store."""
    scale = QUICK if asked.quick else FULL
    scale = replace(scale, rounds=asked.rounds or scale.rounds)
    results = Results(
        taken_at=datetime.now(UTC).strftime("%Y-%m-%d"),
        command=" ".join(["python -m bench.run", *sys.argv[1:]]),
        rounds=scale.rounds,
        quick=asked.quick,
        machine=machine(),
    )
    began = time.monotonic()
    for store in dict.fromkeys(asked.store or STORES):
        with ARENAS[store]() as arena:
            results.stores[store] = f"{arena.version()}: {arena.durability}"
            for question in QUESTIONS:
                entrants = [entrant for entrant in question.asked(store) if _wanted(entrant.name, asked.entrant)]
                if entrants and _wanted(question.name, asked.question):
                    print(f"{question.name}, {store}", flush=True)
                    asked_at = time.monotonic()
                    rows = ask(question, arena, entrants, scale)
                    print(f"  took {time.monotonic() - asked_at:.0f} s", flush=True)
                    results.answers.append(Answer(question=question.name, store=store, sizes=question.sizes, rows=rows))
                    results.entrants.update((entrant.name, About.of(entrant)) for entrant in entrants)
                    results.minutes = round((time.monotonic() - began) / 60, 1)
                    results.write(asked.results)  # what was found stays, should the run be broken off
    return results


def _wanted(name: str, parts: Sequence[str] | None) -> bool:
    return not parts or any(part.lower() in name.lower() for part in parts)


def main() -> int:
    """Run, write the results, and the page where they are the whole; 1 if Tenure itself could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="append", choices=STORES, help="this store only; repeatable")
    parser.add_argument("--question", action="append", help="questions whose name has this in it; repeatable")
    parser.add_argument("--entrant", action="append", help="entrants whose name has this in it; repeatable")
    parser.add_argument("--rounds", type=int, help="how often everything is measured (5, quick 1)")
    parser.add_argument("--quick", action="store_true", help="few jobs: shows that it works, not how fast")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write what was found")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page from the results")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    results = Results.read(asked.results) if asked.page else run(asked)
    if asked.results == RESULTS:
        page.write(results)
    print(page.bars_table(results))
    failed = [row for answer in results.answers for row in answer.rows if row.role == "tenure" and row.problem]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
