"""`Kit`: what the fixtures of the plugin hand out.

tenure_kit.drain()                              # a worker runs what is due
tenure_kit.advance(60)                          # time passes, leases are renewed
tenure_kit.pause()                              # in a handler: its worker stands still for longer than its lease
tenure_kit.take_over(job)                       # another worker owns the job now, under a higher generation
with tenure_kit.cut_store(): ...                # every request raises Unavailable
with tenure_kit.lose_answers(): ...             # every request is carried out and raises OutcomeUnknown
tenure_kit.assert_enqueued(charge, queue="billing", order=7)
tenure_kit.assert_no_effect_after_loss(charge, effects, order=7, cents=1200)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.app import App
from tenure.errors import Misuse
from tenure.protocol.job import JobRecord
from tenure.protocol.lease import Token
from tenure.store.contract import Store
from tenure.task import Task
from tenure.testing.plugin import look
from tenure.testing.plugin.effects import EffectCall, Effects
from tenure.testing.plugin.stage import Stage
from tenure.testing.plugin.trials import Trial, moments, told


class Kit(Stage):
    """An app on a store of its own whose clock the test moves, what can befall its jobs, and what to ask afterwards."""

    def __init__(self, app: App, store: Store | str | None = None) -> None:
        super().__init__(app, store)
        self._trial: Trial | None = None
        self._played: set[str] = set()

    def enqueued(self, task: Task[..., ..., Any] | None = None) -> list[JobRecord]:
        """List the jobs that were enqueued, of one task or of all, oldest first, whatever became of them.

        Those of `assert_no_effect_after_loss` are not among them.
        """
        return [job for job in look.jobs(self._client, task) if job.id not in self._played]

    def assert_enqueued(self, task: Task[..., ..., Any], /, *, queue: str | None = None, **arguments: Any) -> JobRecord:
        """Fail unless a job of the task was enqueued, in `queue` and with these arguments; return the first such job.

        Arguments that are not named are not compared; one that was not passed has its default.
        """
        return look.enqueued(self.enqueued(task), task, queue, arguments)

    def effects(
        self, *, refusals: tuple[type[BaseException], ...] = (), reset: Callable[[], object] | None = None
    ) -> Effects:
        """Make a recorder of effects: see `Effects`."""
        return Effects(self, refusals=refusals, reset=reset)

    def assert_no_effect_after_loss(
        self, task: Task[..., ..., Any], effects: Effects, /, *args: Any, **arguments: Any
    ) -> None:
        """Fail if the handler of `task` carries out an effect after its lease was lost, past gate, guard and fence.

        It is run once undisturbed, then once for each moment at which it can lose its lease: before it begins, while
        each effect is on its way, and after each. There its worker stands still for longer than the lease, and another
        worker takes the job over and runs it to its end. Each time it is a new job, with the arguments given here.
        """
        if self.app.tasks.get(task.name) is None or task.app is not self.app:
            raise Misuse(f"task {task.name} belongs to another app: let the fixture tenure_own_app return that one")
        count = self._play(Trial(None), task, effects, args, arguments).count
        if not count:
            raise AssertionError(
                f"{task.name} carried out no effect: put effects.wrap(...) in the place of what it calls"
            )
        trials = [self._play(Trial(moment), task, effects, args, arguments) for moment in moments(count)]
        if any(trial.blamed() for trial in trials):
            raise AssertionError(told(task.name, trials))
        if not all(trial.reached for trial in trials):
            raise AssertionError(
                f"{task.name} carried out {count} effects undisturbed, and another time did not get as far: let"
                " effects(reset=...) put back what a run changes"
            )

    # -- what the effects and the stage tell of the run on trial

    def enters(self, call: EffectCall) -> bool:
        """Hear of an effect on its way; True when the run's lease is to be lost now."""
        return self._trial is not None and self._trial.enters(call)

    def leaves(self, call: EffectCall) -> bool:
        """Hear of an effect that was carried out; True when the run's lease is to be lost now."""
        return self._trial is not None and self._trial.leaves(call)

    def _begins(self, token: Token) -> bool:
        return self._trial is not None and self._trial.begins(token)

    def _lost(self, *, lost: bool) -> None:
        if self._trial is not None:
            self._trial.loses(lost=lost)

    def _play(
        self,
        trial: Trial,
        task: Task[..., ..., Any],
        effects: Effects,
        args: tuple[Any, ...],
        arguments: dict[str, Any],
    ) -> Trial:
        """Put a new job of the task on trial; an error of its handler is raised if nothing disturbed it."""
        effects.reset()
        inline, self._inline = self._inline, False
        try:
            trial.job = task.options(id=None, run_at=None, delay=0.0, connection=None).enqueue(*args, **arguments).id
            self._played.add(trial.job)
            self._trial = trial
            self.drain(raises=trial.moment is None)
            self._client.cancel([trial.job], "the trial is over")
        finally:
            self._inline, self._trial = inline, None
        return trial
