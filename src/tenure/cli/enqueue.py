"""`tenure enqueue`: store one job from the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from tenure.cli.call import EVERYWHERE, Call, command
from tenure.cli.there import is_missing
from tenure.cli.times import read_duration, read_moment
from tenure.cli.values import Given, misfit, read_arguments, typed, untyped
from tenure.errors import BadArguments, Misuse
from tenure.ids import new_job_id
from tenure.options import Options
from tenure.protocol.codec import MAX_BYTES
from tenure.protocol.job import Enqueued
from tenure.protocol.names import check_name
from tenure.protocol.signature import Signature, read_signature

Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARGUMENT",
        help="key=value pairs, or one JSON object, or - to read a JSON object from standard input, where the list of"
        " processes does not show it.",
    ),
]
Moment = Annotated[
    datetime | None,
    typer.Option("--run-at", parser=read_moment, metavar="MOMENT", help="Not before, such as 2030-01-31T09:00:00Z."),
]
Delay = Annotated[
    float | None,
    typer.Option("--delay", parser=read_duration, metavar="DURATION", help="Not before this time from now."),
]
UniqueKey = Annotated[
    str | None,
    typer.Option("--unique-key", metavar="KEY", help="Store nothing while a live job of the task has it."),
]


@command(*EVERYWHERE)
def enqueue(
    call: Call,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    arguments: Arguments = None,
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", help="The queue to wait in.")] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="N", help="-100 to 100; higher runs first.")
    ] = None,
    run_at: Moment = None,
    delay: Delay = None,
    unique_key: UniqueKey = None,
    id_: Annotated[str | None, typer.Option("--id", metavar="ID", help="The job's id; made up without it.")] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="NAME", help="An argument that no view may show, besides the task's own."),
    ] = None,
) -> None:
    """Store one job.

    With --app the task must be one of the app's, and each value is read by the type of its parameter: text stays text
    for str, null is None. Without, a value is JSON where it is valid JSON and text elsewhere, and it is the worker that
    finds out whether it fits.
    """
    given = read_arguments(arguments or [])
    said = {
        "queue": queue,
        "priority": priority,
        "run_at": run_at,
        "delay": delay,
        "unique_key": unique_key,
        "id": id_,
        "secret": tuple(secret) if secret else None,
    }
    options = {name: value for name, value in said.items() if value is not None}
    makes_store = is_missing(call.store)
    stored = _with_app(call, task, given, options) if call.app_name else _without_app(call, task, given, options)
    if makes_store:
        call.screen.note(f"made the store {call.store.name}", {"made_store": call.store.name})
    call.screen.emit(stored)
    known = f"job {stored.id} is there already, under the same id or unique key; nothing was stored"
    call.screen.say(f"enqueued {stored.id}" if stored.created else known)


def _with_app(call: Call, name: str, given: Given, options: dict[str, Any]) -> Enqueued:
    tasks = call.app.tasks
    if name not in tasks:
        raise Misuse(f"the app {call.app_name} has no task {name!r}; it has {', '.join(sorted(tasks)) or 'none'}")
    task = tasks[name]
    secret = (*task.defaults.secret, *options.get("secret", ()))
    if "secret" in options:
        options["secret"] = secret
    chosen = task.options(**options)
    arguments = _fit(name, read_signature(name, task.function, takes_job=task.takes_job), given, secret)
    # Read with the task's types first: a datetime or a Decimal comes from the command line as JSON text.
    args, kwargs = task.codec.spread(task.codec.decode(msgspec.json.encode(arguments).decode()))
    return chosen.enqueue(*args, **kwargs)


def _fit(task: str, signature: Signature, given: Given, secret: tuple[str, ...]) -> dict[str, msgspec.Raw]:
    known = ", ".join(signature.types) or "none"
    for name in given:
        if name not in signature.types:
            raise BadArguments(task, name, f"there is no such parameter; there are: {known}")
    for name in signature.types:
        if name in signature.required and name not in given:
            raise BadArguments(task, name, f"is required and not given; the parameters are: {known}")
    arguments: dict[str, msgspec.Raw] = {}
    for name, value in given.items():
        found = typed(value, signature.types[name])
        if found is None:
            raise BadArguments(task, name, misfit(str(value), signature.types[name], hidden=name in secret))
        arguments[name] = found
    return arguments


def _without_app(call: Call, name: str, given: Given, options: dict[str, Any]) -> Enqueued:
    for secret in options.get("secret", ()):
        if check_name("the name of a secret argument", secret) not in given:
            raise BadArguments(
                name, secret, f"is to be secret and is not given; given are: {', '.join(given) or 'none'}"
            )
    text = msgspec.json.encode({name: untyped(value) for name, value in given.items()})
    if len(text) > MAX_BYTES:
        raise BadArguments(name, "", f"{len(text)} bytes as JSON, above the limit of {MAX_BYTES}")
    say = Options(**options)
    job = say.new_job(say.id or new_job_id(), check_name("a task's name", name), text.decode())
    (stored,) = call.app.client.enqueue([job])
    return stored
