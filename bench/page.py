"""Writes `docs/performance.md` and its pictures from the results of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.bars import BARS, TIMES, Verdict, judge
from bench.draw import Stripe, draw
from bench.entrant import Store
from bench.results import RATE, Answer, Results, Row

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
PICTURES = "performance"
_DASH = "\N{EN DASH}"

_NAMES: dict[Store, str] = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
_INTRO = """\
# Performance

Tenure beside other queues for Python and beside what the machine lets through at most: each question asked by turns, in
one run, on one machine, everybody on a fresh database of the same server or disk, with jobs that do nothing. Compare
figures with figures of the same table only. A rate counts what was done *and acknowledged*: after each drain it is
checked that every job ran and that the store has none left; where not, the row says so instead of a figure.

The limits are no queues: the library's own SQL, or a bare INSERT or COPY, in the tightest loop of the client library.
Bars are drawn to the median, the thin line spans all rounds.
"""
_QUICK = """\
**This was a quick run.** It shows that the benchmark works, not how fast anything is.
"""


def write(results: Results, docs: Path = DOCS) -> None:
    """Write the page and its pictures into `docs`."""
    folder = docs / PICTURES
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, picture in pictures(results):
        (folder / name).write_text(picture, encoding="utf-8")
    (docs / PAGE.name).write_text(text(results), encoding="utf-8")


def text(results: Results) -> str:
    """Write the page."""
    return "\n".join(
        [
            _INTRO,
            *([_QUICK] if results.quick else []),
            _circumstances(results),
            "## Bars\n",
            "What Tenure's medians must reach, and whether they do.\n",
            bars_table(results),
            *(_question(results, name) for name in dict.fromkeys(answer.question for answer in results.answers)),
            _who(results),
        ]
    )


def pictures(results: Results) -> Iterator[tuple[str, str]]:
    """Draw every figure for which somebody stands beside Tenure."""
    for answer in results.answers:
        for figure in answer.figures if len(answer.rows) > 1 else ():
            title = f"{answer.question} on {_NAMES[answer.store]}, {figure}"
            yield _picture(answer, figure), draw(title, [_stripe(row, figure) for row in _ranked(answer, figure)])


def bars_table(results: Results) -> str:
    """Hold every bar against the run."""
    return _table(
        ("question", "store", "bar", "Tenure", "stands at", "met"),
        [_bar_cells(judge(results, bar)) for bar in BARS],
    )


def _bar_cells(verdict: Verdict) -> tuple[str, ...]:
    bar = verdict.bar
    question = bar.question if bar.figure == RATE else f"{bar.question}: {bar.figure}"
    own = _DASH if verdict.figure is None else number(verdict.figure)
    stands = _DASH if verdict.ratio is None or not bar.than else f"{number(verdict.ratio)} {TIMES} {verdict.other}"
    met = {True: "yes", False: "**no**", None: f"not judged: {verdict.reason}"}[verdict.met]
    return question, _NAMES[bar.store], str(bar), own, stands, met


def _circumstances(results: Results) -> str:
    lines = [f"Taken on {results.taken_at} in {results.minutes:g} minutes, {results.rounds} rounds, by\n"]
    lines += ["```console", f"$ {results.command}", "```", ""]
    lines += [f"- {name}: {value}" for name, value in results.machine.items()]
    lines += [f"- {value}" for value in results.stores.values()]
    return "\n".join(lines) + "\n"


def _question(results: Results, name: str) -> str:
    parts = [f"\n## {name[0].upper()}{name[1:]}\n"]
    for answer in results.answers:
        if answer.question == name:
            parts += [f"### {_NAMES[answer.store]}: {name}\n"]
            if len(answer.rows) > 1:
                parts += [f"![{figure}]({PICTURES}/{_picture(answer, figure)})" for figure in answer.figures]
                parts += [""]
            parts += [_answer_table(answer), ""]
    return "\n".join(parts)


def _answer_table(answer: Answer) -> str:
    figures = answer.figures
    first = figures[0] if figures else RATE
    own = answer.best(first, "tenure")
    base = own.median(first) if own else None
    alone = len(answer.rows) == 1
    heads = ("", *figures, *(() if alone else (f"{first.partition(', ')[0]}, Tenure = 1", "jobs a round")))
    rows = []
    for row in [*_ranked(answer, first), *(row for row in answer.rows if row.median(first) is None)]:
        cells = [row.entrant, *(_spread(row, figure) for figure in figures)]
        if not alone:
            value = row.median(first)
            cells += [number(value / base) if value is not None and base else _DASH, f"{row.jobs:,}"]
        if row.problem:
            cells[0] += f": {'' if row.figures else 'not measured, '}{row.problem}"
        rows.append(cells)
    return _table(heads, rows)


def _who(results: Results) -> str:
    rows = [
        (name, about.version or "not installed", about.settings or "as it comes", about.weaker or _DASH)
        for name, about in results.entrants.items()
    ]
    return "\n## Who was measured\n\n" + _table(("", "version", "settings", "promises less"), rows) + "\n"


def _ranked(answer: Answer, figure: str) -> list[Row]:
    measured = [row for row in answer.rows if row.median(figure) is not None]
    return sorted(measured, key=lambda row: row.median(figure) or 0.0, reverse=figure == RATE)


def _stripe(row: Row, figure: str) -> Stripe:
    values, median = row.figures[figure], row.median(figure) or 0.0
    return Stripe(row.entrant, row.role, median, min(values), max(values), number(median))


def _spread(row: Row, figure: str) -> str:
    values, median = row.figures.get(figure), row.median(figure)
    if not values or median is None:
        return _DASH
    return (
        number(median) if len(values) == 1 else f"{number(median)} ({number(min(values))}{_DASH}{number(max(values))})"
    )


def _picture(answer: Answer, figure: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", f"{answer.question} {figure} {answer.store}".lower())) + ".svg"


def number(value: float) -> str:
    """Write a figure with about three digits."""
    digits = next((digits for bound, digits in ((100, 0), (10, 1)) if abs(value) >= bound), 2)
    return f"{value:,.{digits}f}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
