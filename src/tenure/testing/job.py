"""`FakeJob`: a run for the unit test of a handler, real in all but its worker.

    job = FakeJob()
    assert charge(job, order=7, cents=1200) == "order 7: 1200 cents"
    assert job.steps == {"charge": "receipt"}

The job is stored, claimed and owned in a memory store, and everything that a handler can do with a `Job` is done there.
Time stands still until `advance`, so the lease never ends by itself; `lose` takes it away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tenure.app import App
from tenure.clock import Clock, boot_clock
from tenure.errors import Misuse
from tenure.hold import Lease, renewing
from tenure.ids import new_owner
from tenure.protocol.codec import decode_any
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, JobRecord, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op
from tenure.store.address import open_store
from tenure.store.contract import Store, Verbs
from tenure.store.memory import MemoryStore
from tenure.task import Task
from tenure.worker.context import Job


class FakeJob(Job):
    """One run of one job, claimed for a test.

    `task` gives it the name and the options of a task; `options` are those of one enqueue, such as ``lease=5``. Without
    `generation` the job is new, and every failed attempt before `attempt` has had a generation of its own. `store` is
    an address or an open store, for a handler that works inside the transactions of the store's own database (`guard`,
    `complete`); time goes on there.
    """

    def __init__(
        self,
        task: Task[..., ..., Any] | None = None,
        *,
        id: str = "job-1",  # noqa: A002 -- the word of Job and of Options
        generation: int | None = None,
        attempt: int = 1,
        store: str | Store | None = None,
        **options: Any,
    ) -> None:
        stage = _Stage(store)
        said = (task or stage.task).options(**options, id=id)
        stage.enqueue(said, attempt, generation)
        self._begin(stage, said)

    def _begin(self, stage: _Stage, task: Task[..., ..., Any]) -> None:
        claimed, lease = stage.claim(task)
        super().__init__(claimed, lease, stage.app, encode=task.codec.encode_result)
        self._stage = stage
        self._of = task

    @property
    def app(self) -> App:
        """An app over the store of this run, to look at it or to act as an operator would."""
        return self._stage.app

    @property
    def record(self) -> JobRecord:
        """What the store knows of the job."""
        return self.app.client.get(self.id)

    @property
    def progress_values(self) -> list[Any]:
        """Every progress value that was stored, in order; earlier runs' included."""
        return [decode_any(text, "progress") for text in self._stage.verbs.said]

    @property
    def steps(self) -> dict[str, Any]:
        """The results of the steps that were done, by name; earlier runs' included."""
        return {name: decode_any(text, f"step {name}") for name, text in self._stage.verbs.done.items()}

    def lose(self, reason: str = "another worker took over") -> None:
        """Take the job away from this run, in the store, and tell it so, as a worker does when it learns of a loss."""
        self.app.client.release([self.id], reason)
        self.lease.lose(reason)

    def advance(self, seconds: float) -> None:
        """Let time pass, for the store and for this run; past the end of the lease, `check` and `effect` refuse."""
        self._stage.advance(seconds)

    def next_run(self) -> FakeJob:
        """Claim the job anew, under a higher generation; if this run owns it, time passes until its lease has ended."""
        left = self.record.lease_remaining
        if left is not None:
            self.advance(max(0.0, left) + 1.0)
        later: FakeJob = object.__new__(FakeJob)
        later._begin(self._stage, self._of)
        return later


class _Recorder:
    """The verbs of a store; notes what is told about the job."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self.said: list[str] = []
        self.done: dict[str, str] = {}

    def progress(self, owner: str, token: Token, value: str) -> Op[Answer]:
        """Store a progress value, and note it."""
        answer = yield from self._verbs.progress(owner, token, value)
        if answer.verdict is Verdict.DONE:
            self.said.append(value)
        return answer

    def record_step(self, owner: str, token: Token, step: str, result: str) -> Op[Answer]:
        """Remember the result of a step, and note it."""
        answer = yield from self._verbs.record_step(owner, token, step, result)
        if answer.verdict is Verdict.DONE:
            self.done[step] = result
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verbs, name)


class _Recorded:
    """A store with other verbs."""

    def __init__(self, store: Store, verbs: _Recorder) -> None:
        self._store = store
        self.verbs = verbs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Stage:
    """What the runs of one job share: its store, its clock, and what they recorded."""

    def __init__(self, store: str | Store | None) -> None:
        self._shift = 0.0
        self._base: Clock = boot_clock
        if store is None:
            self._base = _standing_still
            store = MemoryStore(clock=_standing_still)
        self._store = open_store(store) if isinstance(store, str) else store
        self.verbs = _Recorder(self._store.verbs)
        self.app = App(cast("Store", _Recorded(self._store, self.verbs)))
        self.task: Task[..., ..., Any] = self.app.task(name="task")(_anything)

    def now(self) -> float:
        """Read the clock of the leases."""
        return self._base() + self._shift

    def advance(self, seconds: float) -> None:
        """Move the clocks of store and leases."""
        shift = getattr(self._store, "shift_clock", None)
        if shift is None:
            raise Misuse(f"the clock of {self._store.name} cannot be moved: leave store= out, or use a SQLite file")
        shift(seconds)
        self._shift += seconds

    def enqueue(self, task: Task[..., ..., Any], attempt: int, generation: int | None) -> None:
        """Store the job, and let its earlier attempts fail."""
        say = replace(task.defaults, run_at=None, delay=0.0, connection=None)
        most = say.max_attempts
        if attempt < 1 or (most is not None and attempt > most):
            raise Misuse(f"attempt is {attempt}: 1 to {'any number' if most is None else most}, as max_attempts says")
        if generation is not None and generation < attempt:
            raise Misuse(f"generation is {generation} and attempt {attempt}: each attempt has a generation of its own")
        job = say.new_job(say.id or "", task.name, "{}")
        if not self.app.client.enqueue([job])[0].created:
            raise Misuse(f"job {job.id} is in {self._store.name} already: give another id or unique_key")
        for _ in range(attempt - 1):
            claimed, lease = self.claim(task)
            self.app.client.settle(lease.owner, [Ending(Token(claimed.id, claimed.generation), Verb.FAIL)])
        if generation is not None:
            self.app.client.lift_floor(generation - 1)

    def claim(self, task: Task[..., ..., Any]) -> tuple[Claimed, Lease]:
        """Claim the job as a worker of its own."""
        claimer = Claimer(new_owner(), "test")
        sent_at = self.now()
        claimed = self.app.client.claim_named(claimer, task.defaults.id or "", task.defaults.lease, create=False)
        lease = Lease(
            Token(claimed.id, claimed.generation),
            claimer.owner,
            claimed.lease,
            sent_at,
            renew=renewing(self.app.client),
            clock=self.now,
            wall=self.now,
        )
        return claimed, lease


def _standing_still() -> float:
    return 0.0


def _anything() -> Any:
    """Stand for a task that was not named."""
