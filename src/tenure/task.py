"""`Task`: a registered function, and the ways to enqueue a job for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from tenure.client import AsyncClient, Client
from tenure.errors import BadArguments, BadSettings, Misuse
from tenure.ids import new_job_id, new_job_ids
from tenure.loading import refuse_while_loading
from tenure.options import Options
from tenure.protocol.codec import Codec
from tenure.protocol.job import Enqueued, NewJob
from tenure.protocol.names import check_name
from tenure.protocol.retry import Backoff
from tenure.worker.context import Clients, Job
from tenure.worker.fencing import Fence, is_fence

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class Task(Generic[Q, P, R]):
    """A registered function: `Q` are its parameters, `P` its arguments (without the `Job`), `R` its result."""

    def __init__(
        self,
        app: Clients,
        name: str,
        function: Callable[Q, R],
        options: Options,
        *,
        backoff: Backoff,
        isolation: Literal["process"] | None,
        fences: Sequence[Fence] = (),
    ) -> None:
        self.app = app
        self.name = check_name("a task's name", name)
        self.function = function
        self.defaults = options
        self.backoff = backoff
        self.isolation = isolation
        self.fences = tuple(fences)
        self.takes_job = _takes_job(function)
        self.is_async = inspect.iscoroutinefunction(function)
        self.codec = Codec(name, function, takes_job=self.takes_job)
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = name
        self._check_secret(options)
        if isolation not in {None, "process"}:
            raise BadSettings(f"task {name}: isolation is {isolation!r}: 'process', or left out")
        if not isinstance(backoff, Backoff):
            raise BadSettings(f"task {name}: backoff is {backoff!r}: a Backoff, such as Backoff(first=5, factor=3)")
        for fence in self.fences:
            if not is_fence(fence):
                raise BadSettings(
                    f"task {name}: {type(fence).__name__} in fences= has no raise_to(token): give a fence that knows"
                    " its destination, such as RedisFence(client) or SQLFence(dialect).bound(connect)"
                )
        if isolation == "process" and self.is_async:
            raise BadSettings(
                f"task {name}: isolation='process' runs plain functions; make it one, or leave isolation out"
            )

    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> R:
        """Call the function itself, as a plain function; nothing is stored."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        """Name the task."""
        return f"<Task {self.name}>"

    def options(self, **changes: Any) -> Task[Q, P, R]:
        """Return the same task with other options for what is enqueued through it; see `Options` for their names."""
        other: Task[Q, P, R] = object.__new__(Task)
        other.__dict__.update(self.__dict__)
        try:
            other.defaults = replace(self.defaults, **changes)
        except TypeError:
            known = ", ".join(sorted(Options.__slots__))
            unknown = ", ".join(sorted(set(changes) - set(Options.__slots__)))
            raise BadSettings(f"task {self.name} has no option {unknown}; there are {known}") from None
        self._check_secret(other.defaults)
        return other

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Store a job; raises BadArguments at once, Unavailable or OutcomeUnknown within the app's timeout."""
        return self._client().enqueue([self._job(args, kwargs)])[0]

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Store a job without blocking the loop; the twin of `enqueue`."""
        return (await self._aclient().enqueue([self._job(args, kwargs)]))[0]

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[Enqueued]:
        """Store one job for each mapping of keyword arguments, all or none; raises BadArguments naming the culprit."""
        jobs = self._jobs(calls)
        return self._client().enqueue(jobs) if jobs else []

    async def enqueue_many_async(self, calls: Iterable[Mapping[str, Any]]) -> list[Enqueued]:
        """Store many jobs without blocking the loop; the twin of `enqueue_many`."""
        jobs = self._jobs(calls)
        return await self._aclient().enqueue(jobs) if jobs else []

    def _check_secret(self, options: Options) -> None:
        """Refuse a secret that names no parameter: a misspelled one would be shown by every view."""
        known = self.codec.names
        unknown = ", ".join(repr(name) for name in options.secret if name not in known)
        if unknown:
            there = ", ".join(known) or "none"
            raise BadSettings(f"task {self.name}: secret names {unknown}, and there is no such parameter: {there}")

    def _client(self) -> Client:
        refuse_while_loading("enqueues a job")
        return self.app.client if self.defaults.connection is None else self.app.joined(self.defaults.connection)

    def _aclient(self) -> AsyncClient:
        refuse_while_loading("enqueues a job")
        return self.app.aclient if self.defaults.connection is None else self.app.ajoined(self.defaults.connection)

    def _job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        arguments = self.codec.encode(args, kwargs)
        return self.defaults.new_job(self.defaults.id or new_job_id(), self.name, arguments)

    def _jobs(self, calls: Iterable[Mapping[str, Any]]) -> list[NewJob]:
        if self.defaults.id is not None or self.defaults.unique_key is not None:
            raise Misuse("enqueue_many gives each job an id of its own: leave the options id and unique_key out")
        encoded = []
        for number, call in enumerate(calls):
            try:
                encoded.append(self.codec.encode((), call if type(call) is dict else dict(call)))
            except BadArguments as error:
                raise BadArguments(error.task, f"[{number}].{error.path}".rstrip("."), error.problem) from None
        return self.defaults.new_jobs(new_job_ids(len(encoded)), self.name, encoded)


def _takes_job(function: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        return False
    annotation = parameters[0].annotation
    if isinstance(annotation, str):
        annotation = getattr(inspect.getmodule(function), "__dict__", {}).get(annotation, annotation)
    return annotation is Job or annotation in {"Job", "tenure.Job"}
