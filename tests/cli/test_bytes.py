"""Words that are no text, as the bytes of an argument may be: files may be called so, all else is refused."""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer

from tenure.cli.reference import walk
from tenure.cli.root import app as command_line
from tenure.cli.safe import one_line
from tests.cli.conftest import Run

NO_TEXT = "\udcff"
"""How Python holds the byte 0xff of an argument."""


def parameters() -> list[tuple[list[str], str]]:
    """Lay out a call for each option and argument that takes a word and names no file, and what it is called."""
    found = []
    for path, command in walk("tenure", typer.main.get_command(command_line)):
        needed = {each.name: _words(each, "1") for each in command.params if each.required}
        for each in command.params:
            if _takes_text(each):
                words = needed | {each.name: _words(each, NO_TEXT)}
                called = each.metavar if each.param_type_name == "argument" else each.opts[0]
                found.append(([*path.split()[1:], *chain.from_iterable(words.values())], called))
    return found


def _takes_text(parameter: Any) -> bool:
    return parameter.name not in {"store", "report", "history", "files"} and not getattr(parameter, "is_flag", False)


def _words(parameter: Any, value: str) -> list[str]:
    return [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]


@pytest.mark.parametrize(("words", "called"), parameters())
def test_whatever_names_no_file_has_to_be_text(tenure: Run, words: list[str], called: str) -> None:
    refused = tenure(*words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert called in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert json.loads(tenure(*words, "--json").stderr)["exit"] == 2


def test_of_many_words_the_culprit_is_counted_and_none_is_repeated(tenure: Run) -> None:
    refused = tenure("enqueue", "charge", "order=7", f"card=hunter22{NO_TEXT}")
    assert refused.stderr == "tenure: ARGUMENT number 2 is not text: it holds bytes that are not UTF-8\n"
    assert tenure("jobs", "list", "--json").stdout == ""


@pytest.mark.parametrize("words", [[NO_TEXT], [f"--{NO_TEXT}"], ["queues", NO_TEXT], ["jobs", "list", f"--x{NO_TEXT}"]])
def test_a_word_that_no_command_knows_is_told_in_text_and_in_json(tenure: Run, words: list[str]) -> None:
    refused = tenure(*words)
    assert refused.exit_code == 2
    assert "xff" in refused.stderr or "udcff" in refused.stderr
    assert json.loads(tenure(*words, "--json").stderr)["error"] == "Usage"


@pytest.mark.parametrize("written", [f"x{NO_TEXT}.db", "x%FF.db"])
def test_a_store_may_lie_in_a_file_of_any_name(tenure: Run, tmp_path: Path, written: str) -> None:
    address = f"sqlite:///{written}"
    missing = tenure("queues", "--store", address)
    assert missing.exit_code == 2
    assert f"there is no store {tmp_path}/x\\xff.db" in missing.stderr
    assert f"--store sqlite:///{tmp_path}/x%FF.db`" in missing.stderr
    made = tenure("enqueue", "any", "--id", "one", "--store", address, "--json")
    assert json.loads(made.stderr) == {"made_store": f"sqlite:///{tmp_path}/x%FF.db"}
    assert b"x\xff.db" in [os.fsencode(path.name) for path in tmp_path.iterdir()]
    assert json.loads(tenure("jobs", "show", "one", "--store", address, "--json").stdout)["id"] == "one"
    assert tenure("queues", "--store", address).exit_code == 0


def test_no_file_can_have_a_nul_in_its_name(tenure: Run) -> None:
    assert "holds a NUL" in tenure("queues", "--store", "sqlite:///x%00.db").stderr


def test_a_history_may_lie_in_a_file_of_any_name(tenure: Run, tmp_path: Path) -> None:
    path = f"{tmp_path}/{NO_TEXT}"
    assert tenure("judge", path).stderr == f"tenure: cannot read {tmp_path}/\\xff: No such file or directory\n"
    Path(path).write_text('{"kind": "call"')
    assert json.loads(tenure("judge", path, "--json").stderr)["exit"] == 2


@pytest.mark.parametrize("words", [("enqueue", "any", "-"), ("jobs", "cancel", "--all")])
def test_what_is_typed_has_to_be_text_too(tenure: Run, words: tuple[str, ...]) -> None:
    refused = tenure(*words, typed=b'{"card": "\xff"}')
    assert refused.exit_code == 2
    assert refused.stderr.endswith("tenure: standard input is not text: it holds bytes that are not UTF-8\n")


def test_a_byte_is_shown_by_its_number() -> None:
    assert one_line("a\udc80\udcff\ud800\u2028b") == "a\\x80\\xff\\xd800 b"
