"""`tenure enqueue`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenure import App
from tests.cli.conftest import Module, Run

SHOP = """
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from msgspec import Meta
from tenure import App, Job
app = App(STORE)
class Colour(Enum):
    RED = "red"
@app.task(queue="billing", secret=("card",))
def charge(job: Job, order: int, cents: Decimal = Decimal(0), day: date | None = None, card: str = "") -> None: ...
@app.task
def take(whole: int = 0, maybe: int | None = 0, either: int | str = 0, text: str = "", note: str | None = "",
         flag: bool = False, flags: bool | str = False, part: float = 0, parts: float | None = 0, exact: Decimal = 0,
         day: date = None, when: datetime | None = None, colour: Colour = None, size: Literal["1", 2] = 2,
         many: list[int] = (), free: Any = 0, bare=0, least: Annotated[int, Meta(ge=1)] = 1,
         short: Annotated[str, Meta(max_length=3)] = "") -> None: ...
"""


def stored(tenure: Run, job: str) -> Any:
    return json.loads(tenure("jobs", "show", job, "--json", "--reveal").stdout)


def test_pairs_are_json_where_they_can_be(app: App, tenure: Run) -> None:
    words = ("a=1", "b=1.10", "c=true", "d=two words", 'e="3"', "f=[1,2]", "g=x=y", "h=", "i=NaN", f"j={2**70}")
    assert app.tasks
    done = tenure("enqueue", "any", *words, "--json", "--id", "one")
    assert json.loads(done.stdout) == {"id": "one", "created": True}
    arguments = {"a": 1, "b": 1.1, "c": True, "d": "two words", "e": "3", "f": [1, 2], "g": "x=y", "h": "", "i": "NaN"}
    assert stored(tenure, "one")["arguments"] == arguments | {"j": 2**70}


def test_an_object_is_taken_from_the_line_or_from_standard_input(tenure: Run) -> None:
    tenure("enqueue", "any", '{"a": {"b": 1}}', "--id", "one")
    tenure("enqueue", "any", "-", "--id", "two", typed='{"a": {"b": 1}}\n')
    assert stored(tenure, "one")["arguments"] == stored(tenure, "two")["arguments"] == {"a": {"b": 1}}


def test_without_an_app_a_secret_must_be_among_what_is_given(tenure: Run) -> None:
    refused = tenure("enqueue", "any", "card=4000", "--secret", "crad")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "tenure: any: crad: is to be secret and is not given; given are: card\n"
    assert tenure("jobs", "list", "--json").stdout == ""
    assert tenure("enqueue", "any", "card=4000", "--secret", "card", "--id", "one").exit_code == 0
    assert stored(tenure, "one")["arguments"] == {"card": "•••"}


def test_options_are_stored_and_the_same_key_is_met(tenure: Run) -> None:
    words = ("enqueue", "any", "--queue", "q", "--priority", "7", "--unique-key", "k", "--delay", "2h")
    first = json.loads(tenure(*words, "--json").stdout)
    job = stored(tenure, first["id"])
    assert (job["queue"], job["priority"], job["unique_key"], job["phase"]) == ("q", 7, "k", "scheduled")
    assert (job["max_attempts"], job["max_takeovers"]) == (5, 5)
    met = tenure(*words)
    assert met.exit_code == 0
    assert met.stdout == f"job {first['id']} is there already, under the same id or unique key; nothing was stored\n"
    tenure("enqueue", "any", "--run-at", "2031-01-31T09:00:00+01:00", "--id", "two")
    assert stored(tenure, "two")["run_at"] == "2031-01-31T08:00:00Z"


def test_an_app_checks_and_types_the_arguments(module: Module, tenure: Run) -> None:
    shop = f"{module(SHOP)}:app"
    words = ("enqueue", "charge", "order=7", 'cents="0.10"', "day=2030-01-31", "card=4x42", "--app", shop)
    done = tenure(*words, "--id", "one", "--secret", "order")
    assert done.exit_code == 0, done.stderr
    job = stored(tenure, "one")
    assert job["arguments"] == {"order": "•••", "cents": "0.10", "day": "2030-01-31", "card": "•••"}
    assert (job["queue"], job["secret"]) == ("billing", ["card", "order"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["charge"], "charge: order: is required and not given"),
        (
            ["charge", "order=1", "cent=1"],
            "charge: cent: there is no such parameter; there are: order, cents, day, card",
        ),
        (["charge", '{"order": "hunter22"}'], "charge: order: Expected `int`, got `str`"),
        (["charge", "order=hunter22", "--secret", "order"], "charge: order: the value given is no int\n"),
        (
            ["charge", "order=hunter22", "--secret", "oder"],
            "task charge: secret names 'oder', and there is no such param",
        ),
        (["refund", "order=1"], "has no task 'refund'; it has charge"),
        (["charge", "order=1", "order=2"], "argument order is given twice"),
        (["charge", "hunter22"], "argument 1 has no name"),
        (["charge", "{hunter22"], "the arguments are no JSON object"),
        (["charge", "order=1", "--priority", "1000"], "priority is 1000"),
        (["charge", "order=1", "--delay", "soon"], "'soon' is no duration"),
        (["charge", "order=1", "--run-at", "2031-01-31T09:00:00"], "has no time zone"),
        (["charge", "order=1", "--run-at", "tomorrow"], "is no moment"),
    ],
)
def test_refuses_what_does_not_fit_and_quotes_no_value(
    module: Module, tenure: Run, words: list[str], told: str
) -> None:
    refused = tenure("enqueue", *words, "--app", f"{module(SHOP)}:app")
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert "hunter22" not in refused.stderr
    assert tenure("jobs", "list", "--json").stdout == ""


@pytest.mark.parametrize(
    ("typed", "stored_as"),
    [
        ("whole=7", 7), ("whole=007", 7), ("whole=+7", 7), ("whole=-7", -7),
        ("maybe=7", 7), ("maybe=null", None), ("maybe=07", 7),
        ("either=7", 7), ("either=07", "07"), ("either=x", "x"), ('either="x"', '"x"'), ("either=null", "null"),
        ("text=01234", "01234"), ("text=1234", "1234"), ("text=true", "true"), ("text=null", "null"), ("text=", ""),
        ('text="x"', '"x"'), ("text=[1]", "[1]"), ("text=a=b", "a=b"), ("text=1e5", "1e5"),
        ("note=null", None), ("note=None", "None"), ("note=7", "7"),
        ("flag=true", True), ("flag=True", True), ("flag=1", True), ("flag=FALSE", False), ("flag=0", False),
        ("flags=true", True), ("flags=yes", "yes"), ("flags=1", "1"),
        ("part=2", 2.0), ("part=.5", 0.5), ("part=1e3", 1000.0), ("parts=null", None),
        ("exact=0.10", "0.10"), ("day=2030-01-31", "2030-01-31"), ("when=2030-01-31T09:00:00Z", "2030-01-31T09:00:00Z"),
        ("when=null", None), ("colour=red", "red"), ('colour="red"', "red"), ("size=1", "1"), ("size=2", 2),
        ("many=[1,2]", [1, 2]), ("free=7", 7), ("free=07", "07"), ('free="7"', "7"), ("free=null", None),
        ("bare=7", 7), ("bare=x", "x"), ("least=1", 1), ("short=abc", "abc"),
    ],
)  # fmt: skip
def test_a_value_is_read_by_the_type_of_its_parameter(
    module: Module, tenure: Run, typed: str, stored_as: object
) -> None:
    done = tenure("enqueue", "take", typed, "--id", "one", "--app", f"{module(SHOP)}:app")
    assert done.exit_code == 0, done.stderr
    ((_, value),) = stored(tenure, "one")["arguments"].items()
    assert (value, type(value)) == (stored_as, type(stored_as))


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("whole=seven", "take: whole: 'seven' is no int"),
        ("whole=7.5", "take: whole: '7.5' is no int"),
        ("whole=true", "take: whole: 'true' is no int"),
        ("whole=", "take: whole: '' is no int"),
        ("whole=" + "x" * 100, f"take: whole: '{'x' * 60}…' is no int"),
        ("whole=" + "9" * 100, "take: whole: an `int` outside 64 bits: pass it as `str`"),
        ("maybe=None", "take: maybe: 'None' is no int | None: None is written null"),
        ("flag=yes", "take: flag: 'yes' is no bool"),
        ("part=nan", "take: part: 'nan' is no float"),
        ("parts=nan", "take: parts: 'nan' is no float | None"),
        ("part=1e999", "take: part: '1e999' is no float"),
        ("day=31.1.2030", "take: day: '31.1.2030' is no datetime.date (Invalid RFC3339 encoded date)"),
        ("colour=blue", "Colour (Invalid enum value 'blue')"),
        ("many=1,2", "take: many: '1,2' is no list[int]"),
        ("least=0", "take: least: '0' is no typing.Annotated[int, msgspec.Meta(ge=1)]"),
        ("short=abcd", "take: short: 'abcd' is no typing.Annotated[str, msgspec.Meta(max_length=3)]"),
    ],
)
def test_a_value_that_its_type_cannot_be_read_from_is_named(module: Module, tenure: Run, typed: str, told: str) -> None:
    refused = tenure("enqueue", "take", typed, "--app", f"{module(SHOP)}:app")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert told + "\n" in refused.stderr
    assert tenure("jobs", "list", "--json").stdout == ""


def test_positional_only_parameters_are_given_by_name_here_too(module: Module, tenure: Run) -> None:
    shop = "from tenure import App\napp = App(STORE)\n@app.task\ndef pay(order: int, text: str, /) -> None: ...\n"
    tenure("enqueue", "pay", "text=7", "order=7", "--id", "one", "--app", f"{module(shop)}:app")
    assert stored(tenure, "one")["arguments"] == {"order": 7, "text": "7"}


def test_refuses_arguments_above_the_limit(tenure: Run) -> None:
    refused = tenure("enqueue", "any", "-", typed=json.dumps({"a": "x" * 1_048_576}))
    assert refused.exit_code == 2
    assert "above the limit" in refused.stderr
