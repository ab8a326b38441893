"""Whole plays, each in processes of its own: a few beside each other, and each is waited for by the test that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from tenure.demo.destinations import NEEDS
from tenure.testing.servers import Postgres

COMMAND = [sys.executable, "-m", "tenure.demo", "--json"]
PATIENCE = 100.0
AT_ONCE = 5
EXTRAS = ("boto3", "botocore", "httpx", "psycopg", "redis", "requests", "sqlalchemy")

# Read by every Python of a play at its start: it has what the base install has, and nothing that an extra brings.
_WITHOUT_EXTRAS = f"""
import sys
for library in {EXTRAS}:
    sys.modules[library] = None
"""


@dataclass
class Play:
    """What one play told."""

    status: int
    errors: str
    lines: list[dict[str, Any]] = field(repr=False)

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.lines[-1]["summary"])

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.lines[:-1]

    def answers(self, event: str) -> list[str]:
        """List what was answered, each time that something happened."""
        return [line["answer"] for line in self.events if line["event"] == event]


class Plays:
    """The plays that are under way, by destination and whether it has its fence; `close` breaks off what still runs."""

    def __init__(self) -> None:
        self._stage = ThreadPoolExecutor(AT_ONCE)
        self._under_way: dict[tuple[str, bool], Future[Play]] = {}
        self._directors: list[subprocess.Popen[str]] = []

    def __call__(self, destination: str, *, fence: bool) -> Play:
        return self._under_way[destination, fence].result(PATIENCE)

    def start(self, destination: str, *arguments: str, fence: bool, environment: dict[str, str] | None = None) -> None:
        """Start a play as soon as there is room for it."""
        words = [*COMMAND, *arguments, *([] if fence else ["--no-fence"])]
        surroundings = {**os.environ, **(environment or {})}
        self._under_way[destination, fence] = self._stage.submit(self._perform, words, surroundings)

    def close(self) -> None:
        """End it all, also where only a few of the tests were asked for."""
        self._stage.shutdown(wait=False, cancel_futures=True)
        for director in self._directors:
            director.terminate()
        self._stage.shutdown()

    def _perform(self, words: list[str], surroundings: dict[str, str]) -> Play:
        with subprocess.Popen(
            words, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as director:
            self._directors.append(director)
            told, errors = director.communicate(timeout=PATIENCE)
        return Play(director.returncode, errors, [json.loads(line) for line in told.splitlines()])


@pytest.fixture(scope="session")
def base_only(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make an environment in which every Python is without the extras."""
    folder = tmp_path_factory.mktemp("base-only")
    (folder / "sitecustomize.py").write_text(_WITHOUT_EXTRAS)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name a store of somebody's own, on which the play with the plain SQL destination is played."""
    return f"sqlite:///{tmp_path_factory.mktemp('own')}/own.db"


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    with Postgres.start() as server:
        yield server.create_database()


@pytest.fixture(scope="session")
def plays(base_only: dict[str, str], store: str, database: str) -> Iterator[Plays]:
    """Start a play for each destination with its fence and without, and one whose store and destination are PostgreSQL.

    What needs no extra is played without any.
    """
    started = Plays()
    with closing(started):
        started.start("postgresql", "--store", database, fence=True)
        for destination, needs in NEEDS.items():
            words = ["--destination", destination, *(["--store", store] if destination == "sql" else [])]
            for fence in (True, False):
                started.start(destination, *words, fence=fence, environment=None if needs else base_only)
        yield started
