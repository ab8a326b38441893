"""The program that the workers of these tests run: what each handler does is written to the journal."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from typing import Any

from tenure import App, Backoff, Cancel, Job, LeaseLost, Retry, Snooze, State
from tenure.clock import boot_clock
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tests.system.crashing import INSIDE, pass_by
from tests.system.destination import Destination
from tests.system.journal import await_go, folder, note

LEASE = 3.0
"""Seconds, where a test lets it lapse: short enough for a quick test, long enough for a machine that stands still."""

STEADY = 60.0
"""Seconds, where no test lets it lapse."""

SOON = Backoff(first=0.1, factor=1.0, jitter=0.0)

app = App()


def destination() -> Destination:
    """Return the destination of the handlers of this site."""
    return Destination(folder())


def _started(job: Job, **fields: Any) -> None:
    note("start", job=job.id, generation=job.generation, attempt=job.attempt, task=job.task, **fields)


def _ended(job: Job, **fields: Any) -> None:
    note("end", job=job.id, generation=job.generation, **fields)


# -- zombies

LATE = {"returns": Verb.COMPLETE, "raises": Verb.FAIL, "snoozes": Verb.SNOOZE, "progresses": Verb.COMPLETE}
"""How a late worker's handler ends, and the verb that it sends to the store by itself before that."""


@app.task(lease=LEASE, backoff=SOON)
def zombie(job: Job, how: str, when: str) -> str:
    """Under the first generation: wait to be frozen and woken, then write everything there is to write."""
    _started(job, how=how, when=when)
    if job.generation == 1:
        await_go("wake")
        return _late(job, how)
    if when == "running":
        await_go("finish")
    _ended(job)
    return f"generation {job.generation}"


def _late(job: Job, how: str) -> str:
    note("woke", job=job.id, cancelled=job.cancelled, effect=_try_effect(job))
    [answer] = app.client.settle(job.lease.owner, [Ending(job.token, LATE[how], result='"late"')])
    note("settled late", job=job.id, verdict=str(answer.verdict))
    renewed = app.client.renew(job.lease.owner, [job.token])
    note("renewed late", job=job.id, verdicts=[str(answer.verdict) for answer in renewed])
    if how == "progresses":
        _try_progress(job)
    if how == "raises":
        raise RuntimeError("late")
    if how == "snoozes":
        raise Snooze(0.0)
    return "late"


def _try_effect(job: Job) -> str:
    try:
        with job.effect():
            return "done"
    except LeaseLost:
        return "refused"


def _try_progress(job: Job) -> None:
    try:
        job.progress("late")
        note("progress late", job=job.id, said="accepted")
    except LeaseLost:
        note("progress late", job=job.id, said="refused")
        raise


# -- healthy and slow


@app.task(lease=LEASE)
async def block_the_loop(job: Job, seconds: float) -> None:
    """Block the event loop, as no async handler should."""
    _started(job)
    time.sleep(seconds)  # noqa: ASYNC251 -- that is the point
    _ended(job)


@app.task(lease=LEASE)
def burn(job: Job, seconds: float) -> None:
    """Keep a processor busy in a thread."""
    _started(job)
    until = boot_clock() + seconds
    number = 0
    while boot_clock() < until:
        number = (number * 31 + 7) % 1_000_003
    _ended(job)


@app.task(lease=LEASE, isolation="process")
def hold_the_interpreter(job: Job, seconds: float) -> None:
    """Keep the interpreter's lock in C code for so long that no other Python thread of the process can run."""
    _started(job)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    _ended(job)


@app.task(lease=LEASE, max_takeovers=None)
def wait_here(job: Job, name: str = "finish") -> str:
    """Wait in a thread until the test says go."""
    _started(job)
    await_go(name)
    _ended(job)
    return f"generation {job.generation}"


@app.task(lease=LEASE, max_takeovers=None)
async def wait_there(job: Job, name: str = "finish") -> str:
    """Wait in the event loop until the test says go."""
    _started(job)
    await asyncio.to_thread(await_go, name)
    _ended(job)
    return f"generation {job.generation}"


@app.task(lease=LEASE)
def quick(job: Job, number: int = 0) -> int:
    """End at once."""
    _started(job, number=number)
    return number


@app.task(lease=LEASE)
async def quick_async(job: Job) -> None:
    """End at once, in the event loop."""
    _started(job)


@app.task(lease=LEASE, isolation="process")
def quick_in_a_process(job: Job) -> None:
    """End at once, in a process."""
    _started(job)


@app.task(lease=LEASE, queue="others")
def elsewhere() -> None:
    """Give a worker of another queue something to be for."""


# -- stopping


@app.task(lease=STEADY)
def take_long(job: Job, seconds: float) -> None:
    """Take long in a thread, and obey when told to stop."""
    _started(job)
    until = boot_clock() + seconds
    while boot_clock() < until:
        job.check()
        time.sleep(0.02)
    _ended(job)


@app.task(lease=STEADY)
async def take_long_async(job: Job, seconds: float) -> None:
    """Take long in the event loop."""
    _started(job)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled", job=job.id)
        raise
    _ended(job)


# -- crashes


@app.task(lease=LEASE, max_attempts=3, max_takeovers=3)
def kill_the_worker(job: Job) -> None:
    """Be poison."""
    _started(job)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(lease=LEASE, max_attempts=3, backoff=SOON, isolation="process")
def kill_the_process(job: Job) -> None:
    """Be poison in a process of one's own."""
    _started(job)
    os.kill(os.getpid(), signal.SIGSEGV)


@app.task(lease=LEASE, max_takeovers=None)
def write_number(job: Job, number: int) -> int:
    """Write a number to the destination, under the token."""
    _started(job, number=number)
    with job.effect():
        destination().write(job.token, number)
    pass_by(INSIDE)
    return number


# -- slots


@app.task(lease=STEADY)
def hold_a_slot(job: Job, seconds: float) -> None:
    """Hold a slot for a while."""
    _started(job)
    time.sleep(seconds)


@app.task(lease=STEADY, timeout=1.0, max_attempts=2, backoff=SOON)
def wait_for_a_child(job: Job) -> str:
    """Enqueue a job, once, and hold the slot until it has ended."""
    _started(job)
    child = job.step("child", _enqueue_a_child)
    while app.client.get(child).state is not State.COMPLETED:
        job.check()
        time.sleep(0.02)
    return child


@app.task(lease=STEADY, max_attempts=1)
def come_back_for_a_child(job: Job) -> str:
    """Enqueue a job, once, and give the slot back until it has ended."""
    _started(job)
    child = job.step("child", _enqueue_a_child)
    if app.client.get(child).state is not State.COMPLETED:
        raise Snooze(0.2)
    return child


def _enqueue_a_child() -> str:
    return quick.enqueue().id


# -- sizes


@app.task(lease=STEADY)
def echo(job: Job, text: str) -> str:
    """Return what came."""
    return text


@app.task(lease=STEADY, max_attempts=1)
def grow(job: Job, size: int, how: str) -> str:
    """Return, or fail with, this many bytes."""
    _started(job)
    if how == "fails":
        raise ValueError("x" * size)
    if how == "cancels":
        raise Cancel("x" * size)
    return "x" * size


@app.task(lease=STEADY, max_attempts=1, isolation="process")
def grow_in_a_process(job: Job, size: int, how: str) -> str:
    """Return, or fail with, this many bytes, in a process."""
    _started(job)
    if how == "fails":
        raise ValueError("x" * size)
    return "x" * size


# -- a crowd


@app.task(lease=30.0)
def count_in(job: Job, number: int) -> int:
    """End at once, after writing to the store now and then; the lease is longer than any lock is held."""
    _started(job, number=number)
    if number % 20 == 0:
        job.progress(number)
    return number


# -- limits: of one second each

FOREVER = 600.0


@app.task(lease=STEADY, timeout=1.0, max_attempts=1)
def loop_for_ever(job: Job) -> None:
    """Never end, in a thread."""
    _started(job)
    while boot_clock() > 0:
        pass


@app.task(lease=STEADY, timeout=1.0, max_attempts=1)
def sleep_for_ever(job: Job) -> None:
    """Never return from a system call, in a thread."""
    _started(job)
    time.sleep(FOREVER)


@app.task(lease=STEADY, timeout=1.0, max_attempts=1)
async def swallow_the_cancellation(job: Job) -> None:
    """Go on when cancelled."""
    _started(job)
    until = boot_clock() + FOREVER
    while boot_clock() < until:
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            note("swallowed", job=job.id)


@app.task(lease=STEADY, timeout=1.0, max_attempts=1, isolation="process")
def loop_in_a_process(job: Job) -> None:
    """Never end, in a process that ignores SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _started(job)
    while boot_clock() > 0:
        pass


# -- ends


@app.task(lease=STEADY)
def return_the_unspeakable(job: Job) -> Any:
    """Return what JSON cannot carry, after an effect."""
    _started(job)
    return float("nan")


@app.task(lease=STEADY, max_attempts=2, backoff=SOON)
def leave(job: Job) -> None:
    """Try to end the worker's process."""
    _started(job)
    raise SystemExit(3)


@app.task(lease=STEADY, max_attempts=2, backoff=SOON)
async def leave_async(job: Job) -> None:
    """Try to end the worker's process from the event loop."""
    _started(job)
    raise SystemExit(3)


@app.task(lease=STEADY, secret=("password",), max_attempts=2)
def tell_secrets(job: Job, password: str, nested: dict[str, list[str]], how: str) -> str:
    """Have secrets in an argument, in a local variable, in an error and in a result."""
    _started(job)
    local = f"{password} {nested}"
    if how == "fails":
        raise ValueError(local)
    if how == "is retried" and job.attempt == 1:
        raise Retry(0.0)
    return local
