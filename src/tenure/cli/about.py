"""`tenure demo` and `tenure version`."""

from __future__ import annotations

import platform
from typing import Annotated, Literal

import typer

from tenure import __version__
from tenure.cli.call import Call, command
from tenure.cli.exits import Exit
from tenure.cli.screen import Screen


@command("store", "json", "traceback")
def demo(
    call: Call,
    *,
    destination: Annotated[
        Literal["sql", "redis", "http", "s3", "file"],
        typer.Option(
            "--destination",
            metavar="KIND",
            help="Where the job publishes its page: sql, redis, http, s3 or file; the middle three need more packages.",
        ),
    ] = "sql",
    fence: Annotated[
        bool, typer.Option("--fence/--no-fence", help="With or without the fence at the destination.")
    ] = True,
) -> Exit:
    """Play the founding example: a late worker changes nothing.

    Two workers, one job: the first is stopped with two writes on their way, its lease ends, the second takes over. One
    write arrives when the second has only read, one when it has written, and both are refused. Without --store it plays
    on a SQLite file of its own. With --no-fence, see the damage.
    """
    from tenure.demo.main import play

    return Exit(play(store=call.address, destination=destination, fence=fence, json=call.screen.as_json))


@command("json", "traceback")
def version(call: Call) -> None:
    """Show the version of Tenure and of Python."""
    call.screen.emit({"version": __version__, "python": platform.python_version()})
    call.screen.say(about())


def about() -> str:
    """Tell the version of Tenure and of Python."""
    return f"Tenure {__version__} on Python {platform.python_version()}"


def show_version(asked: bool) -> None:  # noqa: FBT001 -- typer calls it with the flag
    """End the call with the version, where it was asked for by an option."""
    if asked:
        Screen(as_json=False).say(about())
        raise typer.Exit
