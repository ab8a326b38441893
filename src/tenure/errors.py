"""One error tree, split by what the caller should do next.

    TenureError
      Refused             the store or a destination understood and said no; nothing changed
        StaleToken        the write came under an older generation: stop, for good
        OutOfSequence     the write was applied before, or a later one of the same run was
        LeaseLost         what job code is told once its lease can no longer be trusted
        LeaseHeld         the job is owned by somebody else, whose lease has not ended
        NotFound          there is no such job
        NotAllowed        the job's state does not allow the verb
      Unavailable         not done: the store could not be asked; try again later
      OutcomeUnknown      may or may not be done: ask, or repeat (repeating is harmless)
      Misuse              a mistake in the calling program or its settings
        BadArguments      arguments that do not fit the task's signature
        BadResult         a result that cannot be stored
        BadToken          a fencing token that cannot be judged: missing, malformed, of another job, far too high
        BadSettings       settings that cannot work together

Errors of a client library (psycopg, sqlite3, redis) never leave their store: they are chained as the cause.
A message starts with what happened and ends with what to do; it never shows arguments, results or passwords, except
that a command quotes what was just typed for it.
"""

from __future__ import annotations


class TenureError(Exception):
    """Every error that Tenure raises on purpose."""


class Refused(TenureError):
    """The other side understood and said no; nothing changed."""


class StaleToken(Refused):
    """A write under an older generation was refused; it is permanent and must not be repeated (R5).

    `job` and `generation` are what the caller held; `current` is the generation met instead and `holder` the readable
    name of the worker that has it now, each None where nobody could say.
    """

    def __init__(
        self, job: str, generation: int, *, current: int | None = None, holder: str | None = None, reason: str = ""
    ) -> None:
        self.job = job
        self.generation = generation
        self.current = current
        self.holder = holder
        self.reason = reason or _superseded(current, holder)
        super().__init__(f"job {job}: generation {generation} is stale: {self.reason}; nothing was changed")


class OutOfSequence(Refused):
    """A write of the same run was refused: it was applied before, or a later one was (R33); it must not be repeated.

    `sequence` is the number of the write and `highest` the highest one applied under this generation; they are equal
    when the write itself has been applied.
    """

    def __init__(self, job: str, generation: int, sequence: int, *, highest: int) -> None:
        self.job = job
        self.generation = generation
        self.sequence = sequence
        self.highest = highest
        what = "was applied before" if sequence == highest else f"was applied before, or overtaken by write {highest}"
        super().__init__(f"job {job}: write {sequence} of generation {generation} {what}; nothing was changed")


class LeaseLost(Refused):
    """Job code is told that its lease can no longer be trusted, and why; start no further effect."""

    def __init__(self, job: str, generation: int, reason: str) -> None:
        self.job = job
        self.generation = generation
        self.reason = reason
        super().__init__(f"job {job}: the lease of generation {generation} is lost: {reason}")


class LeaseHeld(Refused):
    """The job is owned by another worker and its lease has not ended."""

    def __init__(self, job: str, *, holder: str | None, generation: int, remaining: float) -> None:
        self.job = job
        self.holder = holder
        self.generation = generation
        self.remaining = remaining
        super().__init__(
            f"job {job} is held by {holder or 'another owner'} under generation {generation}"
            f" for {max(0.0, remaining):.1f} s more unless it is renewed"
        )


class NotFound(Refused):
    """There is no such job in this store."""

    def __init__(self, job: str) -> None:
        self.job = job
        super().__init__(f"there is no job {job!r} in this store")


class NotAllowed(Refused):
    """The job's state does not allow the verb; see the transition table in `tenure.protocol.lifecycle`."""

    def __init__(self, job: str, *, verb: str, state: str, reason: str = "") -> None:
        self.job = job
        self.verb = verb
        self.state = state
        super().__init__(f"job {job} is {state}: {verb} is not allowed" + (f" ({reason})" if reason else ""))


class Unavailable(TenureError):
    """Nothing was done because the store could not be asked; try again later."""


class OutcomeUnknown(TenureError):
    """The answer was lost: the change happened whole or not at all; ask the store, or repeat the call (R30)."""


class Misuse(TenureError):
    """The calling program, or its settings, asked for something that cannot work."""


class BadArguments(Misuse):
    """Arguments do not fit the task's signature, or would not come back equal in value and type.

    `task` is the task's name and `path` leads to the culprit, such as ``lines[3].price``.
    """

    def __init__(self, task: str, path: str, problem: str) -> None:
        self.task = task
        self.path = path
        self.problem = problem
        super().__init__(f"{task}: {path}: {problem}" if path else f"{task}: {problem}")


class BadResult(Misuse):
    """A handler returned something that cannot be stored; the effect is not repeated because of it."""

    def __init__(self, task: str, path: str, problem: str) -> None:
        self.task = task
        self.path = path
        self.problem = problem
        super().__init__(f"{task}: the result{' at ' + path if path else ''} cannot be stored: {problem}")


class BadToken(Misuse):
    """A fencing token that a destination cannot judge; the write was refused and nothing changed (R36 to R38)."""


class BadSettings(Misuse):
    """Settings that cannot work, refused at start with the numbers named (R17)."""


def _superseded(current: int | None, holder: str | None) -> str:
    if current is None:
        return "the job is gone or was never claimed by this owner"
    return f"generation {current} took over" + (f" ({holder})" if holder else "")
