"""`tenure worker`: run the jobs of an app's tasks until told to stop."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure import __version__
from tenure.cli.call import EVERYWHERE, Call, command
from tenure.cli.logs import configure_logging
from tenure.cli.streams import leave_output
from tenure.cli.times import read_duration
from tenure.errors import Misuse

if TYPE_CHECKING:
    from tenure.worker.worker import Worker

_logger = logging.getLogger("tenure.cli")
_COMMA = re.compile(r"(?<!\\),")


class Level(StrEnum):
    """How much a worker's log tells."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _duration(name: str, help_text: str) -> Any:
    return typer.Option(name, parser=read_duration, metavar="DURATION", help=help_text)


@command(*EVERYWHERE)
def worker(
    call: Call,
    *,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue", metavar="NAME", help="A queue to serve; repeatable, or with commas (one in a name: \\,)."
        ),
    ] = None,
    slots: Annotated[int | None, typer.Option("--slots", metavar="N", help="How many async jobs at once.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", metavar="N", help="How many plain jobs at once.")] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", metavar="N", help="How many jobs with isolation='process' at once.")
    ] = None,
    grace: Annotated[
        float | None, _duration("--grace", "How long running jobs may go on after the worker was asked to stop.")
    ] = None,
    beat: Annotated[float | None, _duration("--beat", "The pause between renewals of leases.")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What this worker is called.")] = None,
    log_level: Annotated[
        Level, typer.Option("--log-level", metavar="LEVEL", help=f"How much is logged: {', '.join(Level)}.")
    ] = Level.INFO,
) -> None:
    """Run the jobs of an app's tasks until SIGTERM or SIGINT.

    The first signal stops it gracefully: it claims nothing more, lets running jobs finish for the grace, and gives back
    the others; the exit code is 0. A second signal takes the grace away.
    """
    if call.app_name is None:
        raise Misuse("a worker needs an app: add --app module:attribute, such as --app shop:app")
    said = {
        "queues": split_names(queue or []) or None,
        "slots": slots,
        "threads": threads,
        "processes": processes,
        "grace": grace,
        "beat": beat,
        "name": name,
    }
    made = call.app.worker(**{setting: value for setting, value in said.items() if value is not None})
    configure_logging(log_level, as_json=call.screen.as_json)
    _show(call, describe(made))
    _tell_doubts(made)
    leave_output()  # where it is full or closed, a handler that prints meets what it would meet without us
    made.run()


def split_names(given: Sequence[str]) -> tuple[str, ...]:
    """Split names at commas; a backslash keeps a comma in a name, and a name given twice counts once."""
    names = [name.replace("\\,", ",") for text in given for name in _COMMA.split(text)]
    return tuple(dict.fromkeys(names))


def describe(made: Worker) -> dict[str, Any]:
    """Say what a worker is about to do."""
    say, app = made.settings, made.app
    return {
        "version": __version__,
        "worker": made.name,
        "pid": os.getpid(),
        "store": app.store.name,
        "durability": app.store.durability,
        "queues": made.queues,
        "tasks": sorted(app.tasks),
        "slots": say.slots,
        "threads": say.threads,
        "processes": say.processes,
    }


def _tell_doubts(made: Worker) -> None:
    for doubt in doubtful_queues(made):
        _logger.warning("%s", doubt)


def doubtful_queues(made: Worker) -> Iterator[str]:
    """Tell of queues that no task goes to by default and whose names look mistyped."""
    named = {task.defaults.queue for task in made.app.tasks.values()}
    for queue in made.queues:
        if queue not in named and (close := get_close_matches(queue, sorted(named), 1)):
            yield f"no task of this app goes to the queue {queue} by itself: did you mean {close[0]}?"


def _show(call: Call, banner: dict[str, Any]) -> None:
    call.screen.emit(banner)
    if call.screen.as_json:
        return
    lines = [
        f"Tenure {banner['version']}, worker {banner['worker']}",
        f"store {banner['store']} ({banner['durability']})",
        f"queues {', '.join(banner['queues'])}",
        f"tasks {', '.join(banner['tasks'])}",
        f"at once {banner['slots']} async, {banner['threads']} in threads, {banner['processes']} in processes",
    ]
    _logger.info("%s", "; ".join(lines))
