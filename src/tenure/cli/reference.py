"""The page that lists every command, written from the commands themselves: ``python -m tenure.cli.reference``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import typer

from tenure.cli.exits import MEANINGS
from tenure.cli.root import app

_INTRODUCTION = """\
# Command line

`tenure COMMAND --help` tells the same as this page, which is generated from the commands; `tenure --version` tells the
version.

With `--json`, standard output carries JSON only: one document for one thing (`jobs show`, `enqueue`, `prune`,
`recover`, `version`, a worker's banner), one line an item for lists (`jobs list`, `queues`, `workers`, `migrate`, and
each job that `jobs retry`, `cancel`, `discard` or `release` was asked to move). Names of fields are those of the
dataclasses in the Python interface, moments are ISO 8601 in UTC, durations are seconds. An error is one JSON line on
standard error, `{"error": …, "message": …, "exit": …}`, and so is each line of a worker's log.

Durations are written `30`, `30s`, `5m`, `2h` or `7d`.

Arguments, results, progress, error messages and tracebacks of jobs are shown only with `jobs show --reveal`, as `•••`
otherwise; arguments that a job declares secret are never shown. `enqueue` repeats a value that was typed as `key=value`
and does not fit its parameter, unless the argument is secret. Addresses of stores are shown without user data.

Without `--app`, `tenure enqueue` knows the task's name only: queue, lease, limits and what is secret are those that the
command line says, or the defaults, and not those that the task was registered with.

The names of files, that of a SQLite store too, may be any bytes, and in an address such a byte can be written `%FF`.
Every other word of a call has to be text.

A SQLite file that is not there is made by `migrate`, `enqueue` and `worker`; every other command refuses it, so that a
mistyped path does not look like an empty store.
"""


def markdown() -> str:
    """Write the whole page."""
    root: Any = typer.main.get_command(app)
    parts = [_INTRODUCTION, "## Exit codes\n", "| code | meaning |\n|---|---|"]
    parts += [f"| {code:d} | {meaning} |" for code, meaning in MEANINGS.items()]
    parts += [_section(path, command) for path, command in walk("tenure", root)]
    return "\n".join(parts)


def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command below `command` that does something, with its words, in the order of the help text."""
    for name, child in getattr(command, "commands", {}).items():
        if getattr(child, "commands", None):
            yield from walk(f"{path} {name}", child)
        else:
            yield f"{path} {name}", child


def _section(path: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    words = [_word(argument) for argument in arguments]
    lines = [f"\n## `{path}`\n", f"```text\n{' '.join([path, *words, '[OPTIONS]'])}\n```\n", cleandoc(command.help), ""]
    lines += ["| | |", "|---|---|"]
    lines += [f"| `{word}` | {_cell(argument.help)} |" for word, argument in zip(words, arguments, strict=True)]
    lines += [f"| {_names(option)} | {_cell(option.help)} |" for option in options]
    return "\n".join(lines)


def _word(argument: Any) -> str:
    word = argument.metavar if argument.required else f"[{argument.metavar}]"
    return f"{word}..." if argument.nargs == -1 else word


def _names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    return f"{names} {option.metavar or ''}".rstrip() + (" (required)" if option.required else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
