"""One worker process: a real `tenure` worker whose every answer is recorded, and one task that updates a destination.

    python -m tenure.proof.prove.worker ORDERS

The orders are JSON; the store's address comes from $TENURE_STORE, so that no password is seen in the list of processes.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tenure.app import App
from tenure.clock import boot_clock
from tenure.errors import OutcomeUnknown, OutOfSequence, StaleToken, TenureError, Unavailable
from tenure.ids import new_owner
from tenure.proof.history import CallName, Outcome, Part
from tenure.proof.prove.places import REFERENCE, PerThread, Place, Reference, names_in, open_place
from tenure.proof.prove.plan import Workload
from tenure.proof.prove.recorded import recorded, skewed
from tenure.proof.recorder import File, Recorder
from tenure.protocol.events import Event, Kind
from tenure.protocol.lease import Effect, Token
from tenure.protocol.retry import Backoff
from tenure.store.address import open_store
from tenure.worker.context import Job

TASK = "prove"
THINKING = (0.02, 0.12)
"""Seconds between reading and writing: work is done there, and a network lies there."""

NOT_STARTED = 75
"""The exit code of a worker that could not reach the store to begin with, as while the network is cut."""

_DUPLICATES = 0.15  # the share of writes that are sent twice, where that is a fault of the run
_OVERTAKEN = 0.3  # the share of writes of which another copy comes after the next write, where that is one
_SPREAD = 0.3  # the share of writes whose moment is told while the write begins, not before the thinking
_PR_SET_PDEATHSIG = 1


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process is told at its start."""

    name: str
    queue: str
    folder: str
    seed: int
    threads: int
    lease: float
    updates: int
    workload: Workload
    fence: bool
    port: int
    destination: str | None
    duplicate: bool
    reorder: bool
    offset: float = 0.0
    rate: float = 1.0


class Updates:
    """The workload: announce oneself, then read, think, pass the gate and write, some times over."""

    def __init__(self, orders: Orders, recorder: Recorder, owner: str = "") -> None:
        self.owner = owner
        self._orders = orders
        self._note = recorder
        self._chance = random.Random(f"{orders.seed}/{orders.name}")
        self._places = PerThread(self._open)
        self._named = orders.destination or REFERENCE
        self._under_way: dict[Token, Callable[[], None]] = {}  # copies of writes that the next write overtakes

    def __call__(self, job: Job) -> str:
        """Run one job; its result is how many writes its destination has kept."""
        if self._orders.workload == "mutex":
            return self._alone(job)
        place, scope = self._places.get(), job.id
        self._asked("raise", job.token, scope, lambda: place.raise_to(job.token, scope))
        try:
            for _ in range(self._orders.updates):
                self._update(job, place, scope)
            return str(len(names_in(place.read(scope))))
        finally:
            self._under_way.pop(job.token, None)

    def _update(self, job: Job, place: Place, scope: str) -> None:
        names = names_in(place.read(scope))
        asked = boot_clock()
        with job.effect() as token:
            self._passed(job, token, asked)
            last = self._chance.random() < _SPREAD
            if not last:
                self._tell(job)
            time.sleep(self._chance.uniform(*THINKING))
            if last:
                self._tell(job)
            value = json.dumps([*names, f"g{token.generation}.{token.sequence}.{new_owner()[:6]}"])
            self._write(place, token, scope, value)

    def _write(self, place: Place, token: Effect, scope: str, value: str) -> None:
        def write() -> None:
            if self._orders.fence or self._orders.destination is None:
                place.write(token, scope, value, token.sequence)
            else:
                place.write_unfenced(scope, value)

        told = {"sequence": token.sequence, "value": value}
        try:
            self._asked("apply", token, scope, write, **told)
        except OutcomeUnknown:
            self._again(token, scope, write, told)  # as every client does; the number of the write makes it harmless
        else:
            if self._orders.duplicate and self._chance.random() < _DUPLICATES:
                self._again(token, scope, write, told)
            self._overtake(token, lambda: self._again(token, scope, write, told))

    def _overtake(self, token: Effect, again: Callable[[], None]) -> None:
        """Let a copy of the write before arrive now, and keep one of this for the next, where that is a fault."""
        run = Token(token.job, token.generation)
        late = self._under_way.pop(run, None)
        if late is not None:
            late()
        if self._orders.reorder and self._chance.random() < _OVERTAKEN:
            self._under_way[run] = again

    def _again(self, token: Effect, scope: str, write: Callable[[], None], told: dict[str, Any]) -> None:
        with suppress(OutOfSequence):  # which is the answer that a write deserves that was applied before
            self._asked("apply", token, scope, write, detail="sent again", **told)

    def _alone(self, job: Job) -> str:
        """Use the lease as a lock, as a program without fences does: believe in it from entering to leaving."""
        job.check()
        entered = boot_clock()
        self._tell(job)
        time.sleep(self._chance.uniform(*THINKING))
        self._note.call(
            "effect", "ok", sent=entered, job=job.id, generation=job.generation, owner=job.lease.owner, detail="section"
        )
        return "left"

    def _passed(self, job: Job, token: Effect, asked: float) -> None:
        """Note that the gate opened, some time after `asked`: this process may be stopped anywhere around here.

        So the moment of the gate is told from before it, and a deadline only where nothing is left to guess about it.
        """
        now = boot_clock()
        left = job.lease.remaining()
        self._note.call(
            "effect",
            "ok",
            sent=asked,
            job=job.id,
            generation=token.generation,
            owner=job.lease.owner,
            sequence=token.sequence,
            deadline=now + left / self._orders.rate if left else None,
        )

    def _asked(self, call: CallName, token: Token, scope: str, act: Callable[[], None], **fields: Any) -> None:
        told = {"job": token.job, "generation": token.generation, "owner": self.owner, "worker": self._orders.name}
        asked = self._note.asked(call, scope=scope, destination=self._named, **told, **fields)
        outcome: Outcome = "ok"
        current = None
        try:
            act()
        except StaleToken as error:
            outcome, current = "stale", error.current
            raise
        except OutOfSequence as error:
            outcome = "already" if error.highest == error.sequence else "fail"
            raise
        except OutcomeUnknown:
            outcome = "unknown"
            raise
        except TenureError:
            outcome = "fail"
            raise
        except BaseException:
            outcome = "unknown"  # whatever a destination raises beside that: nobody knows what it did
            raise
        finally:
            if outcome != "unknown":
                self._note.answered(asked, outcome, current=current)

    def _tell(self, job: Job) -> None:
        """Tell the nemesis that now would be the worst moment."""
        os.write(sys.stdout.fileno(), f"{job.id} {job.generation}\n".encode())

    def _open(self) -> Place:
        say = self._orders
        return Reference(say.port) if say.destination is None else open_place(say.destination)


def main() -> None:
    """Work until SIGTERM, or until whoever started this process is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # reaches a stopped process too
    threading.Thread(target=_end_with_input, daemon=True).start()
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    recorder = Recorder(File(Path(orders.folder, f"{orders.name}.jsonl"), Part(process=orders.name)), orders.name)
    app = App(recorded(open_store(os.environ["TENURE_STORE"]), recorder, orders.rate))
    updates = Updates(orders, recorder)

    @app.task(
        name=TASK,
        queue=orders.queue,
        lease=orders.lease,
        max_attempts=None,
        max_takeovers=None,
        backoff=Backoff(first=0.1, factor=1.5, most=1.0),
    )
    def update(job: Job) -> str:
        return updates(job)

    worker = app.worker(
        clock=skewed(boot_clock, orders.offset, orders.rate),
        name=orders.name,
        queues=(orders.queue,),
        threads=orders.threads,
        grace=5.0,
        retention=None,
    )
    updates.owner = worker.claimer.owner
    started: list[Event] = []
    app.events.subscribe(lambda event: started.append(event) if event.kind is Kind.WORKER_STARTED else None)
    try:
        worker.run()
    except (Unavailable, OutcomeUnknown):
        if started:
            raise  # nothing that befalls the store may end a worker that has started
        raise SystemExit(NOT_STARTED) from None


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
