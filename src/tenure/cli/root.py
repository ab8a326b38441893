"""The command `tenure`: every command and its name, on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tenure.cli.about import demo, show_version, version
from tenure.cli.bench import bench
from tenure.cli.call import EVERYWHERE
from tenure.cli.enqueue import enqueue
from tenure.cli.exits import Exit, epilog
from tenure.cli.hints import hint
from tenure.cli.jobs import list_jobs, show_job
from tenure.cli.judge import judge
from tenure.cli.moves import mover
from tenure.cli.prove import prove
from tenure.cli.safe import one_line
from tenure.cli.screen import Screen
from tenure.cli.status import queues, workers
from tenure.cli.streams import Unheard, flush
from tenure.cli.upkeep import migrate, prune, recover
from tenure.cli.worker import worker
from tenure.protocol.lifecycle import Verb

_USAGE_ERRORS: tuple[type[Exception], ...] = (*typer.BadParameter.__bases__,)
"""Typer's base of all mistakes in a call, which it does not export by name."""


class Root(TyperGroup):
    """Turns mistakes in a call into one line, like every other error, and what a command returns into the exit code."""

    def main(self, *given: Any, **extra: Any) -> Any:
        """Run one call; ends the process only where it was asked to (`standalone_mode`)."""
        standalone = extra.get("standalone_mode", True)
        words = given[0] if given else extra.get("args") or ()
        try:
            code = int(super().main(*given, **extra | {"standalone_mode": False}) or Exit.DONE)
            flush()
        except Unheard as error:
            code = _unheard(error, words)
        except _USAGE_ERRORS as error:
            code = _mistake(error, words)
        except typer.Abort:
            code = Exit.INTERRUPTED
        if standalone:
            raise SystemExit(code)
        return code


def _mistake(error: Exception, words: Sequence[str]) -> Exit:
    message = getattr(error, "format_message", error.__str__)()
    if not message:
        return Exit.MISTAKE  # a call without a command was answered by its help text
    context = getattr(error, "ctx", None)
    path = "tenure" if context is None else context.command_path
    is_group = context is not None and isinstance(context.command, TyperGroup)
    meant = hint(message, words, common=[f"--{name}" for name in EVERYWHERE], before_command=is_group)
    said = message.rstrip(".") if meant is None else f"{message.rstrip('.')}: {meant}"
    Screen(as_json="--json" in words).complain("Usage", one_line(f"{said}; see {path} --help"), Exit.MISTAKE)
    return Exit.MISTAKE


def _unheard(error: Unheard, words: Sequence[str]) -> Exit:
    if error.gone:
        return Exit.UNREAD  # nobody is left to be told
    Screen(as_json="--json" in words).complain("Unheard", one_line(str(error)), Exit.UNWRITTEN)
    return Exit.UNWRITTEN


app = typer.Typer(
    name="tenure",
    cls=Root,
    help="Durable jobs under expiring leases, fenced all the way to the destination of their effects.",
    epilog=epilog(),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command; each is done with by its own callback."""


app.command("demo")(demo)
app.command("migrate")(migrate)
app.command("worker")(worker)
app.command("enqueue")(enqueue)
app.command("queues")(queues)
app.command("workers")(workers)
app.command("prune")(prune)
app.command("recover")(recover)
app.command("prove")(prove)
app.command("judge")(judge)
app.command("bench")(bench)
app.command("version")(version)

jobs = typer.Typer(help="List jobs, tell their lives, and move them.", no_args_is_help=True)
app.add_typer(jobs, name="jobs")
jobs.command("list")(list_jobs)
jobs.command("show")(show_job)
jobs.command("retry")(mover(Verb.RETRY, "Make cancelled and discarded jobs available again, with fresh counts."))
jobs.command("cancel")(
    mover(Verb.CANCEL, "Cancel jobs that wait or run; a running one's worker is refused from this moment on.")
)
jobs.command("discard")(
    mover(Verb.DISCARD, "Put jobs among the dead letters; a running one's worker is refused from this moment on.")
)
jobs.command("release")(mover(Verb.RELEASE, "Take running jobs away from their workers and make them available again."))
