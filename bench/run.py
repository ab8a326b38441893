"""Measure Tenure beside its peers and the limits of this machine: each question in one run, by turns.

    python -m bench.run                      all questions on every store, about an hour and a half
    python -m bench.run --quick              one round with few jobs, some minutes
    python -m bench.run --store sqlite --question drain --entrant huey
    python -m bench.run --page               write the page again from the results of the last run

Writes bench/results.json, docs/performance.md and its pictures; with --results elsewhere, that file alone. Figures are
of one machine and one run; only their ratios mean something. Nothing here is a test. A peer that is missing or fails is
named with the reason and does not stop the run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import page
from bench.arenas import ARENAS, Arena
from bench.entrant import STORES, Entrant
from bench.measure import Figures
from bench.questions import FULL, QUESTIONS, QUICK, Question, Scale
from bench.results import RATE, About, Answer, Results, Row, machine

RESULTS = Path(__file__).parent / "results.json"
_LEAST = 200  # jobs


def ask(question: Question, arena: Arena, entrants: Sequence[Entrant], scale: Scale) -> list[Row]:
    """Measure everybody by turns, each round beginning with another; who fails drops out with the reason."""
    rows = [Row(entrant=entrant.name, role=entrant.role) for entrant in entrants]
    standing = []
    for entrant, row in zip(entrants, rows, strict=True):
        row.problem = question.refusal(entrant) or ""
        if not row.problem and _size(question, arena, entrant, row, scale):
            standing.append((entrant, row))
    for turn in range(1 if question.once else scale.rounds):
        first = turn % max(1, len(standing))
        for entrant, row in standing[first:] + standing[:first]:
            for name, value in (_measured(question, arena, entrant, row) or {}).items():
                row.figures.setdefault(name, []).append(value)
        standing = [(entrant, row) for entrant, row in standing if not row.problem]
    return rows


def _size(question: Question, arena: Arena, entrant: Entrant, row: Row, scale: Scale) -> bool:
    """Find out how many jobs fill the time; the pilot also warms everything up."""
    if question.size is not None:
        row.jobs = question.size(scale)
        return True
    row.jobs = question.pilot
    figures = _measured(question, arena, entrant, row)
    if figures is not None:
        row.jobs = round(min(max(figures[RATE] * scale.seconds, _LEAST), scale.most))
    return figures is not None


def _measured(question: Question, arena: Arena, entrant: Entrant, row: Row) -> Figures | None:
    try:
        figures = question.measure(arena, entrant, row.jobs)
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
    for store in asked.store or STORES:
        with ARENAS[store]() as arena:
            results.stores[store] = f"{arena.version()}: {arena.durability}"
            for question in QUESTIONS:
                entrants = [entrant for entrant in question.asked(store) if _wanted(entrant.name, asked.entrant)]
                if entrants and _wanted(question.name, asked.question):
                    print(f"{question.name}, {store}", flush=True)
                    rows = ask(question, arena, entrants, scale)
                    results.answers.append(Answer(question=question.name, store=store, rows=rows))
                    results.entrants.update((entrant.name, About.of(entrant)) for entrant in entrants)
    results.minutes = round((time.monotonic() - began) / 60, 1)
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
    if asked.page:
        results = Results.read(asked.results)
    else:
        results = run(asked)
        results.write(asked.results)
    if asked.results == RESULTS:
        page.write(results)
    print(page.bars_table(results))
    failed = [row for answer in results.answers for row in answer.rows if row.role == "tenure" and row.problem]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
