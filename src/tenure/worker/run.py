"""`Run`: one claimed job on its way through this worker, from claim to settled end; and what an executor can do."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from tenure.errors import BadArguments, BadResult, LeaseLost
from tenure.hold import Lease
from tenure.protocol.ending import completed, ended_by, name_of, pause_after, unfit
from tenure.protocol.job import Claimed, Ending, Failure
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.retry import Backoff
from tenure.worker.context import Job
from tenure.worker.fencing import announced, announced_async

if TYPE_CHECKING:
    from tenure.task import Task


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run must stop, and what becomes of its job when it does.

    `verb` FAIL spends an attempt (the time limit), RELEASE gives the job back unspent (shutdown), None settles nothing:
    the lease is gone, and whatever this run still writes is refused.
    """

    reason: str
    verb: Verb | None


class Run:
    """One run. Its end is said once: the first of handler, time limit and loss decides, the others come too late."""

    __slots__ = (
        "_ended",
        "_lock",
        "begun_at",
        "claimed",
        "deadline",
        "executor",
        "handle",
        "job",
        "lease",
        "stop",
        "stopped_at",
        "task",
        "warned",
    )

    def __init__(
        self,
        claimed: Claimed,
        lease: Lease,
        job: Job,
        task: Task[Any, Any, Any],
        executor: Executor,
    ) -> None:
        self.claimed = claimed
        self.lease = lease
        self.job = job
        self.task = task
        self.executor = executor
        self.begun_at = 0.0
        self.deadline: float | None = None
        self.stop: Stop | None = None
        self.warned = False  # that its lease ends soon
        self.stopped_at: float | None = None
        self.handle: Any = None  # whatever its executor needs to stop it
        self._ended = False
        self._lock = threading.Lock()

    def begins(self, spare: float = 0.0) -> None:
        """Count the time limit from now, plus `spare` seconds for what must happen before the handler is called."""
        self.begun_at = self.lease.now()
        if self.claimed.timeout is not None:
            self.deadline = self.begun_at + self.claimed.timeout + spare

    def end(self) -> bool:
        """Take the right to say how this run ended; False when it has been said."""
        with self._lock:
            if self._ended:
                return False
            self._ended = True
            return True

    @property
    def ended(self) -> bool:
        """Whether it has been said how this run ended."""
        return self._ended

    def call(self) -> Any:
        """Call the handler with its decoded arguments, after the task's fences were raised (R32).

        For an async handler this makes the coroutine.
        """
        try:
            args, kwargs = self.task.codec.spread(self.task.codec.decode(self.claimed.arguments))
        except BadArguments as error:
            raise _Unfit(error) from error
        if self.task.takes_job:
            args = (self.job, *args)
        if not self.task.fences:
            return self.task.function(*args, **kwargs)
        call = partial(self.task.function, *args, **kwargs)
        return (
            announced_async(self.job, self.task.fences, call)
            if self.task.is_async
            else announced(self.job, self.task.fences, call)
        )

    def returned(self, value: Any) -> Ending | None:
        """Describe the end of a handler that returned `value`; a value that cannot be stored ends the job (B25)."""
        if self.job.completes:
            return self.raised(NotCommitted("the transaction that was to complete this job did not commit"))
        try:
            return completed(self.lease.token, self.task.codec.encode_result(value))
        except BadResult as error:
            return unfit(error, self.lease.token)
        except BaseException as error:
            return self.raised(error)

    def raised(self, error: BaseException) -> Ending | None:
        """Describe the end of a handler that raised; one that obeyed a request to stop ends as the request says."""
        try:
            return self._described(error)
        except BaseException as broken:  # without an end, the slot and the lease were held for ever
            told = f"the error cannot be described ({name_of(type(broken))})"
            failure, pause = Failure(name_of(type(error)), "", told), pause_after(1, Backoff(), 0.0)
            return Ending(self.lease.token, Verb.FAIL, delay=pause, failure=failure, confirms=self.job.completes)

    def _described(self, error: BaseException) -> Ending | None:
        # By its type: an error can have a `__class__` of its own, which `isinstance` would look at.
        if issubclass(type(error), LeaseLost) and (self.stop is not None or self.lease.lost):
            return self.obeyed()
        if type(error) is _Unfit:
            return unfit(error.error, self.lease.token)
        ending = ended_by(error, self.lease.token, **self._failing())
        return replace(ending, confirms=True) if self.job.completes else ending

    def obeyed(self) -> Ending | None:
        """Describe the end of a handler that was stopped."""
        stop = self.stop
        if stop is None or stop.verb is None:
            return None
        token = self.lease.token
        if stop.verb is Verb.RELEASE:
            return Ending(token, Verb.RELEASE, reason=stop.reason)
        failure = Failure("TimeLimit", "", stop.reason)
        failing = self._failing()
        delay = pause_after(failing["failures"] + 1, failing["backoff"], failing["chance"])
        return Ending(token, stop.verb, delay=delay, reason=stop.reason, failure=failure)

    def _failing(self) -> dict[str, Any]:
        return {
            "failures": self.claimed.attempts,
            "backoff": self.task.backoff,
            "chance": random.random(),
        }


class NotCommitted(Exception):
    """The handler returned after `Job.complete`, and the job is not completed."""


class _Unfit(Exception):
    """The stored arguments do not fit the running code; unlike a BadArguments that a handler itself ran into."""

    def __init__(self, error: BadArguments) -> None:
        self.error = error
        super().__init__(str(error))


class Runs:
    """The runs of this worker that are not settled yet, by token; shared by all its threads.

    By token, since a worker can take over its own job while the handler of its lost run has not stopped yet.
    """

    def __init__(self) -> None:
        self._runs: dict[Token, Run] = {}
        self._left: set[Token] = set()
        self._lock = threading.Lock()

    def add(self, runs: Iterable[Run]) -> None:
        """Know these runs from now on."""
        with self._lock:
            for run in runs:
                self._runs[run.lease.token] = run

    def discard(self, *runs: Run) -> None:
        """Forget these runs."""
        with self._lock:
            for run in runs:
                self._runs.pop(run.lease.token, None)

    def leave(self, run: Run) -> None:
        """Forget a run that nothing settles: its lease runs out, while its handler may go on."""
        with self._lock:
            self._runs.pop(run.lease.token, None)
            self._left.add(run.lease.token)

    def never_had(self, held: Sequence[Token]) -> list[Token]:
        """Return which of all the tokens that the store says are this worker's have never been a run here."""
        with self._lock:
            self._left.intersection_update(held)
            return [token for token in held if token not in self._runs and token not in self._left]

    def get(self, token: Token) -> Run | None:
        """Find the run under a token."""
        return self._runs.get(token)

    def all(self) -> list[Run]:
        """List every run."""
        with self._lock:
            return list(self._runs.values())

    def __len__(self) -> int:
        """Count the runs."""
        return len(self._runs)


Finished = Callable[[Run, Ending | None], None]
"""How an executor reports a run's end, from any thread; None when nothing is to be settled."""


class Executor(Protocol):
    """Runs handlers of one kind. It can start, stop and report; nothing else."""

    kind: str
    slots: int

    def open(self, finished: Finished) -> None:
        """Get ready; `finished` is to be called once for every run started that ends."""
        ...

    def start(self, runs: Sequence[Run]) -> None:
        """Start these runs; never more than `slots` at a time."""
        ...

    def stop(self, run: Run) -> None:
        """Stop a run (`run.stop` says why) as well as this kind can: cancel it, tell it, or kill it."""
        ...

    def abandon(self, run: Run) -> bool:
        """Give up on a run that would not stop, and free its slot; False when this kind cannot spare another one."""
        ...

    def close(self) -> None:
        """End the executor; runs that would not stop are left behind."""
        ...
