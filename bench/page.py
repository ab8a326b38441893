"""Writes `docs/performance.md` and its pictures from the results of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import fill

from bench.bars import BARS, NOT_ASKED, TIMES, Verdict, judge
from bench.draw import Curve, Stripe, draw, draw_curves
from bench.entrant import Store
from bench.entrants import LEFT_OUT
from bench.results import ARRIVALS, OF_EMPTY, OF_START, RATE, Answer, Results, Row, more_is_better

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
**This was a quick run**, of few jobs, small tables and short waits. It shows that the benchmark works, not how fast
anything is.
"""
_SAYS = {
    "enqueue, one at a time": "One producer; each job is durable before the next is sent.",
    "enqueue, 1,000 a call": "One producer. bare psycopg is COPY, bare sqlite3 `executemany`.",
    "drain, async": "One worker process. The limits settle the last batch and claim the next in one round trip.",
    "drain, threads": "One worker process whose handlers are plain functions in threads.",
    "drain, handlers in processes": "One worker, whose handlers run in child processes.",
    "drain, two processes": "Two worker processes; the clock starts when both have got a job.",
    "pick-up, idle": "From the call of enqueue until the handler starts in another process, one job after the other.",
    "pick-up, half load": "The same while jobs arrive steadily at half of what the entrant drains. Where a call may"
    " carry many jobs, one goes out every 10 ms. A producer that cannot keep up shows by its arrivals.",
    "takeover after kill -9": "From the kill of the worker that holds a job until another worker begins it. Leases"
    " and beats are the defaults of each. Everybody is measured at once, since they only wait.",
    "growth": "Everybody beside itself on an empty table: the rows are made by one statement, then analysed. *Pending*"
    " jobs are due in a day. The rate is that of the drain of an empty table.",
    "old snapshot": "A producer keeps at most 3,000 jobs waiting, one worker drains them, and after ten seconds another"
    " session begins a REPEATABLE READ transaction and holds it. One run each; rates are medians of single seconds.",
    "idle worker": "A worker with nothing to do.",
    "memory of a drain": "How much the process has grown from a tenth of the jobs until the end.",
    "effects": "Each beside a transaction of one insert; *by hand*: the two statements that guard and complete a job.",
}
_UNMET = {
    "drain, async": "The limit carries out the same SQL without leases, runs, handlers or events around it; what lies"
    " between the two is the worker's own Python.",
    "drain, two processes": "SQLite has one writer at a time: two bare loops together are hardly quicker than one.",
    "enqueue, one at a time": "On PostgreSQL the bare INSERT rings no bell; *bare insert, notify, claim* does, and"
    " shows what that costs. On both stores it does not tell whether the job is there already, and makes and checks"
    " nothing in Python. A job has more columns and indexes than a message of litequeue's: the bare INSERT is hardly"
    " quicker than that.",
    "enqueue, 1,000 a call": "COPY and the bare `executemany` write rows that were made before; here each job is"
    " checked against its handler's signature, and one whose id or unique key is there already is told from a new one.",
    "effects": "By hand, with the two statements that guard and complete a job and nothing around them, it stands at"
    " *by hand, ratio*: that is what a second statement costs in the bare transaction.",
    "growth": "The bare loops, with COPY or `executemany` and nothing of the library's around them, stand beside it:"
    " what the database itself does with so many rows.",
    "old snapshot": "Each version of a row stays until the snapshot ends, and who looks for the row meets them all.",
}
"""What stands between Tenure and its bars, by question; told where one of them is not met."""


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
            *_unmet(results),
            *(_question(results, name) for name in dict.fromkeys(answer.question for answer in results.answers)),
            _who(results),
        ]
    )


def pictures(results: Results) -> Iterator[tuple[str, str]]:
    """Draw every figure for which somebody stands beside Tenure."""
    for answer in results.answers:
        for figure in _drawn(answer):
            title = f"{answer.question} on {_NAMES[answer.store]}, {figure}"
            yield _picture(answer, figure), draw(title, [_stripe(row, figure) for row in _ranked(answer, figure)])
        if curve := _over_time(answer):
            yield _picture(answer, curve), _curves(answer, curve)


def _drawn(answer: Answer) -> list[str]:
    """Return the figures that get bars: those by which entrants can be told apart, where there are some."""
    shares = [name for name in answer.figures if name.startswith(OF_START) or name.endswith(OF_EMPTY)]
    told = [name for name in answer.figures if name != ARRIVALS and name not in shares]
    return [name for name in told if len(_ranked(answer, name)) > 1]


def _over_time(answer: Answer) -> str:
    """Name the picture of how the rates went; empty where there are no such figures."""
    return "over time" if any(name.startswith(OF_START) for name in answer.figures) else ""


def _curves(answer: Answer, name: str) -> str:
    parts = [figure for figure in answer.figures if figure.startswith(OF_START)]
    rows = [row for row in answer.rows if all(row.median(part) is not None for part in parts)]
    curves = [Curve(row.entrant, row.role, [1.0, *(row.median(part) or 0.0 for part in parts)]) for row in rows]
    places = ["before", *(part.removeprefix(OF_START).strip() for part in parts)]
    return draw_curves(f"{answer.question} on {_NAMES[answer.store]}, {name}", places, curves)


def bars_table(results: Results) -> str:
    """Hold every bar against the run."""
    verdicts = [judge(results, bar) for bar in BARS]
    asked = [verdict for verdict in verdicts if verdict.reason != NOT_ASKED]
    others = dict.fromkeys(verdict.bar.question for verdict in verdicts if verdict.reason == NOT_ASKED)
    table = _table(("question", "store", "bar", "Tenure", "stands at", "met"), [_bar_cells(one) for one in asked])
    if not others:
        return table
    left = len(verdicts) - len(asked)
    return f"{table}\n\n{left} of {len(verdicts)} bars were {NOT_ASKED}: {'; '.join(others)}."


def _unmet(results: Results) -> Iterator[str]:
    """Say what stands in the way of the bars that are not met."""
    questions = dict.fromkeys(bar.question for bar in BARS if judge(results, bar).met is False)
    for question in questions:
        if question in _UNMET:
            yield f"\n{fill(f'*{question}*: {_UNMET[question]}', 120)}"


def _bar_cells(verdict: Verdict) -> tuple[str, ...]:
    bar = verdict.bar
    question = bar.question if bar.figure == RATE else f"{bar.question}: {bar.figure}"
    own = _DASH if verdict.figure is None else number(verdict.figure)
    stands = _DASH if verdict.ratio is None or not bar.than else f"{number(verdict.ratio)} {TIMES} {verdict.other}"
    met = {True: "yes", False: "**no**", None: f"not judged: {verdict.reason}"}[verdict.met]
    return question, _NAMES[bar.store], str(bar), own, stands, met


def _circumstances(results: Results) -> str:
    rounds = f"{results.rounds} round{'s' if results.rounds > 1 else ''}"
    lines = [f"Taken on {results.taken_at} in {results.minutes:g} minutes, {rounds}, by\n"]
    lines += ["```console", f"$ {results.command}", "```", ""]
    lines += [f"- {name}: {value}" for name, value in results.machine.items()]
    lines += [f"- {value}" for value in results.stores.values()]
    return "\n".join(lines) + "\n"


def _question(results: Results, name: str) -> str:
    parts = [f"\n## {name[0].upper()}{name[1:]}\n", *([f"{fill(_SAYS[name], 120)}\n"] if name in _SAYS else [])]
    for answer in results.answers:
        if answer.question == name:
            parts += [f"### {_NAMES[answer.store]}: {name}\n"]
            drawn = [*_drawn(answer), *filter(None, [_over_time(answer)])]
            if drawn:
                parts += [*(f"![{figure}]({PICTURES}/{_picture(answer, figure)})" for figure in drawn), ""]
            parts += [_answer_table(answer), ""]
    return "\n".join(parts)


def _answer_table(answer: Answer) -> str:
    figures = [name for name in answer.figures if not name.startswith(OF_START)]
    return _by_figure(answer, figures) if len(answer.rows) <= len(figures) else _side_by_side(answer, figures)


def _by_figure(answer: Answer, figures: Sequence[str]) -> str:
    """Write a line for each figure, and a column for everybody: few were asked, for many figures."""
    lines = [(name, *(_spread(row, name) for row in answer.rows)) for name in figures]
    if answer.sizes:
        lines.append((answer.sizes, *(f"{row.jobs:,}" for row in answer.rows)))
    table = _table(("", *(row.entrant for row in answer.rows)), lines)
    return table + "".join(f"\n\n{row.entrant}: {row.problem}." for row in answer.rows if row.problem)


def _side_by_side(answer: Answer, figures: Sequence[str]) -> str:
    """Write a row for everybody who has a figure, and one line for those who have none."""
    first = figures[0] if figures else RATE
    own = answer.best(first, "tenure")
    base = own.median(first) if own else None
    rows = []
    for row in _ranked(answer, first):
        ratio = number((row.median(first) or 0.0) / base) if base else _DASH
        name = f"{row.entrant}: {row.problem}" if row.problem else row.entrant
        rows.append([name, *(_spread(row, figure) for figure in figures), ratio, f"{row.jobs:,}"])
    table = _table(("", *figures, f"{first.partition(', ')[0]}, Tenure = 1", answer.sizes), rows)
    without = [f"{row.entrant} ({row.problem})" for row in answer.rows if row.median(first) is None]
    return table + (f"\n\n{fill('Without a figure: ' + '; '.join(without) + '.', 120)}" if without else "")


def _who(results: Results) -> str:
    rows = [
        (
            name,
            about.version or "not installed",
            about.settings or "as it comes",
            about.weaker or _DASH,
            about.lease or _DASH,
        )
        for name, about in results.entrants.items()
    ]
    left_out = "".join(f"- {names}: {reason}.\n" for names, reason in LEFT_OUT.items())
    table = _table(("", "version", "settings", "promises less", "takes over a lost worker's jobs"), rows)
    return f"\n## Who was measured\n\n{table}\n\nLeft out:\n\n{left_out}"


def _ranked(answer: Answer, figure: str) -> list[Row]:
    measured = [row for row in answer.rows if row.median(figure) is not None]
    return sorted(measured, key=lambda row: row.median(figure) or 0.0, reverse=more_is_better(figure))


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
