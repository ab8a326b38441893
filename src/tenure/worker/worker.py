"""`Worker`: puts keeper, feeder, warden, bell and executors together, starts them, and stops them in order."""

from __future__ import annotations

import math
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from tenure.clock import Clock, boot_clock
from tenure.errors import BadSettings, Misuse
from tenure.hold import Lease, renewing
from tenure.ids import new_owner
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, WorkerRecord
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.task import Task
from tenure.worker.context import Job
from tenure.worker.feeder import Feeder
from tenure.worker.interpreter import set_for_work
from tenure.worker.keeper import Keeper
from tenure.worker.lane import Lane
from tenure.worker.loop import LoopExecutor
from tenure.worker.pace import Pace
from tenure.worker.prefetch import TIMES, Prefetch
from tenure.worker.process import ProcessExecutor
from tenure.worker.program import Program
from tenure.worker.ringer import Ringer
from tenure.worker.run import Executor, Run, Runs, Stop
from tenure.worker.settings import Settings
from tenure.worker.tell import afterthought, detail_of, kind_of, stopping
from tenure.worker.threads import ThreadExecutor
from tenure.worker.upkeep import Upkeep
from tenure.worker.warden import Warden

_HEALTHY_WITHIN = 30.0
_LINGER = 1.0  # seconds that cancelled handlers have to end before their jobs are released


class Worker:
    """Run the jobs of an app's tasks; `settings` are those of `tenure.worker.settings.Settings`.

    Raises BadSettings for settings that cannot work and for a store that could lose an acknowledged generation.
    """

    def __init__(self, app: Program, *, clock: Clock = boot_clock, **settings: Any) -> None:
        self.app = app
        self.settings = _settings(settings)
        if not app.tasks:
            raise BadSettings("this app has no task: register one with @app.task, or import the module that does")
        self._clock = clock
        named = {task.defaults.queue for task in app.tasks.values()}
        self.queues = self.settings.queues or tuple(sorted(named | {"default"}))
        self.name = self.settings.name or f"{socket.gethostname()}:{os.getpid()}"
        self.claimer = Claimer(new_owner(), self.name)
        self.emitter = Emitter(self.name, parent=app.events)
        self._limit = self.settings.request_limit([(task.name, task.defaults.lease) for task in app.tasks.values()])
        self._runs = Runs()
        self._done = threading.Event()
        self._stopping = threading.RLock()  # a crash stops an embedded worker, which may be stopped just then
        self._until = math.inf  # when the grace is over, the shortest that anybody gave
        self._stops = 0  # how often it was asked to stop
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._started = self._runs_here = False
        self._crash: BaseException | None = None

    # -- life

    def start(self) -> None:
        """Start working and return; raises BadSettings or Unavailable when the store is not fit to begin."""
        if self._started:
            raise Misuse("this worker was started before: make another one")
        self.app.store.check()
        self.app.client.workers()  # a store that cannot be reached, or was not migrated, is told before anything starts
        self._started = True
        self._make_keeping()
        self._make_feeding()
        self.emitter.emit(Kind.WORKER_STARTED, detail=f"queues {', '.join(self.queues)} on {self.app.store.name}")
        with self._stopping:  # what fails at once stops nothing that has not begun
            for lane in self._lanes:
                lane.prefetch.open(self._feeder.finished)
            for part in (self._keeper, self._warden, self._ringer, self._upkeep, self._feeder):
                part.start()

    def _make_keeping(self) -> None:
        store = self.app.store
        self._keeper = Keeper(
            store.dedicated(timeout=self._limit),
            store.verbs,
            self.claimer.owner,
            on_lost=self._lost,
            emitter=self.emitter,
            crashed=self._crashed,
            clock=self._clock,
            beat=self.settings.beat,
        )
        self._warden = Warden(
            self._runs,
            self._keeper,
            self.emitter,
            patience=self.settings.patience,
            crashed=self._crashed,
            clock=self._clock,
        )

    def _make_feeding(self) -> None:
        store = self.app.store
        self._lanes = self._make_lanes()
        self._upkeep = Upkeep(
            self.app,
            self._record(),
            self.settings.retention,
            emitter=self.emitter,
            crashed=self._crashed,
            clock=self._clock,
        )
        beside = "parallel_writes" in store.capabilities
        self._feeding = [store.dedicated(timeout=self._limit) for _ in range(1 + beside)]
        self._feeder = Feeder(
            self._feeding[0],
            store.verbs,
            self.claimer,
            self._lanes,
            runs=self._runs,
            keeper=self._keeper,
            dispatch=self._dispatch,
            settled=self._settled,
            emitter=self.emitter,
            crashed=self._crashed,
            pace=Pace(self._limit),
            beside=self._feeding[1] if beside else None,
            clock=self._clock,
            every_round=self._upkeep.report,
        )
        self._ringer = Ringer(store.bell, self._feeder, self.emitter, self._crashed)

    def _record(self) -> WorkerRecord:
        return WorkerRecord(
            owner=self.claimer.owner,
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=self.queues,
            slots=self.slots,
            started_at=datetime.now(UTC),
            seen_ago=0.0,
            held=0,
        )

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then stop gracefully; a second signal stops at once.

        Raises the error of a part of the machinery that failed, after stopping.
        """
        with _Signals(self.request_stop), set_for_work():
            self._runs_here = True
            self.start()
            self._asked.get()
            self.stop()
        if self._crash is not None:
            raise self._crash

    def request_stop(self) -> None:
        """Ask the worker to stop; asking twice takes the grace away. Safe in a signal handler."""
        self._stops += 1
        # An Event would deadlock in a signal handler that interrupts the thread which waits for it; this may be put to.
        self._asked.put(None)

    def stop(self, grace: float | None = None) -> None:
        """Stop: claim nothing, let jobs finish for the grace, stop their effects, then release what is left (R25)."""
        if self._done.is_set() or not self._started:
            return
        grace = self.settings.grace if grace is None else grace
        self._until = min(self._until, self._clock() + grace)
        with self._stopping:
            if not self._done.is_set():
                self._stop(grace)

    def _stop(self, grace: float) -> None:
        self._stops = max(1, self._stops)
        self._feeder.stop_claiming()  # before anybody hears of it
        self.emitter.emit(Kind.WORKER_STOPPING, detail=stopping(len(self._runs), grace))
        self._ringer.stop()
        self._wait_for_runs(grace, lambda: self._stops > 1 or self._clock() >= self._until)
        if self._stops > 1:
            self.emitter.emit(Kind.WORKER_STOPPING, detail="asked again, so the grace is over")
        for run in self._runs.all():
            self._warden.tell(run, Stop("the worker is shutting down", Verb.RELEASE))
        self._wait_for_runs(_LINGER, lambda: False)
        self._warden.stop()
        for run in self._runs.all():
            # Its gate is closed and this process is about to end: the job need not wait for its lease to lapse.
            self._feeder.finished(run, Ending(run.lease.token, Verb.RELEASE, reason="the worker shut down"))
        self._feeder.stop(timeout=self._limit + _LINGER)
        self._keeper.stop()
        for lane in self._lanes:
            lane.prefetch.close()
        self._upkeep.stop()
        self._hang_up()
        self._done.set()
        self.emitter.emit(Kind.WORKER_STOPPED)

    def _hang_up(self) -> None:
        self._keeper.close()
        for driver in self._feeding:
            driver.close()

    def _crashed(self, error: BaseException) -> None:
        """Stop, as half a worker keeps no promise: in `run`, or in a thread of its own where nobody waits there."""
        self._crash = self._crash or error
        self._feeder.stop_claiming()
        self.request_stop()
        if not self._runs_here:
            with suppress(RuntimeError):  # no thread is to be had: nothing is claimed, at least
                threading.Thread(target=self.stop, name="tenure-stop", daemon=True).start()

    def healthy(self) -> bool:
        """Whether the claim loop has gone round within the last 30 s and leases can be renewed (B04)."""
        return (
            self._started
            and self._crash is None
            and self._keeper.healthy
            and self._clock() - self._feeder.last_round < _HEALTHY_WITHIN
        )

    def idle(self) -> bool:
        """Whether no job is running here."""
        return not len(self._runs)

    @property
    def slots(self) -> int:
        """How many jobs this worker may run at once."""
        return sum(lane.prefetch.slots for lane in self._lanes)

    # -- parts

    def _make_lanes(self) -> list[Lane]:
        names: dict[type[Executor], list[str]] = {}
        for task in self.app.tasks.values():
            names.setdefault(_executor_of(task), []).append(task.name)
        return [
            Lane(self._prefetch(*self._executor(kind)), names[kind], self.queues)
            for kind in _EXECUTORS
            if kind in names
        ]

    def _executor(self, kind: type[Executor]) -> tuple[Executor, int]:
        """Make an executor, and say how many jobs may wait for each of its slots."""
        say = self.settings
        if kind is LoopExecutor:
            return LoopExecutor(say.slots, self._crashed), TIMES
        if kind is ThreadExecutor:
            return ThreadExecutor(say.threads, self._crashed), TIMES
        # Work that is worth a process is not short, and starting one is not either.
        return ProcessExecutor(say.processes, self.app), 0

    def _prefetch(self, executor: Executor, times: int) -> Prefetch:
        return Prefetch(executor, refusal=self._refusal, began=self._began, times=times, clock=self._clock)

    def _refusal(self) -> str | None:
        """Say why no job may begin now; a signal that asks to stop counts before the feeder has heard of it."""
        return "the worker was asked to stop" if self._stops else self._feeder.refusal()

    def _began(self, runs: list[Run]) -> None:
        self._warden.watch([run for run in runs if run.deadline is not None])
        if self.emitter.wants(Kind.JOB_STARTED):
            for run in runs:
                self._emit(Kind.JOB_STARTED, run.claimed, "")

    def _dispatch(self, batches: Sequence[tuple[Lane, list[Claimed]]], sent_at: float) -> None:
        for lane, claimed in batches:
            runs = [self._make_run(lane, row, sent_at) for row in claimed if self._is_ours(row)]
            self._runs.add(runs)
            self._keeper.add([run.lease for run in runs])
            self._warden.watch(runs)
            if runs:
                lane.prefetch.start(runs)

    def _make_run(self, lane: Lane, row: Claimed, sent_at: float) -> Run:
        lease = Lease(
            Token(row.id, row.generation),
            self.claimer.owner,
            row.lease,
            sent_at,
            renew=self._renew,
            clock=self._clock,
        )
        task = self.app.tasks[row.task or ""]
        if row.lost_generation is not None:
            self._tell_takeover(row)
        job = Job(row, lease, self.app, encode=task.codec.encode_result)
        return Run(row, lease, job, task, lane.prefetch)

    def _lost(self, lease: Lease, reason: str) -> None:
        self._warden.lost(lease, reason)

    def _renew(self, lease: Lease, duration: float | None) -> None:
        renewing(self.app.client)(lease, duration)

    def _is_ours(self, row: Claimed) -> bool:
        if row.state is State.RUNNING:
            return True
        self._emit(Kind.JOB_DISCARDED, row, f"worker lost {row.takeovers} times, last: {row.lost_worker}")
        return False

    def _settled(self, run: Run, ending: Ending, answer: Answer) -> None:
        run.lease.lose("the run ended")
        kind = kind_of(run.claimed, ending, answer)
        if self.emitter.wants(kind):
            self._emit(kind, run.claimed, detail_of(run.claimed, ending, answer))
        if (late := afterthought(ending, answer)) is not None:
            self._emit(Kind.RAISED_LATE, run.claimed, late)

    def _tell_takeover(self, row: Claimed) -> None:
        lost = f"generation {row.generation} took over from generation {row.lost_generation} ({row.lost_worker})"
        self._emit(Kind.JOB_TAKEN_OVER, row, lost)

    def _emit(self, kind: Kind, row: Claimed, detail: str) -> None:
        self.emitter.emit(kind, job=row.id, generation=row.generation, task=row.task, detail=detail)

    def _wait_for_runs(self, seconds: float, hurried: Callable[[], bool]) -> None:
        until = self._clock() + seconds
        while len(self._runs) and self._clock() < until and not hurried():
            time.sleep(0.01)


_EXECUTORS: tuple[type[Executor], ...] = (LoopExecutor, ThreadExecutor, ProcessExecutor)


def _executor_of(task: Task[Any, Any, Any]) -> type[Executor]:
    if task.is_async:
        return LoopExecutor
    return ThreadExecutor if task.isolation is None else ProcessExecutor


def _settings(given: dict[str, Any]) -> Settings:
    try:
        return Settings(**given)
    except TypeError:
        known = ", ".join(Settings.__slots__)
        unknown = ", ".join(sorted(set(given) - set(Settings.__slots__)))
        raise BadSettings(f"a worker has no setting {unknown}; there are {known}") from None


class _Signals:
    """Call `action` on SIGTERM and SIGINT inside a block; only a main thread may do this."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._action()

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
