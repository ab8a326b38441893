"""One run: jobs are handed out, workers are struck, until every module is done and enough has been seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.fleet import Nemesis
from examples.program import Outcome, go_on
from examples.stdlib_index.results import Results
from examples.stdlib_index.tasks import app, index_module
from tenure import Filter, JobRecord, State

TAKEOVERS, REFUSALS = 5, 3
"""How many of each must have been seen before the run may end."""

PORTION = 4
"""Modules that are enqueued at a time until enough has been seen; then the rest, all at once."""

LONGEST = 300.0
"""Seconds after which a run is given up."""

_QUIET = 0.5  # seconds without anybody about to write, after which the nemesis looks whether there is work at all
_PAGE = 1000


@dataclass(slots=True)
class Report(Outcome):
    """What a run has shown."""

    store: str
    modules: int
    digest_expected: str
    digest: str = ""
    applied_once: bool = False
    takeovers: int = 0
    refused_by_destination: int = 0
    refused_by_store: int = 0
    stops: int = 0
    kills: int = 0
    workers: int = 0

    @property
    def enough(self) -> bool:
        """Whether chance has shown what the run is there to show."""
        return self.takeovers >= TAKEOVERS and self.refused_by_destination + self.refused_by_store >= REFUSALS

    def judge(self) -> None:
        """Note what does not hold."""
        refused = self.refused_by_destination + self.refused_by_store
        should = {
            "the table differs from that of a single process": self.digest == self.digest_expected,
            "not every module was applied exactly once": self.applied_once,
            f"too few takeovers ({self.takeovers}) or refused writes ({refused}) were seen": self.enough,
        }
        self.problems += [problem for problem, holds in should.items() if not holds]


class Campaign:
    """Index `modules` through `jobs`, a queue of this run's own."""

    def __init__(self, modules: dict[str, Path], jobs: str, results: Results, report: Report) -> None:
        self._left = [{"module": module, "path": str(path)} for module, path in modules.items()]
        self._task = index_module.options(queue=jobs)
        self._jobs = jobs
        self._results = results
        self._report = report

    def run(self, nemesis: Nemesis, say: Callable[[str], None]) -> None:
        """Go on until every job is over; raises TimeoutError when that takes too long."""
        deadline = time.monotonic() + LONGEST
        while self._left or self._live():
            go_on()
            self._hand_out()
            struck = nemesis.strike(_QUIET)
            self.look()
            if struck is not None:
                say(f"{self._summary()}; {struck}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the run is not over after {LONGEST:g} s: {self._summary()}")
        self._report.stops, self._report.kills = nemesis.stops, nemesis.kills

    def look(self) -> None:
        """Count what the store and the destination have seen so far."""
        struck = [record for record in self._records() if record.takeovers]
        self._report.takeovers = sum(record.takeovers for record in struck)
        self._report.refused_by_store = sum(
            entry.event.startswith("stale ") for record in struck for entry in app.client.history(record.id)
        )
        self._report.refused_by_destination = self._results.refusals()

    def unfinished(self) -> int:
        """Count the jobs that ended in another way than by completion."""
        return sum(record.state is not State.COMPLETED for record in self._records())

    def _hand_out(self) -> None:
        if not self._report.enough and self._waiting():
            return  # the last ones have not been taken, as while the workers start
        count = len(self._left) if self._report.enough else PORTION
        self._task.enqueue_many(self._left[:count])
        del self._left[:count]

    def _live(self) -> bool:
        return any(counts.queue == self._jobs for counts in app.client.queues())

    def _waiting(self) -> int:
        return sum(counts.due for counts in app.client.queues() if counts.queue == self._jobs)

    def _records(self) -> list[JobRecord]:
        records: list[JobRecord] = []
        page = app.client.find(Filter(queue=self._jobs), limit=_PAGE)
        while page:
            records += page
            page = app.client.find(Filter(queue=self._jobs), limit=_PAGE, after=page[-1].id)
        return records

    def _summary(self) -> str:
        done, say = len(self._results.entries()), self._report
        refused = say.refused_by_destination + say.refused_by_store
        return f"{done:4} of {say.modules} modules, {say.takeovers:2} takeovers, {refused:2} writes refused"
