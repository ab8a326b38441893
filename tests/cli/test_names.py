"""B29: what the name rule allows works through every command, and is shown as it is."""

from __future__ import annotations

import json

import pytest

from tenure import App
from tests.cli.conftest import Run

NAMES = [
    "it's", '"', "'; DROP TABLE tenure_jobs; --", "a:b", "a/b", "a b", "100%", "%s", "🐢", "..", "123", "[red]x[/red]",
    ":tada:", "running", "$HOME", "x" * 200, "-", "a,b",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_works_everywhere(app: App, tenure: Run, name: str) -> None:
    assert app.tasks
    made = tenure("enqueue", "--queue", name, "--id", name, "--unique-key", name, "--json", "--", name, "x=1")
    assert json.loads(made.stdout) == {"id": name, "created": True}
    for words in (["--queue", name], ["--task", name]):
        (line,) = tenure("jobs", "list", *words, "--json").stdout.splitlines()
        assert [json.loads(line)[key] for key in ("id", "task", "queue", "unique_key")] == [name] * 4
    assert name in tenure("jobs", "list").stdout
    assert name in tenure("queues").stdout
    app.claim(name, owner=name)
    shown = tenure("jobs", "show", "--", name)
    assert shown.exit_code == 0
    assert f"generation 1 on {name}: running" in shown.stdout
    for verb, done in (
        ("release", "released"),
        ("cancel", "cancelled"),
        ("retry", "retried"),
        ("discard", "discarded"),
    ):
        assert tenure("jobs", verb, "--reason", name, "--", name).stdout == f"1 {done}\n"
    assert tenure("jobs", "retry", "--queue", name, typed="y\n").stdout == "1 retried\n"
    assert tenure("jobs", "cancel", "--task", name, "--yes").stdout == "1 cancelled\n"
    assert f"discarded by an operator: {name}" in tenure("jobs", "show", "--", name).stdout


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "\x1b[31m"])
def test_what_the_rule_refuses_is_refused_everywhere(tenure: Run, name: str) -> None:
    for words in (
        ["enqueue", "t", "--id", name],
        ["enqueue", "t", "--queue", name],
        ["enqueue", name],
        ["jobs", "show", name],
        ["jobs", "cancel", name],
        ["jobs", "list", "--queue", name],
        ["workers", "--name", name],
    ):
        refused = tenure(*words)
        assert refused.exit_code == 2
        assert "a name is 1 to 200 characters" in refused.stderr
        assert "\x1b" not in refused.stderr
