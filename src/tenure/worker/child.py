"""What runs in a child process: it waits for a job, runs its handler in the main thread, and reports how it ended.

A child dies with its worker, whatever its handler does: the kernel kills it (Linux), and a thread sees the end of the
channel. It ignores SIGTERM and SIGINT, which reach it when they are sent to all processes of a worker: whether a job
may finish is for the worker to decide (B03).
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import logging
import os
import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from tenure.errors import LeaseLost, Misuse, OutcomeUnknown, TenureError, Unavailable
from tenure.hold import Lease
from tenure.protocol.ending import ended_by
from tenure.protocol.events import Emitter
from tenure.protocol.job import Answer, Claimed, Ending
from tenure.protocol.lease import Token
from tenure.protocol.retry import Backoff
from tenure.worker.channel import (
    Begin,
    Begun,
    Channel,
    Ended,
    Extend,
    FromWorker,
    Lift,
    Progress,
    Question,
    Recall,
    Record,
    Told,
    from_worker,
)
from tenure.worker.context import Clients, Job
from tenure.worker.place import find_task
from tenure.worker.program import Program
from tenure.worker.run import Executor, Run
from tenure.worker.shared import SharedEnd, SharedLease

if TYPE_CHECKING:
    from tenure.client import AsyncClient, Client
    from tenure.task import Task

IGNORED = (signal.SIGTERM, signal.SIGINT)
"""The signals that a child ignores; its worker starts it with them blocked, so that none comes too early."""

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LEAVE = 1.0  # seconds that an idle child has to end in an orderly way
_ERRORS = {kind.__name__: kind for kind in (Unavailable, OutcomeUnknown, Misuse)}


def main() -> None:
    """Serve the worker that started this process; the arguments are two descriptors and the worker's process id."""
    channel_fd, memory_fd, worker = (int(number) for number in sys.argv[1:4])
    del sys.argv[1:]
    _die_with(worker)
    _ignore_signals()
    faulthandler.enable()
    os.set_inheritable(channel_fd, False)  # noqa: FBT003 -- the standard library's own signature
    channel = Channel(channel_fd, from_worker)
    os.register_at_fork(after_in_child=channel.close)  # what a handler forks must not keep the channel open
    end = SharedEnd(memory_fd)
    os.close(memory_fd)
    Child(channel, end).serve()


class Child:
    """Run one job after the other."""

    def __init__(self, channel: Channel[FromWorker], end: SharedEnd) -> None:
        self._channel = channel
        self._end = end
        self._begins: queue.SimpleQueue[Begin | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._busy = False

    def serve(self) -> None:
        """Run jobs until the worker ends the channel."""
        threading.Thread(target=self._listen, name="tenure-listener", daemon=True).start()
        while (begin := self._begins.get()) is not None:
            ending = self._outcome(begin)
            self._busy = False
            self._channel.send(Ended(ending))

    def _listen(self) -> None:
        while (message := self._channel.receive()) is not None:
            if isinstance(message, Begin):
                self._busy = True
                self._begins.put(message)
            else:
                self._answers.put(message)
        if not self._busy:
            self._begins.put(None)
            time.sleep(_LEAVE)
        os.killpg(0, signal.SIGKILL)  # with whatever the handler started

    def _outcome(self, begin: Begin) -> Ending | None:
        claimed = begin.claimed
        requests = Requests(self._channel, self._answers, begin, self._end)
        try:
            app, task = find_task(begin.place, claimed.task or "")
            if begin.address is not None and app.address != begin.address:
                app.use_store(begin.address)
            requests.app = app
            logging.basicConfig()  # to standard error, unless the program that was imported said otherwise
        except BaseException as error:
            token, chance = requests.lease.token, random.random()
            return ended_by(error, token, failures=claimed.attempts, backoff=Backoff(), chance=chance)
        run = _run(claimed, requests, task)
        self._channel.send(Begun())
        try:
            value = run.call()
        except BaseException as error:
            return run.raised(error)
        else:
            return run.returned(value)
        finally:
            requests.lease.lose("the run ended")  # the shared end will be that of the next run's lease


def _run(claimed: Claimed, requests: Requests, task: Task[Any, Any, Any]) -> Run:
    job = Job(claimed, requests.lease, cast("Clients", requests), encode=task.codec.encode_result)
    # Stopping is the worker's part, and it does so by killing this process: here nothing can stop a run.
    return Run(claimed, requests.lease, job, task, cast("Executor", None))


class Requests:
    """What a job asks of the store, asked through its worker; in the place of a client, and of its asynchronous twin.

    One question is under way at a time. An answer that does not come is waited for as long as the lease can be trusted.
    """

    def __init__(
        self, channel: Channel[FromWorker], answers: queue.SimpleQueue[Told], begin: Begin, end: SharedEnd
    ) -> None:
        token = Token(begin.claimed.id, begin.claimed.generation)
        self.lease = SharedLease(token, begin.owner, begin.claimed.lease, end, renew=self.renew)
        self._channel = channel
        self._answers = answers
        self._asking = threading.Lock()
        self._number = 0
        self.app: Program | None = None  # the program's, once it is loaded
        self.events = Emitter()

    def joined(self, connection: object) -> Client:
        """Return a client that works inside the handler's own open transaction, in this process."""
        return self._program().joined(connection)

    def ajoined(self, connection: object) -> AsyncClient:
        """Return an asynchronous client that works inside the handler's own open transaction."""
        return self._program().ajoined(connection)

    def _program(self) -> Program:
        if self.app is None:
            raise Misuse("the program is not loaded yet")
        return self.app

    @property
    def client(self) -> Requests:
        """These requests, blocking."""
        return self

    @property
    def aclient(self) -> AsyncRequests:
        """These requests, for a handler that runs an event loop of its own."""
        return AsyncRequests(self)

    def progress(self, _owner: str, _token: Token, value: str) -> Answer:
        """Store a progress value, as JSON text."""
        return cast("Answer", self._ask(lambda number: Progress(number, value)))

    def recall_step(self, _job: str, step: str) -> str | None:
        """Look up the remembered result of a named effect, as JSON text."""
        return cast("str | None", self._ask(lambda number: Recall(number, step)))

    def record_step(self, _owner: str, _token: Token, step: str, result: str) -> Answer:
        """Remember the result of a named effect, as JSON text."""
        return cast("Answer", self._ask(lambda number: Record(number, step, result)))

    def lift_floor(self, generation: int) -> None:
        """Let claims start above a generation that a destination has met."""
        self._ask(lambda number: Lift(number, generation))

    def renew(self, lease: Lease, duration: float | None) -> None:
        """Let the worker extend the lease, or verify it."""
        self._ask(lambda number: Extend(number, duration))
        lease.renewed(lease.now())

    def _ask(self, question: Callable[[int], Question]) -> Answer | str | None:
        self.lease.remaining()  # refuses a process that the handler forked (R24), which must not touch the lock below
        with self._asking:
            self._number += 1
            self._channel.send(question(self._number))
            told = self._await(self._number)
        if told.error is None:
            return told.value
        kind, words = told.error
        raise self._lost(words) if kind == LeaseLost.__name__ else _ERRORS.get(kind, TenureError)(words)

    def _await(self, number: int) -> Told:
        while True:
            try:
                told = self._answers.get(timeout=self.lease.remaining())
            except queue.Empty:
                reason = self.lease.lost_reason
                if reason is not None:
                    raise self._lost(reason) from None
            else:
                if told.number == number:
                    return told

    def _lost(self, reason: str) -> LeaseLost:
        return LeaseLost(self.lease.token.job, self.lease.generation, reason)


class AsyncRequests:
    """`Requests` without blocking the loop."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def progress(self, owner: str, token: Token, value: str) -> Answer:
        """Store a progress value, as JSON text."""
        return await asyncio.to_thread(self._requests.progress, owner, token, value)

    async def recall_step(self, job: str, step: str) -> str | None:
        """Look up the remembered result of a named effect, as JSON text."""
        return await asyncio.to_thread(self._requests.recall_step, job, step)

    async def record_step(self, owner: str, token: Token, step: str, result: str) -> Answer:
        """Remember the result of a named effect, as JSON text."""
        return await asyncio.to_thread(self._requests.record_step, owner, token, step, result)


def _die_with(worker: int) -> None:
    """Have the kernel kill this process when the thread that started it ends, where the kernel can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker:
        os._exit(1)  # the worker was gone before the kernel was asked


def _ignore_signals() -> None:
    for number in IGNORED:
        # Not SIG_IGN: that would be inherited by the programs that a handler starts.
        signal.signal(number, lambda *_: None)
        signal.siginterrupt(number, False)  # noqa: FBT003 -- the standard library's own signature
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
