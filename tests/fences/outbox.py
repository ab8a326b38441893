"""Senders and producers in processes of their own, each of which dies, or stands still, at one chosen point.

``python -m tests.fences.outbox CELL…`` forks a worker for each cell. It serves the queue of that name and kills itself
at the cell's point; a frozen one waits there instead. ``python -m tests.fences.outbox rescue CELL…`` serves all those
queues, and that of the producers' messages, in one worker that nothing happens to.

A cell is "CHOICE, POINT". What is sent is a line in the journal: the outside world, which remembers everything.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from tenure import App, Job, Task
from tenure.client import Client
from tenure.fences import outbox
from tests.system.journal import await_go, note

LEASE = 3.0
MESSAGES = "messages"
RESCUE = "rescue"

app = App()
point = ""
cell = ""


def reach(here: str) -> None:
    """Die if this is the point."""
    if here != point:
        return
    note("reached", cell=cell)
    os.kill(os.getpid(), signal.SIGKILL)


def deliver(key: str) -> None:
    """Send: a line that nobody can take back."""
    reach("before the send")
    if point == "frozen before the send":
        note("reached", cell=cell)
        await_go(cell)
    note("mail", key=key)
    reach("after the send")


@outbox.sender(app, deliver="at-most-once", lease=LEASE)
def once_at_most(job: Job) -> None:
    deliver(job.id)


@outbox.sender(app, deliver="at-most-once", lease=LEASE)
async def once_at_most_async(job: Job) -> None:
    deliver(job.id)


@outbox.sender(app, deliver="at-least-once", lease=LEASE)
def once_at_least(job: Job) -> None:
    deliver(job.id)


@outbox.sender(app, deliver="at-least-once", lease=LEASE)
async def once_at_least_async(job: Job) -> None:
    deliver(job.id)


@outbox.sender(app, deliver="at-most-once", lease=LEASE, queue=MESSAGES, isolation="process")
def apart() -> None:
    """Send from a process of one's own."""
    note("mail", key="apart")


@app.task(lease=LEASE)
def plain(job: Job) -> None:
    """Send in the handler, as a program without an outbox does."""
    deliver(job.id)


@app.task(lease=LEASE)
def produce(job: Job) -> None:
    """Store a message in a transaction, and finish afterwards."""
    note("produce", job=job.id)
    with transaction() as connection:
        job.guard(connection)
        outbox.send(connection, job.idempotency_key("receipt"), once_at_most.options(queue=MESSAGES))
        reach("before the commit")
    reach("after the commit")


@app.task(lease=LEASE)
def produce_and_finish(job: Job) -> None:
    """Store a message in the transaction that finishes the job."""
    note("produce", job=job.id)
    with transaction() as connection:
        outbox.send(connection, job.idempotency_key("receipt"), once_at_most.options(queue=MESSAGES))
        job.complete(connection)
        reach("before the commit")
    reach("after the commit")


@app.task(lease=LEASE)
def produce_plainly(job: Job) -> None:
    """Send the message in the handler of the producer."""
    note("produce", job=job.id)
    note("mail", key=job.idempotency_key("receipt"))
    reach("after the commit")


@contextmanager
def transaction() -> Iterator[Any]:
    """Open a transaction of the program's own in the store's database."""
    address = os.environ["TENURE_STORE"]
    if address.startswith("sqlite"):
        with closing(sqlite3.connect(address.removeprefix("sqlite:///"), isolation_level=None, timeout=30)) as file:
            file.execute("BEGIN IMMEDIATE")
            yield file
            file.execute("COMMIT")
    else:
        with psycopg.connect(address) as connection:
            yield connection


TASKS: dict[str, Task[..., ..., Any]] = {
    "at-most-once": once_at_most,
    "at-most-once, async": once_at_most_async,
    "at-least-once": once_at_least,
    "at-least-once, async": once_at_least_async,
    "plain": plain,
    "produce": produce,
    "produce and finish": produce_and_finish,
    "produce plainly": produce_plainly,
}


def die_around_the_mark() -> None:
    """Let the point lie before or after the request that remembers a step."""
    real = Client.record_step

    def record_step(self: Client, *args: Any) -> Any:
        reach("before the mark")
        answer = real(self, *args)
        reach("after the mark")
        return answer

    Client.record_step = record_step  # type: ignore[method-assign, assignment]  # for this process only


def work(queues: tuple[str, ...]) -> None:
    app.worker(name=queues[0], queues=queues, threads=4, processes=1, grace=0.0).run()


def main(cells: list[str]) -> None:
    """Fork the workers and wait for their ends."""
    global cell, point  # noqa: PLW0603 -- each process has one
    if cells[0] == RESCUE:
        work((MESSAGES, *cells[1:]))
        return
    for each in cells:
        if os.fork() == 0:
            cell = each
            point = each.rpartition(", ")[2]
            die_around_the_mark()
            work((each,))
            os._exit(0)
    for _ in cells:
        os.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
