"""The executor for handlers with ``isolation="process"``: a child process a slot, killed when its run must stop.

A killed process is the only sure stop there is: for an endless loop, for a system call that does not return, for a C
library that holds the interpreter's lock (R23). What it had sent before is not called back: for that there are fences.
The lease stays with the worker, whose keeper renews it whatever the child does (B06).

How a run ends whose process ends:

- killed here, because of a lost lease, a time limit or a shutdown: as the request to stop says (`Run.obeyed`);
- by itself (a crash, `os._exit`, the kernel for want of memory): as a failed attempt with the failure ``ProcessDied``,
  which names the signal or the exit status. The worker is alive and holds the lease, so there is nothing to wait for,
  and `max_attempts` bounds what a poison job can do (B13). `max_takeovers` counts lost workers, and none was lost.

A child serves one run after the other and is replaced when it is gone. Children are spawned, never forked (B22): each
imports the modules of its tasks by name. What its `Job` asks for goes through the worker; what a handler does with its
`App` besides (enqueue, own a name) goes to the worker's store by connections of its own.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence

from tenure.loading import refuse_while_loading
from tenure.worker.place import place_of
from tenure.worker.program import Program
from tenure.worker.run import Finished, Run
from tenure.worker.slot import Slot
from tenure.worker.spawn import Spawned, Spawner

_SPARE = 4  # how many processes per slot may defy being killed before the executor stops replacing them
_START = 30.0  # seconds that a process may take to start and load the program; the time limit counts after that
_REAP = 5.0  # seconds that closing waits for processes that were killed


class ProcessExecutor:
    """Run plain handlers in child processes, up to `slots` at a time; stopping one kills it.

    Raises BadSettings for a task that a child process could not find, and Misuse in a child that is importing the
    program.
    """

    kind = "process"

    def __init__(self, slots: int, app: Program) -> None:
        refuse_while_loading("starts a worker")
        self.slots = slots
        self._app = app
        self._places = {task.name: place_of(task) for task in app.tasks.values() if task.isolation == "process"}
        self._queue: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._processes: dict[Run, Spawned | None] = {}  # of the runs that occupy a slot; None: not begun
        self._threads: set[threading.Thread] = set()
        self._abandoned = 0  # how many of the threads wait for a process that was given up on

    def open(self, finished: Finished) -> None:
        """Get ready; processes start when they are needed."""
        self._finished = finished
        self._spawner = Spawner()

    def start(self, runs: Sequence[Run]) -> None:
        """Queue these runs for the slots, taking more of them into use up to the limit."""
        for run in runs:
            run.begins(spare=_START)
        with self._lock:
            self._processes.update((run, None) for run in runs)
            missing = min(len(self._processes), self.slots) - (len(self._threads) - self._abandoned)
            fresh = [self._new_thread() for _ in range(missing)]
            self._threads.update(fresh)
        for thread in fresh:
            thread.start()
        for run in runs:
            self._queue.put(run)

    def stop(self, run: Run) -> None:
        """Kill the process of a run; the run is reported once the process is gone."""
        with self._lock:
            process = self._processes.get(run)
            if process is not None:
                process.kill()

    def abandon(self, run: Run) -> bool:
        """Free the slot of a process that was killed and is not gone, as in a system call that nothing interrupts."""
        with self._lock:
            if run not in self._processes or self._abandoned >= self.slots * _SPARE:
                return False
            process = self._processes.pop(run)
            self._abandoned += 1
            if process is not None:
                process.kill()
            return True

    def close(self) -> None:
        """Kill the processes that run something, end the others, and reap them all."""
        with self._lock:
            threads = list(self._threads)
            for process in self._processes.values():
                if process is not None:
                    process.kill()
        for _ in threads:
            self._queue.put(None)
        until = time.monotonic() + _REAP
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._spawner.close()

    def _new_thread(self) -> threading.Thread:
        slot = Slot(self._app, self._places, self._spawner.spawn, self._occupy)
        return threading.Thread(target=self._main, args=(slot,), name="tenure-process", daemon=True)

    def _main(self, slot: Slot) -> None:
        while (run := self._queue.get()) is not None:
            ending = slot.outcome(run)
            if not self._vacate(run):
                break  # this thread was given up on; its slot belongs to another
            self._finished(run, ending)
        slot.retire()

    def _occupy(self, run: Run, process: Spawned) -> bool:
        with self._lock:
            if run.stop is not None or run not in self._processes:
                return False
            self._processes[run] = process
            return True

    def _vacate(self, run: Run) -> bool:
        with self._lock:
            if run in self._processes:
                del self._processes[run]
                return True
            self._abandoned -= 1
            self._threads.discard(threading.current_thread())
            return False
