"""What a mistake, a refusal or a fault looks like: one line, an exit code, and nothing on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenure.cli.exits import MEANINGS, Exit, exit_for
from tenure.client import Client
from tenure.errors import (
    BadArguments,
    BadResult,
    BadSettings,
    LeaseHeld,
    LeaseLost,
    Misuse,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    Refused,
    StaleToken,
    TenureError,
    Unavailable,
)
from tests.cli.conftest import Module, Run


def tree(kind: type[TenureError]) -> set[type[TenureError]]:
    return {kind}.union(*(tree(child) for child in kind.__subclasses__()))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("x"), Exit.NOT_FOUND),
        (NotAllowed("x", verb="claim", state="completed"), Exit.REFUSED),
        (LeaseHeld("x", holder=None, generation=1, remaining=1), Exit.REFUSED),
        (LeaseLost("x", 1, "y"), Exit.REFUSED),
        (StaleToken("x", 1), Exit.REFUSED),
        (Refused("x"), Exit.REFUSED),
        (Misuse("x"), Exit.MISTAKE),
        (BadSettings("x"), Exit.MISTAKE),
        (BadArguments("x", "", "y"), Exit.MISTAKE),
        (BadResult("x", "", "y"), Exit.MISTAKE),
        (Unavailable("x"), Exit.UNAVAILABLE),
        (OutcomeUnknown("x"), Exit.UNKNOWN),
        (ValueError("x"), Exit.FAULT),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: Exit) -> None:
    assert exit_for(error) is code


def test_no_error_of_the_tree_is_a_fault() -> None:
    known = tree(TenureError) - {TenureError}
    assert [kind for kind in known if exit_for(kind.__new__(kind)) is Exit.FAULT] == []
    assert set(MEANINGS) == set(Exit)


@pytest.mark.parametrize(
    "error", [Unavailable("the store is away"), OutcomeUnknown("who knows"), ValueError("hunter22")]
)
def test_an_error_is_one_line_or_one_document(tenure: Run, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def queues(_: Client) -> None:
        raise error

    monkeypatch.setattr(Client, "queues", queues)
    told = tenure("queues")
    assert told.stdout == ""
    assert told.stderr.startswith("tenure: ")
    assert told.stderr.count("\n") == 1
    assert "hunter22" not in told.stderr
    written = tenure("queues", "--json")
    assert written.stdout == ""
    document = json.loads(written.stderr)
    assert document["exit"] == told.exit_code == exit_for(error)
    assert document["error"] == type(error).__name__


def test_an_unexpected_error_is_told_by_type_and_place_and_whole_when_asked(
    tenure: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def queues(_: Client) -> None:
        raise ValueError("a detail")

    monkeypatch.setattr(Client, "queues", queues)
    told = tenure("queues")
    assert told.exit_code == 70
    assert told.stderr.startswith("tenure: unexpected error, ValueError at test_errors.py:")
    assert "add --traceback" in told.stderr
    whole = tenure("queues", "--traceback").stderr
    assert "in queues" in whole
    assert "ValueError: a detail" in whole
    assert "ValueError: a detail" in json.loads(tenure("queues", "--traceback", "--json").stderr)["traceback"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["queues", "--nonsense"], "No such option"),
        (["worker", "shop:app"], "(shop:app): an app is named with --app shop:app; see tenure worker --help"),
        (["jobs", "list", "shop.jobs:app.inner"], "an app is named with --app shop.jobs:app.inner"),
        (["worker", "high", "low"], "(high low); see tenure worker --help"),
        (["--app", "shop:app", "worker"], "No such option: --app: it stands behind the command; see tenure --help"),
        (["jobs", "--store", "memory://", "list"], "--store: it stands behind the command; see tenure jobs --help"),
        (["jobs", "show"], "Missing argument"),
        (["jobs", "list", "--state", "nonsense"], "Invalid value for '--state'"),
        (["jobs", "list", "--limit", "0"], "Invalid value for '--limit'"),
        (["prune", "--older-than", "-1"], "is no duration"),
    ],
)
def test_a_mistake_in_the_call_is_one_line(tenure: Run, words: list[str], told: str) -> None:
    refused = tenure(*words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert told in refused.stderr
    assert refused.stderr.count("\n") == 1
    written = json.loads(tenure(*words, "--json").stderr)
    assert (written["error"], written["exit"]) == ("Usage", 2)


def test_a_call_without_a_command_is_answered_by_the_help_text(tenure: Run) -> None:
    for words in ([], ["jobs"]):
        asked = tenure(*words)
        assert asked.exit_code == 2
        assert "Usage: " in asked.stdout
        assert asked.stderr == ""


def test_no_store_and_no_folder_are_named(tenure: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tenure("queues", "--store", "sqlite:////nowhere/at/all.db")
    assert (missing.exit_code, "there is no folder" in missing.stderr) == (2, True)
    assert "begins with ftp://" in tenure("queues", "--store", "ftp://x").stderr
    monkeypatch.delenv("TENURE_STORE")
    assert "add --store or --app, or set TENURE_STORE" in tenure("queues").stderr


@pytest.mark.parametrize(
    ("text", "suffix", "told"),
    [
        ("", "", "names no app: --app is module:attribute"),
        ("", ":", "names no app"),
        ("", ":app", "has no 'app': --app is module:attribute"),
        ("from tenure import App\nshop = App(STORE)", ":app", "has no 'app'; it has shop"),
        ("app = 7", ":app", "is a int, not a tenure.App"),
        ("\n1 / 0", ":app", "cannot be imported: ZeroDivisionError at {name}.py:2; add --traceback"),
        ("raise ValueError('hunter22')", ":app", "cannot be imported: ValueError at {name}.py:1; add"),
        ("import no_such_thing", ":app", "ModuleNotFoundError at {name}.py:1: No module named 'no_such_thing'"),
        ("def x(:", ":app", "SyntaxError at {name}.py:1: invalid syntax"),
    ],
)
def test_an_app_that_cannot_be_found_is_told_clearly(
    module: Module, tenure: Run, text: str, suffix: str, told: str
) -> None:
    name = module(text)
    refused = tenure("queues", "--app", name + suffix)
    assert refused.exit_code == 2
    assert told.format(name=name) in refused.stderr
    assert "hunter22" not in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_module_that_is_missing_is_named(tenure: Run) -> None:
    assert "there is no module 'no_such_thing' in " in tenure("queues", "--app", "no_such_thing.jobs:app").stderr
    assert "names no app" in tenure("queues", "--app", "../x:app").stderr


def test_the_traceback_of_a_broken_module_shows_its_own_error(module: Module, tenure: Run) -> None:
    whole = tenure("queues", "--app", f"{module('raise ValueError(6 * 7)')}:app", "--traceback").stderr
    assert "caused by" in whole
    assert "ValueError: 42" in whole


def test_an_apps_own_store_is_used_unless_another_is_named(module: Module, tenure: Run) -> None:
    name = module("from tenure import App\napp = App('sqlite:///other.db')")
    assert tenure("migrate", "--app", f"{name}:app").stdout.startswith("applied ")
    assert tenure("migrate", "--sql", "--app", f"{name}:app").stdout.endswith("other.db is up to date\n")
    assert "CREATE TABLE" in tenure("migrate", "--sql", "--app", f"{name}:app", "--store", "sqlite:///third.db").stdout


@pytest.mark.parametrize("given", ["shop.py:app", "./shop.py:app", "shop.py"])
def test_a_file_in_place_of_a_module_is_recognised(tenure: Run, given: str) -> None:
    assert "did you mean shop:app?" in tenure("queues", "--app", given).stderr


def test_a_history_that_cannot_be_kept_is_told_with_its_place(
    tenure: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept" / "all.jsonl"
    kept.parent.mkdir()

    def run(_call: object, _plan: object, folder: Path, _go_on: object) -> None:
        (folder / "history.jsonl").touch()
        kept.parent.rmdir()

    monkeypatch.setattr("tenure.cli.prove._run", run)
    refused = tenure("prove", "--history", str(kept))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == f"tenure: cannot write {kept}: No such file or directory\n"
