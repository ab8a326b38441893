"""What the tests of the command line share: a store in a file, an app over it, and a way to run `tenure` in here."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tenure import App
from tenure.cli.root import app as command_line
from tenure.store.address import open_store

Run = Callable[..., Result]
Module = Callable[[str], str]

_numbers = itertools.count()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make an empty store, the one that every command uses, in the current directory."""
    address = f"sqlite:///{tmp_path}/jobs.db"
    open_store(address).migrate()
    monkeypatch.setenv("TENURE_STORE", address)
    monkeypatch.chdir(tmp_path)
    return address


@pytest.fixture
def app(store: str) -> Iterator[App]:
    """Give an app over the store, with one task."""
    made = App(store)

    @made.task(name="charge", max_attempts=2, secret=("password",))
    def charge(order: int, password: str = "") -> str:
        return f"{order}{password}"

    yield made
    made.close()


@pytest.fixture
def module(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Write a module with `text` into the current directory, in which STORE is the address; returns its name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str) -> str:
        name = f"module_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text.replace("STORE", repr(store)))
        return name

    return write


@pytest.fixture
def tenure(store: str) -> Run:
    """Run a command line over the store; the result has exit_code, stdout and stderr."""
    runner = CliRunner()
    assert store

    def run(*words: str, typed: str | bytes | None = None) -> Result:
        return runner.invoke(command_line, list(words), input=typed, prog_name="tenure")

    return run
