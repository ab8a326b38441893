"""The bars: what Tenure's figures must reach, each against another figure of the same run."""

from __future__ import annotations

from dataclasses import dataclass

from bench.entrant import Store
from bench.results import OF_EMPTY, OF_START, RATE, Results

PEERS = "the fastest peer"
NOT_ASKED = "not asked in this run"
LEASE = 30.0
"""Seconds of the default lease."""

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One figure of Tenure's, which must be at least or at most so many times another, or so much by itself.

    `than` is `PEERS`, the name of a limit, or another question to Tenure; empty for a bar in the figure's own unit.
    """

    question: str
    figure: str = RATE
    store: Store
    than: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        """Say the bar in words."""
        bound, words = (self.at_least, "at least") if self.at_least is not None else (self.at_most, "at most")
        if not self.than:
            return f"{words} {bound:g} {self.figure.rpartition(', ')[2] or ''}".rstrip()
        return f"{words} {bound:g} {TIMES} {self.than}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a figure stands to its bar; `met` is None, with the reason, where one of the two was not measured."""

    bar: Bar
    figure: float | None
    other: str = ""
    ratio: float | None = None
    met: bool | None
    reason: str = ""


def judge(results: Results, bar: Bar) -> Verdict:
    """Hold a figure of the run against its bar."""
    answer = results.answer(bar.question, bar.store)
    own = answer.best(bar.figure, "tenure") if answer else None
    if answer is None or own is None:
        row = answer.row("Tenure") if answer else None
        return Verdict(bar=bar, figure=None, met=None, reason=(row and row.problem) or NOT_ASKED)
    figure = own.median(bar.figure) or 0.0
    other, yardstick = _yardstick(results, bar)
    if yardstick is None:
        return Verdict(bar=bar, figure=figure, other=other, met=None, reason=f"{other} was not measured")
    ratio = figure / yardstick
    met = (bar.at_least is None or ratio >= bar.at_least) and (bar.at_most is None or ratio <= bar.at_most)
    return Verdict(bar=bar, figure=figure, other=other, ratio=ratio, met=met)


def _yardstick(results: Results, bar: Bar) -> tuple[str, float | None]:
    answer = results.answer(bar.question, bar.store)
    if not bar.than:
        return "", 1.0
    if bar.than == PEERS:
        best = answer.best(bar.figure, "peer") if answer else None
        return (best.entrant, best.median(bar.figure)) if best else (PEERS, None)
    limit = answer.row(bar.than) if answer else None
    if limit is not None:
        return limit.entrant, limit.median(bar.figure)
    elsewhere = results.answer(bar.than, bar.store)
    own = elsewhere.row("Tenure") if elsewhere else None
    return bar.than, own.median(bar.figure) if own else None


GROWN = ("1,000,000 finished", "1,000,000 pending")
_LIMIT: dict[Store, str] = {"postgresql": "bare psycopg", "sqlite": "bare sqlite3"}
_ONE, _BULK, _PICKUP = "enqueue, one at a time", "enqueue, 1,000 a call", "pick-up, idle"
_ASYNC, _THREADS, _TWO = "drain, async", "drain, threads", "drain, two processes"


def _on_both(store: Store) -> tuple[Bar, ...]:
    return (
        Bar(question=_ASYNC, store=store, than=PEERS, at_least=2.0),
        Bar(question=_ASYNC, store=store, than=_LIMIT[store], at_least=0.5 if store == "postgresql" else 0.25),
        Bar(question=_THREADS, store=store, than=PEERS, at_least=2.0),
        Bar(question=_ONE, store=store, than=PEERS, at_least=1.0),
        Bar(question=_ONE, store=store, than=_LIMIT[store], at_least=0.8),
        Bar(question=_BULK, store=store, than=PEERS, at_least=1.5 if store == "postgresql" else 2.0),
        Bar(question=_PICKUP, figure="p50, ms", store=store, than=PEERS, at_most=1.0),
        Bar(question=_PICKUP, figure="p99, ms", store=store, than=PEERS, at_most=1.0),
        Bar(question="idle worker", figure="CPU, %", store=store, at_most=0.5),
        Bar(question="jobs held, 10,000", figure="statements a beat", store=store, at_most=1.0),
        Bar(question="jobs held, 10,000", figure="CPU, %", store=store, at_most=10.0),
        Bar(question="effects", figure="guard + complete, ratio", store=store, at_most=1.3),
        Bar(question="takeover after kill -9", figure="seconds", store=store, at_most=LEASE + 1.0),
        *(
            Bar(question="growth", figure=f"{what}, {size}, {OF_EMPTY}", store=store, at_least=0.9)
            for size in GROWN
            for what in ("drain", "enqueue")
        ),
    )


_ALL: tuple[Bar, ...] = (
    *_on_both("postgresql"),
    Bar(question=_TWO, store="postgresql", than=PEERS, at_least=2.0),
    Bar(question=_BULK, store="postgresql", than="bare psycopg", at_least=0.5),
    Bar(question=_PICKUP, figure="p50, ms", store="postgresql", than="bare insert, notify, claim", at_most=1.5),
    Bar(question="idle worker", figure="statements/s", store="postgresql", at_most=1.0),
    Bar(question="old snapshot", figure=f"at the end, {OF_START}", store="postgresql", at_least=0.8),
    *_on_both("sqlite"),
    Bar(question=_TWO, store="sqlite", than=_ASYNC, at_least=1.3),
    Bar(question=_PICKUP, figure="p50, ms", store="sqlite", than="bare insert, watch, claim", at_most=1.5),
    Bar(question=_PICKUP, figure="p50, ms", store="sqlite", at_most=3.0),
    Bar(question=_PICKUP, figure="p99, ms", store="sqlite", at_most=15.0),
)

_ORDER = list(dict.fromkeys(bar.question for bar in _ALL))
BARS = sorted(_ALL, key=lambda bar: (bar.store, _ORDER.index(bar.question)))
