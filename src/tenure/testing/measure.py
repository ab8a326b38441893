"""How fast Tenure is on a store of one's own: enqueue, drain and pick-up, each in a queue that nobody else serves.

    python -m tenure.testing.measure QUEUE COUNT     the producer of a pick-up, on the store in $TENURE_STORE

The jobs stay in the store, completed, in queues called `bench-…`, until they are pruned like all others. Figures of two
stores can be compared, or of one store before and after a change, taken on the same machine while nothing else runs.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Self

import msgspec

from tenure.app import App
from tenure.errors import BadSettings, Unavailable
from tenure.task import Task
from tenure.worker.worker import Worker

CALL = 1000
"""Jobs in one call of a bulk enqueue."""

SINGLES = 10
"""One in so many jobs is enqueued by a call of its own."""

_WARM = 5  # pick-ups that are left out: plans and connections are made by then
_PAUSES = (0.010, 0.050)  # seconds between two pick-ups, by chance, so that they meet no beat of a poller
_LOOK = 0.001
_PATIENCE = 120.0  # seconds in which nothing at all may happen

Progress = Callable[[str], None]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured: medians over the rounds, rates in jobs a second, pick-ups in seconds."""

    jobs: int
    rounds: int
    enqueue_one: float
    enqueue_many: float
    drain: float
    pickup_p50: float
    pickup_p99: float


def measure(
    address: str, *, jobs: int = 5000, rounds: int = 5, pickups: int = 100, progress: Progress = lambda _what: None
) -> Figures:
    """Measure the migrated store at `address`; `progress` hears what is done next.

    Each round enqueues `jobs`, some of them one at a time, drains them with one worker, and checks that each ran once;
    then `pickups` jobs are sent by another process to an idle worker. Raises BadSettings for numbers and stores that
    cannot be measured, and Unavailable when the store lets nothing through for two minutes.
    """
    for what, number in (("jobs", jobs), ("rounds", rounds), ("pickups", pickups)):
        if number < 1:
            raise BadSettings(f"{what} is {number}: at least 1")
    if address.startswith("memory:"):
        raise BadSettings("a memory store is seen by one process only, so nothing can be picked up from another")
    ones, many, drains = [], [], []
    for turn in range(rounds):
        with _Measured(address) as measured:
            progress(f"round {turn + 1} of {rounds}: enqueue")
            singles = max(1, jobs // SINGLES)
            ones.append(singles / measured.enqueue(singles, 1))
            many.append(jobs / measured.enqueue(jobs, CALL))
            progress(f"round {turn + 1} of {rounds}: drain")
            drains.append((singles + jobs) / measured.drain())
    progress("pick-up")
    with _Measured(address) as measured:
        delays = measured.pick_up(pickups)
    return Figures(
        jobs=jobs,
        rounds=rounds,
        enqueue_one=statistics.median(ones),
        enqueue_many=statistics.median(many),
        drain=statistics.median(drains),
        pickup_p50=statistics.median(delays),
        pickup_p99=delays[math.ceil(0.99 * len(delays)) - 1],
    )


class _Measured:
    """An app with one task in a fresh queue, which notes how often each job ran and how long it had waited."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._queue = f"bench-{secrets.token_hex(4)}"
        self._app = App(address)
        self._runs: list[int] = []
        self._delays: list[float] = []
        self._began = 0.0
        self._task = _task(self._app, self._queue, self._ran)

    def __enter__(self) -> Self:
        """Connect, so that the first enqueue does not."""
        self._app.store.check()
        self._app.client.workers()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._app.close()

    def _ran(self, number: int, sent: float) -> None:
        now = time.monotonic()
        self._began = self._began or now
        self._runs[number] += 1
        self._delays.append(now - sent)

    def enqueue(self, jobs: int, call: int) -> float:
        """Enqueue jobs, `call` at a time, and return the seconds that it took."""
        first = len(self._runs)
        self._runs += [0] * jobs
        calls = [range(at, min(at + call, first + jobs)) for at in range(first, first + jobs, call)]
        began = time.monotonic()
        for numbers in calls:
            if call == 1:
                self._task.enqueue(number=numbers[0], sent=0.0)
            else:
                self._task.enqueue_many([{"number": number, "sent": 0.0} for number in numbers])
        return time.monotonic() - began

    def drain(self) -> float:
        """Run a worker until every job has run and is settled; return the seconds from the first one on."""
        with self._working() as worker:
            self._wait_until(lambda: len(self._delays) >= len(self._runs) and worker.idle())
            ended = time.monotonic()
        if set(self._runs) != {1}:
            raise Unavailable(
                f"{len(self._runs)} jobs were run {sum(self._runs)} times: the store is too slow to measure"
            )
        return ended - self._began

    def pick_up(self, count: int) -> list[float]:
        """Let another process send jobs to an idle worker; return how long each waited, sorted."""
        self._runs += [0] * (count + _WARM)
        with self._working(), _producer(self._address, self._queue, count + _WARM) as producer:

            def over() -> bool:
                if producer.poll() not in {None, 0}:
                    raise Unavailable(f"the process that enqueues has ended with {producer.returncode}")
                return len(self._delays) >= len(self._runs)

            self._wait_until(over)
        return sorted(self._delays[_WARM:])

    @contextmanager
    def _working(self) -> Iterator[Worker]:
        worker = self._app.worker(queues=(self._queue,), retention=None)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop(grace=0)

    def _wait_until(self, done: Callable[[], bool]) -> None:
        seen, until = 0, time.monotonic() + _PATIENCE
        while not done():
            if len(self._delays) > seen:
                seen, until = len(self._delays), time.monotonic() + _PATIENCE
            if time.monotonic() > until:
                raise Unavailable(f"no job ran for {_PATIENCE:g} s, and {len(self._runs) - seen} are left")
            time.sleep(_LOOK)


def _task(app: App, queue: str, ran: Callable[[int, float], None]) -> Task[Any, Any, Any]:
    @app.task(name="bench", queue=queue)
    async def bench(number: int, sent: float) -> None:
        ran(number, sent)

    return bench


@contextmanager
def _producer(address: str, queue: str, count: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tenure.testing.measure", queue, str(count)],
        env={**os.environ, "TENURE_STORE": address},  # an address may hold a password, which no command line should
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def produce(queue: str, count: int) -> None:
    """Enqueue jobs one by one, each with the moment right before its call, which every process of a host shares."""
    app = App()
    with closing(app):
        bench = _task(app, queue, lambda _number, _sent: None)
        app.client.workers()
        for number in range(count):
            time.sleep(random.uniform(*_PAUSES))
            bench.enqueue(number=number, sent=time.monotonic())


def main(arguments: Sequence[str]) -> None:
    """Play the producer that the command line asks for."""
    queue, count = arguments
    produce(queue, int(count))


if __name__ == "__main__":
    main(sys.argv[1:])
