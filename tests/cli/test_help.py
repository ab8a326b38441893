"""Every command and every option is explained, and the page about them is current."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from tenure.cli.exits import MEANINGS
from tenure.cli.reference import markdown, walk
from tenure.cli.root import app
from tests.cli.conftest import Run

COMMANDS: list[tuple[str, Any]] = list(walk("tenure", typer.main.get_command(app)))
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_every_command_is_there() -> None:
    words = ["demo", "migrate", "worker", "enqueue", "queues", "workers", "prune", "recover", "version"]
    words += ["judge", "prove", "bench"]
    words += [f"jobs {verb}" for verb in ("list", "show", "retry", "cancel", "discard", "release")]
    assert sorted(path.removeprefix("tenure ") for path, _ in COMMANDS) == sorted(words)


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_a_command_and_its_options_have_help(tenure: Run, path: str, command: Any) -> None:
    assert command.help
    for parameter in command.params:
        assert parameter.help, parameter.name
        takes_value = parameter.param_type_name == "argument" or not parameter.is_flag
        assert bool(parameter.metavar) == takes_value, parameter.name
    told = tenure(*path.split()[1:], "--help")
    assert told.exit_code == 0
    assert command.help.splitlines()[0][:40] in told.stdout
    assert all(option in told.stdout for option in ("--json", "--traceback"))


def test_the_help_text_explains_the_exit_codes(tenure: Run) -> None:
    told = re.sub(r"\s+", " ", tenure("--help").stdout)
    assert all(f"{code:d} {meaning}" in told for code, meaning in MEANINGS.items())


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown() + "\n", "run: python -m tenure.cli.reference > docs/cli.md"
