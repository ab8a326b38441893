"""A feeder on a scripted store, for the tests of what it claims and settles and of how it bears an outage."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tenure.hold import Lease
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Outlook, Turn, Wanted
from tenure.protocol.lifecycle import Verb
from tenure.worker.feeder import LOOK, Feeder
from tenure.worker.keeper import Keeper
from tenure.worker.lane import Lane
from tenure.worker.pace import Pace
from tenure.worker.prefetch import Prefetch
from tenure.worker.run import Run, Runs
from tests.support.processes import wait_for
from tests.worker.bench import (
    CLAIMER,
    NOTHING,
    VERBS,
    Clock,
    IdleExecutor,
    ScriptedStore,
    Told,
    new_run,
    quiet_turn,
)


class FeederBench:
    """A feeder of one lane; what it claims occupies a slot until the test finishes it."""

    def __init__(
        self,
        *,
        queues: tuple[str, ...] = ("default",),
        slots: int = 3,
        request_limit: float = math.inf,
        beside: ScriptedStore | None = None,
    ) -> None:
        self.clock = Clock()
        self.store = ScriptedStore()
        self.told = Told()
        self.executor = IdleExecutor(slots)
        self.prefetch = Prefetch(
            self.executor, refusal=lambda: self.feeder.refusal(), began=lambda _: None, clock=self.clock
        )
        self.lane = Lane(self.prefetch, ["work"], queues)
        self.runs = Runs()
        self.settled: list[tuple[Run, Ending, Answer]] = []
        self.sent_at: list[float] = []
        self.crashes: list[BaseException] = []
        self.keeper = Keeper(
            self.store, VERBS, CLAIMER.owner, on_lost=self._never_lost, emitter=self.told.emitter, clock=self.clock
        )
        self.feeder = Feeder(
            self.store,
            VERBS,
            CLAIMER,
            [self.lane],
            runs=self.runs,
            keeper=self.keeper,
            dispatch=self._dispatch,
            settled=lambda *settled: self.settled.append(settled),
            emitter=self.told.emitter,
            crashed=self.crashes.append,
            clock=self.clock,
            pace=Pace(request_limit),
            beside=beside,
        )
        self.feeder.has_bell = True
        self.prefetch.open(self.feeder.finished)

    @staticmethod
    def _never_lost(lease: Lease, reason: str) -> None:
        raise AssertionError(f"{lease.token} was lost: {reason}")

    def _dispatch(self, batches: Sequence[tuple[Lane, list[Claimed]]], sent_at: float) -> None:
        self.sent_at.append(sent_at)
        for _, rows in batches:
            for row in rows:
                self.run(row.id, row.generation)

    def run(self, job: str = "j1", generation: int = 1) -> Run:
        """Let a run occupy a slot, or wait for one, as if it had been claimed before."""
        run = new_run(self.clock, self.prefetch, job, generation)
        self.runs.add([run])
        self.keeper.add([run.lease])
        self.prefetch.start([run])
        return run

    def once_it_stops(self, action: Callable[[], None]) -> None:
        """Do something when the feeder has been asked to stop, and waits."""

        def wait() -> None:
            wait_for(lambda: self.feeder._stopped, 10.0, "the feeder to be stopped")
            action()

        threading.Thread(target=wait, daemon=True).start()

    def finish_many(self, jobs: int, verb: Verb = Verb.COMPLETE) -> list[Run]:
        """Let as many runs as these end, while there is room for them."""
        runs = [self.run(f"j{number}") for number in range(jobs)]
        for run in runs:
            self.finish(run, verb)
        return runs

    def finish(self, run: Run, verb: Verb = Verb.COMPLETE, **fields: Any) -> Ending:
        """Free a run's slot and report its end."""
        ending = Ending(run.lease.token, verb, **fields)
        self.executor.finished(run, ending)
        return ending

    def answers(self, *turns: Turn) -> None:
        """Answer the coming turns; each settles what it is given, and after the last there is no work."""
        coming = list(turns)

        def turn(claimer: Claimer, endings: Sequence[Ending], wanted: Sequence[Wanted], **_: bool) -> Turn:
            settled = quiet_turn(claimer, endings, wanted)
            if not coming or not wanted:
                return settled
            return Turn(settled.answers, coming.pop(0).claimed)

        self.store.script["turn"] = turn

    def turns(self) -> list[tuple[list[Ending], list[Wanted]]]:
        """The endings and wishes of every turn so far."""
        return [(args[1], args[2]) for name, args in self.store.asked if name == "turn"]

    def quiet(self) -> None:
        """Take the first look, which finds nothing, and forget it."""
        self.feeder.round()
        self.store.asked.clear()

    @contextmanager
    def running(self) -> Iterator[None]:
        self.feeder.start()
        try:
            yield
        finally:
            self.feeder.stop(10.0)


def outlook(*, due: bool = False, abandoned: bool = False, soonest: float | None = None) -> Outlook:
    return Outlook(due, abandoned, soonest)


def abandoned(bench: FeederBench) -> None:
    """Let the store tell, and the feeder hear, that a lease has ended."""
    bench.quiet()
    bench.store.script["outlook"] = outlook(abandoned=True)
    bench.clock.advance(LOOK)
    bench.feeder._look()
    bench.store.script["outlook"] = NOTHING
    bench.store.asked.clear()
