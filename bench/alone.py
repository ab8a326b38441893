"""What is measured of Tenure alone, in a child process: what a worker costs that idles, holds jobs, or drains them."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from pathlib import Path

from bench.arenas import Arena
from bench.children import PATIENCE, ask
from bench.counting import CountingStore
from bench.effects import effects
from bench.entrant import Entrant
from bench.measure import Figures, Measure
from tenure import App
from tenure.store.address import open_store

_PATIENCE = 300.0
_BEATS = 3


def measure(what: str, patience: float = PATIENCE) -> Measure:
    """Make a measurement that asks the function `what` of this module, in a child that may take so many seconds."""

    def measured(arena: Arena, entrant: Entrant, size: int) -> Figures:
        with arena.fresh(entrant) as address:
            figures: Figures = ask("alone", entrant, address, what, size, patience=patience)
        return figures

    return measured


def idle(address: str, seconds: int) -> Figures:
    """Count what a worker asks and uses that has nothing to do."""
    store = CountingStore(open_store(address))
    app = App(store)

    @app.task
    def noop() -> None:
        """Never run."""

    worker = app.worker()
    worker.start()
    _wait_until(lambda: store.by_verb["report"] > 0, "the worker's first round to be over")
    store.reset()
    used, began = _used(), time.monotonic()
    time.sleep(seconds)
    taken = time.monotonic() - began
    figures = {
        "statements/s": store.statements / taken,
        "round trips/s": store.round_trips / taken,
        "CPU, %": 100 * (_used() - used) / taken,
    }
    worker.stop(grace=0)
    return figures


def holding(address: str, jobs: int) -> Figures:
    """Count what it costs to keep many leases, over three beats; of 10 s each where it is 10,000 jobs."""
    store = CountingStore(open_store(address))
    app, beat = App(store), 10.0 if jobs >= 10_000 else 1.0

    @app.task(lease=60)
    async def sleep() -> None:
        await asyncio.sleep(3600)

    worker = app.worker(slots=jobs, beat=beat)
    for first in range(0, jobs, 1000):
        sleep.enqueue_many([{}] * min(1000, jobs - first))
    worker.start()
    _wait_until(lambda: sum(queue.running for queue in app.client.queues()) == jobs, "all jobs to be running")
    store.reset()
    _wait_until(lambda: store.by_verb["renew"] > 0, "a first beat")
    store.reset()
    used, began = _used(), time.monotonic()
    _wait_until(lambda: store.by_verb["renew"] >= _BEATS, "the beats to count")
    taken = time.monotonic() - began
    beats = store.by_verb["renew"]
    figures = {
        "statements a beat": store.statements_by_verb["renew"] / beats,
        "a beat, ms": 1000 * store.seconds_by_verb["renew"] / beats,
        "CPU, %": 100 * (_used() - used) / taken,
    }
    worker.stop(grace=0)
    return figures


def draining(address: str, jobs: int) -> Figures:
    """Drain jobs that do nothing, each run once, and see how much memory the last nine tenths of them leave behind."""
    app, ran = App(address), [0]

    @app.task
    async def noop() -> None:
        ran[0] += 1

    for first in range(0, jobs, 1000):
        noop.enqueue_many([{}] * min(1000, jobs - first))
    worker, began = app.worker(), time.monotonic()
    worker.start()
    _wait_until(lambda: ran[0] >= jobs // 10, "a tenth of the jobs to have run")
    memory = _memory()
    _wait_until(lambda: ran[0] >= jobs, "all jobs to have run", patience=_PATIENCE + jobs / 1000)
    _wait_until(lambda: not any(queue.running or queue.due for queue in app.client.queues()), "all jobs to be settled")
    figures = {"jobs/s": jobs / (time.monotonic() - began), "memory grew, MB": _memory() - memory}
    worker.stop(grace=0)
    if ran[0] != jobs:
        raise RuntimeError(f"{jobs} jobs were run {ran[0]} times")
    return figures


def guarding(address: str, jobs: int) -> Figures:
    """Ask `bench.effects` what guards, fences and steps cost beside the bare transaction."""
    return effects(address, jobs=jobs)


ASKED: dict[str, Callable[[str, int], Figures]] = {one.__name__: one for one in (idle, holding, draining, guarding)}


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _memory() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _wait_until(done: Callable[[], bool], what: str, patience: float = _PATIENCE) -> None:
    until = time.monotonic() + patience
    while not done():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {patience:g} s for {what}")
        time.sleep(0.05)
