"""A worker without its threads: the parts are those of a real one, turned by hand in the thread of the test.

It claims, keeps, watches, settles and loses as a worker does, because the feeder, the keeper, the warden and the run
are a worker's. What is different is told here, and is little: one run at a time, which is performed where the test
stands; nothing claimed ahead; and no beat or look but those that the kit asks for as it moves the clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tenure.app import App
from tenure.clock import Clock
from tenure.hold import Lease
from tenure.protocol.job import Answer, Claimed, Ending, Failure, Verdict
from tenure.protocol.lease import LONGEST, Token, beat_interval
from tenure.protocol.lifecycle import Verb
from tenure.worker.context import Job
from tenure.worker.lane import Lane
from tenure.worker.run import Finished, Run
from tenure.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class Ran:
    """One run that a drain performed.

    `verb` says how it ended, None when it had lost its lease and nothing to say. `stored` tells whether the store took
    that; it refuses the end of a run that was taken over. `error` is what the handler raised, `failure` what the store
    keeps of it.
    """

    job: str
    task: str
    generation: int
    verb: Verb | None
    stored: bool
    error: BaseException | None = None
    failure: Failure | None = None


class KitLease(Lease):
    """A lease that tells when its gate was passed."""

    __slots__ = ("_passed",)

    def __init__(self, *args: Any, passed: Callable[[Token], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._passed = passed

    def check(self) -> None:
        """Raise LeaseLost unless the lease can be trusted now."""
        super().check()
        self._passed(self.token)


class HandExecutor:
    """One slot, whose run waits until it is performed by whoever turns the worker."""

    kind = "hand"
    slots = 1

    def __init__(self) -> None:
        self.waiting: deque[Run] = deque()

    def open(self, finished: Finished) -> None:
        """Get ready."""
        self.finished = finished

    def start(self, runs: Sequence[Run]) -> None:
        """Let these runs wait."""
        self.waiting.extend(runs)

    def stop(self, run: Run) -> None:
        """Cancel an async handler at its next await; a plain one has been told."""
        if isinstance(run.handle, asyncio.Task):
            run.handle.cancel()

    def abandon(self, run: Run) -> bool:  # noqa: ARG002 -- whatever the handler does, the test stands in it
        """Leave a handler to itself."""
        return True

    def close(self) -> None:
        """Nothing is left to end."""


class KitWorker(Worker):
    """A worker that does one thing at a time, when it is told to."""

    def __init__(self, app: App, *, clock: Clock, name: str, passed: Callable[[Token], None]) -> None:
        super().__init__(app, clock=clock, name=name)
        self.ran: list[Ran] = []
        self._passed = passed
        self._hands = HandExecutor()
        self._errors: dict[Token, BaseException] = {}

    def start(self) -> None:
        """Put the parts together; none of their threads is started."""
        self._started = True
        self._make_keeping()
        self._make_feeding()
        for lane in self._lanes:
            lane.prefetch.open(self._feeder.finished)

    def close(self) -> None:
        """Give the connections back; what is held stays held until its lease ends, as when a worker dies."""
        self._hang_up()

    # -- what the kit turns

    def runs(self, queues: Callable[[], tuple[str, ...]]) -> Iterator[Run]:
        """Yield each run that is due; the caller performs it before asking for the next, which settles it first."""
        while True:
            for lane in self._lanes:
                lane.queues = queues()
            self.keep()
            self._feeder.ring()
            self._feeder.round()
            if not self._hands.waiting:
                return
            yield self._hands.waiting.popleft()

    def perform(self, run: Run) -> None:
        """Call the handler here, and note its end for the next turn."""
        try:
            value = _finish(_handled(run)) if run.task.is_async else run.call()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 -- whatever a handler raises is how its run ended
            self._raised(run, error)
        else:
            self._note(run, run.returned(value))

    async def perform_async(self, run: Run) -> None:
        """Call the handler on the loop of the test; the twin of `perform`."""
        if not run.task.is_async:
            self.perform(run)
            return
        handler = asyncio.ensure_future(_handled(run))
        try:
            value = await handler
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if _is_cancelled(asyncio.current_task()):
                raise  # the test itself is to end
            self._raised(run, error)
        else:
            self._note(run, run.returned(value))

    def keep(self) -> None:
        """Beat once and look once, as the keeper and the warden do when time has passed."""
        self._keeper.beat()
        self._warden.look()

    def beat_interval(self) -> float:
        """Tell the seconds from one beat to the next for what is held now."""
        return beat_interval(min((lease.duration for lease in self._keeper.held()), default=LONGEST))

    # -- how a run comes and goes

    def _make_lanes(self) -> list[Lane]:
        """Serve every task from one slot, so that jobs run one by one in the order of their claims."""
        return [Lane(self._prefetch(self._hands, 0), self.app.tasks, self.queues)]

    def _make_run(self, lane: Lane, row: Claimed, sent_at: float) -> Run:
        run = super()._make_run(lane, row, sent_at)
        lease = KitLease(
            run.lease.token,
            self.claimer.owner,
            row.lease,
            sent_at,
            renew=self._renew,
            clock=self._clock,
            wall=self._clock,
            passed=self._passed,
        )
        run.lease = lease
        run.job = Job(row, lease, self.app, encode=run.task.codec.encode_result)
        return run

    def _raised(self, run: Run, error: BaseException) -> None:
        self._errors[run.lease.token] = error
        cancelled = isinstance(error, asyncio.CancelledError) and run.stop is not None
        self._note(run, run.obeyed() if cancelled else run.raised(error))

    def _note(self, run: Run, ending: Ending | None) -> None:
        if ending is None or run.ended:
            self._add(run, None, stored=False)
        self._hands.finished(run, ending)

    def _settled(self, run: Run, ending: Ending, answer: Answer) -> None:
        super()._settled(run, ending, answer)
        if ending.confirms and answer.verdict is Verdict.ALREADY:
            self._add(run, Ending(ending.token, Verb.COMPLETE), stored=True)
        else:
            self._add(run, ending, stored=answer.verdict is not Verdict.STALE)

    def _add(self, run: Run, ending: Ending | None, *, stored: bool) -> None:
        token = run.lease.token
        verb, failure = (None, None) if ending is None else (ending.verb, ending.failure)
        error = self._errors.pop(token, None)
        self.ran.append(Ran(token.job, run.task.name, token.generation, verb, stored, error, failure))


async def _handled(run: Run) -> Any:
    run.handle = asyncio.current_task()
    return await run.call()


def _is_cancelled(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and task.cancelling() > 0


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end, in a loop of its own; beside a loop that runs here already, if there is one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(asyncio.run, coroutine).result()
