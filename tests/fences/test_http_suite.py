"""The shipped suite over HTTP, end to end: client, uvicorn, and the service's own database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.testing.fences.crowd import *  # noqa: F403
from tenure.testing.fences.rule import *  # noqa: F403
from tests.fences import sql_servers
from tests.fences.http import HTTPDestination, PostgresValues, SQLiteValues, Uvicorn


@pytest.fixture(scope="module")
def postgres() -> PostgresValues:
    return PostgresValues(sql_servers.postgres().create_database(), wait=20.0)


@pytest.fixture(scope="module")
def servers(postgres: PostgresValues, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    sqlite = SQLiteValues(Path())
    with Uvicorn(sqlite.app()) as one, Uvicorn(postgres.app()) as other:
        yield {"sqlite": (sqlite, one.url), "postgresql": (postgres, other.url)}


@pytest.fixture(params=["sqlite", "postgresql"])
def destination(request: pytest.FixtureRequest, servers: dict[str, Any], tmp_path: Path) -> Iterator[HTTPDestination]:
    values, url = servers[request.param]
    if isinstance(values, SQLiteValues):
        values.file = tmp_path / "values.db"
    values.create()
    with HTTPDestination.at(url, values) as made:
        yield made
