"""`Slot`: one process after the other, never two at a time, and the conversation with it while it runs a job."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

from tenure.errors import LeaseLost, TenureError
from tenure.hold import lost_reason
from tenure.protocol.job import Answer, Ending, Verdict
from tenure.worker.channel import Begin, Begun, Ended, Extend, Lift, Place, Progress, Question, Recall, Record, Told
from tenure.worker.program import Program
from tenure.worker.run import Run
from tenure.worker.spawn import Spawned


class ProcessDied(Exception):
    """The process that ran a job ended by itself; seen only as the failure of the attempt."""


class Slot:
    """Run one job at a time in a process that `spawn` starts and that later jobs use again; for one thread.

    `occupy` is asked before a run begins in a process; False means that it is not to begin any more.
    """

    def __init__(
        self,
        app: Program,
        places: Mapping[str, Place],
        spawn: Callable[[], Spawned],
        occupy: Callable[[Run, Spawned], bool],
    ) -> None:
        self._app = app
        self._places = places
        self._spawn = spawn
        self._occupy = occupy
        self._process: Spawned | None = None

    def outcome(self, run: Run) -> Ending | None:
        """Run a job and describe its end."""
        try:
            process = self._ready()
            return self._converse(process, run) if self._occupy(run, process) else run.obeyed()
        except Exception as error:  # an attempt must not end this thread: there may be no room for a process
            self._drop()
            return run.raised(error)

    def retire(self) -> None:
        """End the idle process."""
        if self._process is not None:
            self._process.retire()

    def _ready(self) -> Spawned:
        """Return a living process: what an earlier handler left running in one may have ended it since."""
        if self._process is not None and not self._process.idle():
            self._drop()
        if self._process is None:
            self._process = self._spawn()
        return self._process

    def _drop(self) -> int:
        process, self._process = self._process, None
        return 0 if process is None else process.reap()

    def _converse(self, process: Spawned, run: Run) -> Ending | None:
        begun = False
        run.lease.observe(process.end.put)
        try:
            process.send(Begin(self._places[run.task.name], run.claimed, run.lease.owner, self._app.address))
            while (message := process.receive()) is not None:
                if isinstance(message, Ended):
                    process.served = True
                    return message.ending
                if isinstance(message, Begun):
                    begun = True
                    run.begins()
                    continue
                process.send(self._answer(run, message))
        finally:
            run.lease.observe(None)
        status = self._drop()
        if run.stop is not None:
            return run.obeyed()
        if process.served and not begun:
            return self.outcome(run)  # what had ended it was nothing of this run, whose handler was not called
        return run.raised(ProcessDied(_death(status)))

    def _answer(self, run: Run, question: Question) -> Told:
        try:
            return self._ask(run, question)
        except LeaseLost as error:
            return Told(question.number, error=(type(error).__name__, error.reason))
        except TenureError as error:
            return Told(question.number, error=(type(error).__name__, str(error)))

    def _ask(self, run: Run, question: Question) -> Told:
        client, lease, number = self._app.client, run.lease, question.number
        match question:
            case Recall():
                return Told(number, value=client.recall_step(run.claimed.id, question.step))
            case Progress():
                return _told(run, number, client.progress(lease.owner, lease.token, question.value))
            case Record():
                answer = client.record_step(lease.owner, lease.token, question.step, question.result)
                return _told(run, number, answer)
            case Lift():
                client.lift_floor(question.generation)
            case Extend(duration=float(seconds)):
                lease.extend(seconds)
            case Extend():
                lease.check()
        return Told(number)


def _told(run: Run, number: int, answer: Answer) -> Told:
    if answer.verdict is Verdict.STALE:
        run.lease.lose(lost_reason(answer))
    return Told(number, value=answer)


def _death(status: int) -> str:
    if status >= 0:
        return f"its process ended by itself with exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    hint = ", perhaps by the kernel for want of memory" if -status == signal.SIGKILL else ""
    return f"its process was killed by {name}{hint}"
