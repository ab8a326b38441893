"""One run: invoices are handed out, workers are struck, until every invoice is dealt with and enough has been seen."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from examples.fleet import Nemesis
from examples.payments.tasks import app, pay_fenced, pay_plain
from examples.program import Outcome, go_on
from tenure import Filter, JobRecord, State

SEEN = 3
"""How often each kind of trouble, and each answer to it, must have been seen before the run may end."""

PORTION = 4
"""Invoices that are handed out at a time until enough has been seen, fewer towards the end; then all at once."""

LONGEST = 300.0
"""Seconds after which a run is given up."""

_QUIET = 0.5  # seconds without anybody about to write, after which the nemesis looks whether there is work at all
_LAST = 5  # invoices that are left in peace once enough has been seen, or they would be struck again and again
_REST = 1.0  # seconds between two strikes once enough has been seen
_LOOK = 0.2
_PAGE = 1000


def cents_of(invoice: int) -> int:
    """Tell how much an invoice asks for."""
    return 100 + 7 * invoice % 900


@dataclass(slots=True)
class Report(Outcome):
    """What a run has shown."""

    fence: bool
    invoices: int
    paid_once: int = 0
    paid_more_than_once: int = 0
    paid_never: int = 0
    wrong_sums: int = 0
    cents_due: int = 0
    cents_charged: int = 0
    refused: int = 0
    repeated: int = 0
    takeovers: int = 0
    stops: int = 0
    kills: int = 0
    duplicated: int = 0
    delayed: int = 0
    replies_dropped: int = 0
    cut: int = 0
    workers: int = 0

    @property
    def enough(self) -> bool:
        """Whether the run has shown what it is there to show."""
        return not self.missing()

    def missing(self) -> list[str]:
        """Name what was seen too rarely."""
        if not self.fence:
            seen = self.paid_more_than_once
            return [] if seen >= SEEN else [f"invoices that were paid more than once: {seen}"]
        wanted = {
            "takeovers": self.takeovers,
            "requests refused as stale": self.refused,
            "requests answered from the store": self.repeated,
            "stopped and continued workers": self.stops,
            "killed workers": self.kills,
            "duplicated requests": self.duplicated,
            "delayed requests": self.delayed,
            "swallowed answers": self.replies_dropped,
            "cut connections": self.cut,
        }
        slow = {"stopped and continued workers", "killed workers"}
        return [f"{what}: {seen}" for what, seen in wanted.items() if seen < (1 if what in slow else SEEN)]

    def judge(self) -> None:
        """Note what does not hold."""
        if missing := self.missing():
            self.problems.append(f"this run has not shown enough ({', '.join(missing)})")
        if self.paid_never:
            self.problems.append(f"{self.paid_never} invoices were not paid")
        if self.fence and self.paid_more_than_once:
            self.problems.append(f"{self.paid_more_than_once} invoices were paid more than once")
        if self.wrong_sums:
            self.problems.append(f"{self.wrong_sums} payments were of another sum than their invoices")
        if self.fence and self.cents_charged != self.cents_due:
            self.problems.append(f"{self.cents_charged} cents were charged instead of {self.cents_due}")


class Campaign:
    """Have `report.invoices` invoices paid; `provider` lays its books open."""

    def __init__(self, store: Path, provider: httpx.Client, report: Report) -> None:
        self._left = list(range(1, report.invoices + 1))
        task = pay_fenced if report.fence else pay_plain
        self._task = task.options(max_attempts=None, max_takeovers=None)
        self._store = store
        self._provider = provider
        self._report = report

    def run(self, nemesis: Nemesis, note_network: Callable[[], None], say: Callable[[str], None]) -> None:
        """Go on until every job is over; raises TimeoutError when that takes too long."""
        deadline = time.monotonic() + LONGEST
        self.look()
        while self._left or app.client.queues():
            go_on()
            self._hand_out()
            struck = self._strike(nemesis)
            note_network()
            self.look()
            if struck is not None:
                say(f"{self._summary()}; {struck}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the run is not over after {LONGEST:g} s: {self._summary()}")

    def _strike(self, nemesis: Nemesis) -> str | None:
        enough = self._report.enough
        if enough:
            time.sleep(_REST)
        if self._left or not enough or self._report.paid_never > _LAST:
            return nemesis.strike(_QUIET)
        time.sleep(_LOOK)
        return None

    def look(self) -> None:
        """Note what the provider's books say, and how often the store has seen a takeover."""
        report, books = self._report, self._provider.get("/audit").raise_for_status().json()
        note_books(report, books)
        report.takeovers = sum(record.takeovers for record in self._records())

    def unfinished(self) -> int:
        """Count the jobs that ended in another way than by completion."""
        return sum(record.state is not State.COMPLETED for record in self._records())

    def _hand_out(self) -> None:
        """Enqueue a few invoices, in one transaction; each invoice is one job, and can be no second one."""
        sparing = max(1, min(PORTION, len(self._left) // 4))
        count = len(self._left) if self._report.enough else sparing
        if not self._left or (not self._report.enough and any(counts.due for counts in app.client.queues())):
            return  # the last ones have not been taken, as while the workers start
        with closing(sqlite3.connect(self._store)) as shop, shop:
            for invoice in self._left[:count]:
                job = self._task.options(id=f"invoice-{invoice}", connection=shop)
                job.enqueue(invoice=invoice, cents=cents_of(invoice))
        del self._left[:count]

    def _records(self) -> list[JobRecord]:
        records: list[JobRecord] = []
        page = app.client.find(Filter(queue="default"), limit=_PAGE)
        while page:
            records += page
            page = app.client.find(Filter(queue="default"), limit=_PAGE, after=page[-1].id)
        return records

    def _summary(self) -> str:
        say = self._report
        paid = f"{say.paid_once + say.paid_more_than_once:4} of {say.invoices} invoices paid"
        if not say.fence:
            return f"{paid}, {say.paid_more_than_once:3} more than once, {say.takeovers:3} takeovers"
        return f"{paid}, {say.takeovers:3} takeovers, {say.refused:3} refused, {say.repeated:3} repeated"


def note_books(report: Report, books: dict[str, Any]) -> None:
    """Note what the provider's books say: how often each invoice was paid, and with which sum."""
    times = Counter(invoice for invoice, _, _ in books["payments"])
    report.paid_once = sum(count == 1 for count in times.values())
    report.paid_more_than_once = len(times) - report.paid_once
    report.paid_never = report.invoices - len(times)
    report.wrong_sums = sum(cents != cents_of(invoice) for invoice, _, cents in books["payments"])
    report.cents_due = sum(cents_of(invoice) for invoice in range(1, report.invoices + 1))
    report.cents_charged = books["charged"]
    report.refused = books["answers"].get("refused", 0)
    report.repeated = books["answers"].get("repeated", 0)
