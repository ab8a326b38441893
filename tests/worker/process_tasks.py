"""Tasks that run in child processes: each does to its process what a test wants to see survived."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tenure import App, Backoff, Job, LeaseLost, Misuse, Retry, Snooze
from tenure.worker import child

# Without a store: what a job asks for goes through its worker.
app = App()
LATER = Backoff(first=3600.0)  # so that the first attempt is seen, however late the test looks


@app.task(isolation="process")
def add(a: int, b: int) -> int:
    return a + b


@app.task(isolation="process")
def pid() -> int:
    return os.getpid()


@app.task(isolation="process")
def last_words(file: str) -> None:
    child._LEAVE = 60.0  # the machine may be busy
    atexit.register(Path(file).write_text, "closed in order")


@app.task(isolation="process", backoff=LATER)
def fail(message: str) -> None:
    raise ValueError(message)


@app.task(isolation="process")
def leave() -> None:
    sys.exit("handlers may not end the process")


@app.task(isolation="process")
def retry() -> None:
    raise Retry(after=3600, reason="not today")


@app.task(isolation="process")
def snooze() -> None:
    raise Snooze(3600, reason="too early")


@app.task(isolation="process")
def unstorable() -> Any:
    return object()


@app.task(isolation="process")
def terminate() -> int:
    """Ask a program of its own to end."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    child.terminate()
    return child.wait()


@app.task(isolation="process", lease=30)
def describe(job: Job) -> dict[str, Any]:
    before = job.lease.remaining()
    job.lease.extend(600)
    job.check()
    with job.effect(1.0) as token:
        job.progress({"token": str(token)})
    return {
        "id": job.id,
        "generation": job.generation,
        "attempt": job.attempt,
        "queue": job.queue,
        "task": job.task,
        "cancelled": job.cancelled,
        "before": before,
        "after": job.lease.remaining(),
    }


@app.task(isolation="process")
def once(job: Job, file: str) -> str:
    def effect() -> str:
        with Path(file).open("a") as lines:
            lines.write("done\n")
        return "paid"

    async def twin() -> str:
        await job.progress_async("half")
        return await job.step_async("pay", unexpected)

    async def unexpected() -> str:
        return "not remembered"

    return job.step("pay", effect) + asyncio.run(twin())


@app.task(isolation="process")
def outlive(job: Job, file: str) -> None:
    """Go on after the job was taken away, as a handler does that does not listen."""
    Path(file).write_text("running")
    while Path(file).read_text() != "go":
        time.sleep(0.01)
    with suppress(LeaseLost):
        job.progress("late")
    time.sleep(60)


@app.task(isolation="process")
def loop() -> None:
    while True:
        pass


@app.task(isolation="process", timeout=0.5, max_attempts=1)
def endless() -> None:
    while True:
        pass


@app.task(isolation="process", timeout=0.5, max_attempts=1)
def asleep() -> None:
    ctypes.PyDLL(None).sleep(60)


@app.task(isolation="process")
def parent_of(file: str) -> None:
    """Wait for a program of its own, which ignores SIGTERM."""
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", program])
    Path(file).write_text(str(child.pid))
    child.wait()


@app.task(isolation="process", lease=30)
def greedy(file: str, pipe: str) -> str:
    """Hold the interpreter's lock, in C, until something comes through the pipe."""
    with Path(file).open("a") as lines:
        lines.write("run\n")
    reading = os.open(pipe, os.O_RDONLY)
    ctypes.PyDLL(None).read(reading, ctypes.create_string_buffer(1), 1)
    return "woke up"


@app.task(isolation="process", max_attempts=2)
def die(how: str) -> None:
    match how:
        case "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)


@app.task(isolation="process")
def fork(job: Job) -> str:
    """Let a forked process act as the owner."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            job.progress("from a fork")
        except Misuse as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    return os.read(reading, 1000).decode()


@app.task(isolation="process", backoff=LATER)
def leaves_a_fork_behind(file: str) -> None:
    """Die while a forked process, which has copies of all descriptors, lives on in a group of its own."""
    if (child := os.fork()) == 0:
        os.setsid()
        time.sleep(60)
    Path(file).write_text(str(child))
    os._exit(4)
