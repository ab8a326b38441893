"""A program that forks its servers after it has used its store, as ``python -m tests.system.forking CHILDREN JOBS``.

Each child enqueues half of its jobs while the parent is at work too, and the other half after the parent has closed.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings

from tenure import Misuse, TenureError
from tests.system.apps import app, quick


def serve(name: str, jobs: int, parent_closed: int) -> None:
    """Enqueue, wait for the parent to close, enqueue again."""
    for number in range(jobs):
        if number == jobs // 2:
            os.read(parent_closed, 1)
        quick.options(id=f"{name}-{number}").enqueue(number)


def main(children: int, jobs: int) -> None:
    """Fork while a thread enqueues and a lease is held."""
    quick.options(id="before").enqueue(0)
    closed, close = os.pipe()
    stop = threading.Event()
    done: list[int] = []

    def keep_enqueueing() -> None:
        while not stop.is_set():
            quick.options(id=f"parent-{len(done)}").enqueue(0)
            done.append(0)

    thread = threading.Thread(target=keep_enqueueing)
    thread.start()
    pids = []
    with app.lease("mine", duration=30.0) as lease:
        for child in range(children):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    serve(f"child-{child}", jobs, closed)
                    try:
                        lease.check()
                    except Misuse:
                        status = 0
                except TenureError:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            pids.append(pid)
        lease.check()
    stop.set()
    thread.join()
    app.close()
    os.write(close, b"x" * children)
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
    sys.stdout.write(f"{len(done)} {len(failed)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
