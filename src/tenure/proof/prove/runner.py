"""One run, from an empty queue to a verdict."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tenure.app import App
from tenure.clock import boot_clock
from tenure.errors import BadSettings, Misuse, OutcomeUnknown, Unavailable
from tenure.ids import new_job_ids, new_owner
from tenure.proof.history import Meta, read, write
from tenure.proof.judge import judge
from tenure.proof.prove.fleet import Fleet
from tenure.proof.prove.gathering import as_locks, rebuilt_log, tell_log, tell_store
from tenure.proof.prove.managed import ManagedStore
from tenure.proof.prove.nemesis import Nemesis, Targets
from tenure.proof.prove.outcome import Proof
from tenure.proof.prove.places import HOST, REFERENCE, Server, Service, check_place, open_place
from tenure.proof.prove.plan import Plan
from tenure.proof.prove.recorded import recorded
from tenure.proof.prove.volume import Volume
from tenure.proof.prove.worker import TASK, Orders
from tenure.proof.recorder import File, Recorder
from tenure.protocol.job import NewJob
from tenure.store.address import open_store
from tenure.testing.proxy import Proxy

_TICK = 0.05
_TIMEOUT = 3.0
_STARTING = 30.0
_CALMS, _STOOD_STILL = 10, 1.0
_OFFSETS = 3600.0
_RATES = (0.5, 0.8, 1.0, 1.25, 2.0)

Progress = Callable[[float], None]
"""Hears how many seconds of the run are over, again and again."""


@dataclass(frozen=True, slots=True)
class Played:
    """A run that is over: how many jobs it had, and how long it took."""

    jobs: int
    seconds: float


def judged(plan: Plan, folder: Path, played: Played) -> Proof:
    """Judge what was played into `folder`."""
    history = read([folder / "history.jsonl"])
    return Proof(plan, history, judge(history), played.jobs, played.seconds)


def play(plan: Plan, folder: Path, *, progress: Progress, volume: Volume | None = None) -> Played:
    """Run the plan; every process writes its file into `folder`, which must be empty.

    `folder/history.jsonl` is the whole run then. `volume` is where a managed store lives whose disk is to be full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Misuse(f"{folder} is not empty: each run keeps its files in a folder of its own")
    began = boot_clock()
    with ExitStack() as stack:
        run = _Run(plan, folder, stack, progress, volume)
        run.work()
        run.tell()
    history = read(sorted(folder.glob("*.jsonl")))
    if plan.workload == "mutex":
        history = as_locks(history)
    elif plan.destination is not None:
        history.applied.extend(rebuilt_log(open_place(plan.destination), plan.destination, history.calls))
    for part in folder.glob("*.jsonl"):
        part.unlink()
    write(history, folder / "history.jsonl")
    return Played(len(run.jobs), boot_clock() - began)


class _Run:
    """A run under way; what it opens is closed with `stack`."""

    def __init__(self, plan: Plan, folder: Path, stack: ExitStack, progress: Progress, volume: Volume | None) -> None:
        if plan.destination is not None:
            check_place(plan.destination)  # so that a wrong name is told before anything starts
        self.plan = plan
        self.folder = folder
        self.jobs: list[str] = []
        self._unanswered: list[str] = []
        self.queue = f"prove-{new_owner()[:8]}"
        self._stack = stack
        self._progress = progress
        self._clocks = random.Random(f"{plan.seed}/clocks")
        self._managed = ManagedStore(plan, folder, stack, volume) if plan.store is None else None
        self._address = self._managed.address if self._managed else str(plan.store)
        store = open_store(self._address)
        if "processes" not in store.capabilities:
            raise BadSettings(
                f"the workers of a proof are processes, and {store.name} lives in one: name another store"
            )
        self._note = self._recorder(store.name, store.durability)
        self._app = App(recorded(store, self._note), timeout=_TIMEOUT)
        stack.callback(self._app.close)
        self._app.store.migrate()
        self._app.store.check()
        self._service = Service(fence=plan.fence)
        self._proxies: dict[str, Proxy] = {}
        self._open_network()

    def _recorder(self, store: str, durability: str) -> Recorder:
        plan = self.plan
        head = Meta(
            began=boot_clock(),
            workload=plan.workload if plan.fence else f"{plan.workload} without a fence",
            seed=plan.seed,
            store=store,
            durability=durability,
            history="abnormal",
            destination=plan.destination or REFERENCE,
            faults=plan.faults,
            clock_jumps=plan.clocks_jump,
            must_fail=plan.must_fail,
        )
        file = File(self.folder / "run.jsonl", head)
        self._stack.callback(file.close)
        return Recorder(file, "run")

    def _open_network(self) -> None:
        self._port = self._stack.enter_context(Server(self._service)).port
        if self.plan.destination is None and self.plan.workload == "update":
            proxy = self._stack.enter_context(Proxy(HOST, self._port))
            self._proxies["destination"] = proxy
            self._port = proxy.port
        self._workers_address = self._address
        parts = urlsplit(self._address)
        if {"cut", "delay", "reorder"} & set(self.plan.faults) and parts.hostname and parts.port:
            proxy = self._stack.enter_context(Proxy(parts.hostname, parts.port))
            self._proxies["store"] = proxy
            self._workers_address = proxy.url_for(self._address)

    # -- what happens

    def work(self) -> None:
        """Keep the workers busy and disturbed for the time of the plan, then wait until all is quiet."""
        with Fleet(self.plan.workers, self._orders, self._workers_address, self.folder) as fleet:
            targets = Targets(fleet, self._app, self.queue, self._address, self._proxies, self._managed)
            nemesis = Nemesis(self.plan, targets, self._note)
            self._wake_up(fleet)
            nemesis.start()
            try:
                for passed in self._ticks(boot_clock(), self.plan.seconds):
                    fleet.look_after()
                    nemesis.check()
                    self._feed()
                    self._progress(passed)
            finally:
                nemesis.stop()
            self._calm_down(fleet)
            fleet.stop()

    def _wake_up(self, fleet: Fleet) -> None:
        """Wait until the first worker is about to write: starting takes its time, and is not to be disturbed."""
        for _ in self._ticks(boot_clock(), _STARTING):
            fleet.look_after()
            self._feed()
            if not fleet.moments.empty():
                return
        raise Misuse(
            f"no worker came to its first write within {_STARTING:g} s; they said: {fleet.said() or 'nothing'}"
        )

    def _calm_down(self, fleet: Fleet) -> None:
        """Disturb nothing any more, and wait until every job is over, or should be."""
        for _ in range(_CALMS):
            self._note.calm(self.plan.within)
            if self._is_calm(fleet, self.plan.within + 1.0):
                return

    def _is_calm(self, fleet: Fleet, seconds: float) -> bool:
        """Wait so long until every job is over; a machine that stands still meanwhile disturbs as any fault does."""
        began = boot_clock()
        while boot_clock() - began < seconds:
            fleet.look_after()
            with suppress(Unavailable, OutcomeUnknown):
                if not any(counts.queue == self.queue for counts in self._app.client.queues()):
                    return True
            slept = boot_clock()
            time.sleep(_TICK)
            if boot_clock() - slept > _STOOD_STILL:
                return False
        return True

    def _ticks(self, began: float, seconds: float) -> Iterator[float]:
        while (passed := boot_clock() - began) < seconds:
            yield passed
            time.sleep(_TICK)

    def _feed(self) -> None:
        """Keep a job waiting for each thread."""
        with suppress(Unavailable, OutcomeUnknown):
            mine = (counts for counts in self._app.client.queues() if counts.queue == self.queue)
            missing = self.plan.workers * self.plan.threads - sum(counts.due for counts in mine)
            if missing > 0 and not self._unanswered:
                self._unanswered = new_job_ids(missing)
                self.jobs += self._unanswered
            if self._unanswered:  # the same again, until it is known that they are there
                self._app.client.enqueue([self._job(job) for job in self._unanswered])
                self._unanswered = []

    def _job(self, job: str) -> NewJob:
        return NewJob(job, TASK, queue=self.queue, lease=self.plan.lease)

    def _orders(self, name: str) -> Orders:
        plan = self.plan
        wrong = "clock" in plan.faults
        return Orders(
            name=name,
            queue=self.queue,
            folder=str(self.folder),
            seed=plan.seed,
            threads=plan.threads,
            lease=plan.lease,
            updates=plan.updates,
            workload=plan.workload,
            fence=plan.fence,
            port=self._port,
            destination=plan.destination,
            duplicate="duplicate" in plan.faults,
            reorder="reorder" in plan.faults,
            offset=self._clocks.uniform(0.0, _OFFSETS) if wrong else 0.0,
            rate=self._clocks.choice(_RATES) if wrong else 1.0,
        )

    # -- what is left of it

    def tell(self) -> None:
        """Write down what store and destination have kept."""
        tell_store(self._app.client, self.jobs, self._note)
        if self.plan.destination is None and self.plan.workload == "update":
            tell_log(self._service, self._note)
