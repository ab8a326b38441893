"""A mistyped path: only what is meant to make a store makes one."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tenure import App
from tests.cli.conftest import Module, Run

SHOP = """
from tenure import App
app = App("sqlite:///typo.db")
@app.task
def charge(order: int) -> None: ...
"""

LOOKING = [
    ("jobs", "list"),
    ("jobs", "show", "one"),
    ("queues",),
    ("workers",),
    ("workers", "--alive-within", "30s"),
    ("prune", "--older-than", "1d"),
    ("recover",),
    ("migrate", "--sql"),
    ("jobs", "cancel", "one"),
    ("jobs", "retry", "--all", "--yes"),
]


@pytest.fixture
def typo(store: str, tmp_path: Path) -> Path:
    """Name a file that is not there, in a folder that is."""
    return tmp_path / "typo.db"


@pytest.mark.parametrize("words", LOOKING)
@pytest.mark.parametrize("named_by", ["--store", "--app"])
def test_a_command_that_looks_makes_no_file(
    tenure: Run, module: Module, typo: Path, words: tuple[str, ...], named_by: str
) -> None:
    named = "sqlite:///typo.db" if named_by == "--store" else f"{module(SHOP)}:app"
    refused = tenure(*words, named_by, named)
    assert not typo.exists()
    if words != ("migrate", "--sql"):
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr == (
            f"tenure: there is no store {typo}: check the path, or make it with"
            f" `tenure migrate --store sqlite:///{typo}`; a worker makes it, too, and so does the first enqueue\n"
        )
        assert json.loads(tenure(*words, named_by, named, "--json").stderr)["error"] == "BadSettings"


def test_the_command_that_is_advised_makes_it(tenure: Run, tmp_path: Path) -> None:
    odd = tmp_path / "100%25 it's.db"
    address = "sqlite:///100%2525%20it's.db"
    advised = tenure("queues", "--store", address).stderr
    assert f"there is no store {odd}" in advised
    words = shlex.split(advised.partition("`")[2].partition("`")[0])
    assert tenure(*words[1:]).exit_code == 0
    assert odd.exists()
    assert tenure("queues", "--store", address).exit_code == 0


def test_a_missing_folder_is_told_as_such(tenure: Run) -> None:
    assert "there is no folder" in tenure("queues", "--store", "sqlite:////nowhere/at/all.db").stderr


def test_a_folder_that_cannot_be_entered_is_told_as_such(tenure: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = Path.stat

    def refuse(path: Path, **how: bool) -> os.stat_result:
        if path.name == "jobs.db":
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", refuse)
    refused = tenure("queues")
    assert refused.exit_code == 2
    assert refused.stderr.endswith("jobs.db: Permission denied\n")


def test_an_enqueue_says_that_it_made_the_store(tenure: Run, module: Module, typo: Path) -> None:
    refused = tenure("enqueue", "charge", "order=x", "--app", f"{module(SHOP)}:app")
    assert (refused.exit_code, typo.exists()) == (2, False)
    made = tenure("enqueue", "charge", "order=1", "--app", f"{module(SHOP)}:app")
    assert made.stderr == f"made the store sqlite:///{typo}\n"
    assert made.stdout.startswith("enqueued ")
    assert tenure("enqueue", "charge", "order=1", "--app", f"{module(SHOP)}:app").stderr == ""
    other = tenure("enqueue", "any", "--json", "--store", "sqlite:///other.db")
    assert json.loads(other.stderr) == {"made_store": f"sqlite:///{typo.with_name('other.db')}"}


@pytest.mark.parametrize("words", LOOKING[:5])
def test_a_command_that_looks_leaves_another_programs_database_alone(
    tenure: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger, ledger:
        ledger.execute("CREATE TABLE charges (cents INTEGER)")
    before = (tmp_path / "ledger.db").read_bytes()
    refused = tenure(*words, "--store", "sqlite:///ledger.db")
    assert refused.exit_code == 2
    assert "ledger.db holds no tables of Tenure: check the path" in refused.stderr
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_other_stores_are_not_looked_for_in_a_folder(tenure: Run) -> None:
    assert tenure("queues", "--store", "memory://").stdout == "no job waits or runs in memory://\n"
    assert App("memory://").store.name == "memory://"
