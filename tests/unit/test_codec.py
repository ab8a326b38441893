"""Arguments and results come back equal in type and value, or are refused at the call with the path to the culprit."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.errors import BadArguments, BadResult, Misuse
from tenure.protocol.codec import Codec, decode_any, encode_any
from tenure.protocol.values import MAX_DEPTH

BERLIN = ZoneInfo("Europe/Berlin")


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: float


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    tags: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class BigLine(Line):
    pallet: int = 0


class Order(msgspec.Struct):
    lines: list[Line]
    options: dict[str, float] = {}


class Address(TypedDict):
    city: str


class Itself:
    """An object that encodes to itself, for encoders that ask."""

    def __json__(self) -> Itself:
        return self

    to_dict = __iter__ = __json__


def codec(kind: Any = Any) -> Codec:
    def task(value: Any) -> Any: ...

    task.__annotations__ = {"value": kind, "return": kind}
    return Codec("charge", task, takes_job=False)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)
    return value


KEPT = {
    "minus zero": (float, -0.0),
    "untyped minus zero": (Any, -0.0),
    "int as float": (int | float, 3),
    "Decimal": (Decimal, Decimal("0.10")),
    "aware datetime": (datetime, datetime(2024, 2, 29, 1, 2, 3, 4, UTC)),
    "aware datetime with offset": (datetime, datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))),
    "naive datetime": (datetime, datetime(2024, 2, 29, 1, 2, 3, 4)),  # noqa: DTZ001
    "date": (date, date(2024, 2, 29)),
    "time": (time, time(1, 2, 3, 4)),
    "timedelta": (timedelta, timedelta(days=-3, microseconds=1)),
    "large Decimal": (Decimal, Decimal("1e400")),
    "UUID": (uuid.UUID, uuid.UUID(int=7)),
    "bytes": (bytes, b"\x00\xff"),
    "bytearray": (bytearray, bytearray(b"\x00\xff")),
    "tuple": (tuple[int, ...], (1, 2)),
    "mixed tuple": (tuple[int, str], (1, "a")),
    "set": (set[str], {"a", "b"}),
    "frozenset of tuples": (frozenset[tuple[int, str]], frozenset({(1, "a"), (2, "b")})),
    "2**53+1": (int, 2**53 + 1),
    "2**63": (int, 2**63),
    "untyped 2**63": (Any, 2**63),
    "lowest": (int, -(2**63)),
    "integer keys": (dict[int, str], {1: "a", -2: "b"}),
    "UUID keys": (dict[uuid.UUID, int], {uuid.UUID(int=7): 1}),
    "dataclass": (Line, Line("a", Decimal("1.50"), {"x"})),
    "struct": (Order, Order([Line("a", Decimal(1))], {"k": -0.0})),
    "named tuple": (Point, Point(1, 2.0)),
    "enum": (Colour, Colour.GREEN),
    "int enum": (Level, Level.LOW),
    "optional": (datetime | None, None),
    "typed dict": (Address, {"city": "Bern"}),
    "literal": (Literal["a", 1], 1),
    "object": (dict[str, object], {"a": [1, None, True, "ü\x00\U0001f600", 1e300]}),
    "iterable": (Iterable[int], [1, 2]),
    "empty": (Any, {"": [], "{}": {}}),
    "deep": (Any, nested(MAX_DEPTH - 2)),  # a level is taken by the arguments, one by the list around it
    "shared part": (Any, [[1]] * 2),
}

REFUSED: dict[str, tuple[Any, Any, str, str]] = {
    "NaN": (float, float("nan"), "", "NaN and infinity"),
    "untyped NaN": (Any, float("nan"), "", "NaN and infinity"),
    "NaN inside": (Order, Order([], {"a": 1.0, "k": float("nan")}), '.options["k"]', "NaN and infinity"),
    "Infinity": (float, float("inf"), "", "NaN and infinity"),
    "untyped Infinity": (Any, {"k": [float("-inf")]}, '["k"][0]', "NaN and infinity"),
    "Decimal NaN": (Decimal, Decimal("NaN"), "", "NaN and infinity"),
    "Decimal signaling NaN": (Decimal, Decimal("sNaN"), "", "NaN and infinity"),
    "10**400": (int, 10**400, "", "outside 64 bits"),
    "untyped 10**400": (Any, 10**400, "", "outside 64 bits"),
    "10**5000": (Any, [10**5000], "[0]", "outside 64 bits"),
    "2**64": (int, 2**64, "", "outside 64 bits"),
    "2**64 as float": (float, 2**64, "", "outside 64 bits"),
    "too long for a float": (float, 2**53 + 1, "", "loses digits"),
    "surrogate": (str, "\ud800", "", "surrogate"),
    "surrogate key": (Any, {"\ud800": 1}, r'["\ud800"]', "surrogate"),
    "untyped Decimal": (Any, Decimal("0.10"), "", "`Decimal`"),
    "untyped datetime": (Any, datetime(2024, 1, 1, tzinfo=UTC), "", "`datetime`"),
    "untyped date": (Any, date(2024, 1, 1), "", "`date`"),
    "untyped UUID": (Any, uuid.UUID(int=7), "", "`UUID`"),
    "untyped bytes": (Any, b"x", "", "`bytes`"),
    "untyped tuple": (Any, (1, 2), "", "`tuple[int, ...]`"),
    "untyped set": (Any, {1}, "", "`set[int]`"),
    "untyped dataclass": (Any, Line("a", Decimal(1)), "", "`Line`"),
    "untyped named tuple": (Any, Point(1, 2.0), "", "`Point`"),
    "untyped enum": (Any, Colour.RED, "", "`Colour`"),
    "untyped int enum": (int, Level.LOW, "", "`Level`"),
    "untyped integer keys": (Any, {"a": 0, 3: 1}, "[3]", "`dict[int, str]`"),
    "keys that become one": (Any, {1: 0, "1": 1}, "[1]", "`dict[int, str]`"),
    "bool key": (Any, {"a": {True: 1}}, '["a"][<bool>]', "`bool` cannot be the type of a key"),
    "tuple key": (Any, {(1, 2): 1}, "[<tuple>]", "cannot be the type of a key"),
    "NaN key": (Any, {float("nan"): 1}, "[<float>]", "NaN and infinity"),
    "itself": (Any, Itself(), "", "cannot be written as JSON"),
    "unset": (Any, [msgspec.UNSET], "[0]", "cannot be written as JSON"),
    "invalid raw JSON": (Any, msgspec.Raw(b"{"), "", "cannot be written as JSON"),
    "raw JSON that grows": (Any, {"a": msgspec.Raw(b'1,"b":2')}, '["a"]', "`Raw`"),
    "class": (Any, Line, "", "cannot be written as JSON"),
    "str subclass": (str, type("Lazy", (str,), {})("a"), "", "pass a plain `str`"),
    "dict subclass": (Any, OrderedDict(a=1), "", "pass a plain `dict`"),
    "dataclass subclass": (Line, BigLine("a", Decimal(1)), "", "pass a plain `Line`"),
    "cycle": (Any, cyclic(), '["a"][1]', "contains itself"),
    "string for a date": (date, "2024-01-01", "", "pass a `date`"),
    "list for a tuple": (tuple[int, ...], [1], "", "pass a `tuple`"),
    "tuple for a sequence": (Sequence[int], (1, 2), "", "`tuple[int, ...]`"),
    "dict for a dataclass": (Line, {"sku": "a", "price": "1"}, "", "pass a `Line`"),
    "wrong type": (int, "7", "", "Expected `int`, got `str`"),
    "bool for an int": (int, True, "", "Expected `int`, got `bool`"),
    "wrong type inside": (dict[str, list[int]], {"a": [1, "2"]}, "[...][1]", "Expected `int`, got `str`"),
    "key of the wrong type": (dict[int, int], {"a": 1}, "", "the key: Expected `int`, got `str`"),
    "constraint": (Annotated[int, msgspec.Meta(ge=0)], -1, "", "Expected `int` >= 0"),
    "undeclared key": (Address, {"city": "Bern", "zip": 1}, '["zip"]', "not declared"),
    "changed element": (set[Decimal], {Decimal("NaN")}, "[...]", "NaN"),
    "repeated hour, naive": (datetime, datetime(2024, 10, 27, 2, 30, fold=1), "", "not come back equal"),  # noqa: DTZ001
    "offset with seconds": (datetime, datetime(1800, 1, 1, tzinfo=BERLIN), "", "not come back equal"),
    "time in a zone": (time, time(1, tzinfo=BERLIN), "", "not come back equal"),
}

kept = pytest.mark.parametrize(("kind", "value"), KEPT.values(), ids=KEPT)
refused = pytest.mark.parametrize(("kind", "value", "path", "problem"), REFUSED.values(), ids=REFUSED)


def same(sent: Any, back: Any) -> bool:
    """Compare by another way than the codec's: texts of everything inside, and equality."""
    if isinstance(sent, set | frozenset):
        return type(sent) is type(back) and sorted(map(repr, sent)) == sorted(map(repr, back))
    return type(sent) is type(back) and repr(sent) == repr(back) and bool(sent == back)


@kept
def test_b25_argument_comes_back(kind: Any, value: Any) -> None:
    there = codec(kind)
    text = there.encode((), {"value": value})
    assert json.loads(text).keys() == {"value"}
    assert same(value, there.decode(text)["value"])


@kept
def test_b25_in_a_list_comes_back(kind: Any, value: Any) -> None:
    there = codec(list[kind])
    assert all(map(same, [value, value], there.decode(there.encode(([value, value],), {}))["value"]))


@kept
def test_b25_result_comes_back(kind: Any, value: Any) -> None:
    there = codec(kind)
    assert same(value, there.decode_result(there.encode_result(value)))


@refused
def test_b25_argument_is_refused_with_its_path(kind: Any, value: Any, path: str, problem: str) -> None:
    with pytest.raises(BadArguments, match=re.escape(problem)) as caught:
        codec(kind).encode((value,), {})
    assert caught.value.path == f"value{path}"
    assert str(caught.value).startswith("charge: value")


@refused
def test_b25_in_a_list_is_refused_with_its_path(kind: Any, value: Any, path: str, problem: str) -> None:
    with pytest.raises(BadArguments, match=re.escape(problem)) as caught:
        codec(list[kind]).encode(([value],), {})
    assert caught.value.path == f"value[0]{path}"


@refused
def test_b25_result_is_refused_with_its_path(kind: Any, value: Any, path: str, problem: str) -> None:
    with pytest.raises(BadResult, match=re.escape(problem)) as caught:
        codec(kind).encode_result(value)
    assert caught.value.path == path.removeprefix(".")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_b25_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(BadResult, match="levels deep"):
        codec().encode_result(nested(depth))
    with pytest.raises(BadArguments, match="levels deep"):
        codec(list[Any]).encode((nested(depth),), {})


def test_b25_no_room_on_the_stack_is_refused() -> None:
    def sink(room: int) -> None:
        if room:
            return sink(room - 1)
        codec().encode_result(nested(MAX_DEPTH))
        return None

    with pytest.raises(BadResult, match="than the stack allows"):
        sink(sys.getrecursionlimit() - MAX_DEPTH)


@pytest.mark.parametrize("fold", [0, 1])
def test_b25_datetime_in_a_named_zone_keeps_clock_instant_and_offset(fold: int) -> None:
    sent = datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=BERLIN)
    there = codec(datetime)
    back = there.decode_result(there.encode_result(sent))
    assert back.isoformat() == sent.isoformat()
    assert back.timestamp() == sent.timestamp()
    assert back.tzinfo == timezone(timedelta(hours=2 - fold))


def test_b25_int_arrives_as_the_float_it_was_declared_to_be() -> None:
    there = codec(dict[str, list[float]])
    value = there.decode(there.encode((), {"value": {"a": [3, 2.5]}}))["value"]
    assert repr(value) == "{'a': [3.0, 2.5]}"


NUMBERS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
SCALARS = JSON_VALUES | st.integers() | st.floats() | st.text(st.characters(categories=["Cs", "L"])) | st.binary()
ANYTHING = st.recursive(
    SCALARS | st.decimals() | st.datetimes() | st.dates() | st.uuids() | st.timedeltas(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=10,
)


def is_json(value: Any) -> bool:
    """Say by the documented rule what needs no declared type."""
    if type(value) is list:
        return all(map(is_json, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and is_json([*value, *value.values()])
    if type(value) is int:
        return -(2**63) <= value < 2**64
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is str:
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return value is None or type(value) is bool


@settings(max_examples=50)
@given(JSON_VALUES)
def test_untyped_json_comes_back(value: Any) -> None:
    there = codec()
    assert same(value, there.decode(there.encode((value,), {}))["value"])
    assert same(value, decode_any(encode_any(value, "progress"), "progress"))


@settings(max_examples=50)
@given(ANYTHING)
def test_b25_anything_comes_back_or_is_refused(value: Any) -> None:
    there = codec()
    try:
        text = there.encode_result(value)
    except BadResult:
        assert not is_json(value)
    else:
        assert same(value, there.decode_result(text))
        assert json.dumps(json.loads(text), allow_nan=False)


class Everything(msgspec.Struct):
    numbers: list[int]
    floats: dict[str, float]
    texts: tuple[str, ...]
    flag: bool
    data: bytes
    day: date
    ids: dict[int, uuid.UUID]
    spans: list[timedelta]
    point: Point
    colour: Colour | None


POINTS = st.builds(Point, NUMBERS, FLOATS)


@settings(max_examples=50)
@given(
    st.builds(
        Everything,
        numbers=st.lists(NUMBERS),
        floats=st.dictionaries(st.text(), FLOATS),
        ids=st.dictionaries(NUMBERS, st.uuids()),
        point=POINTS,
    )
)
def test_typed_values_come_back(value: Everything) -> None:
    there = codec(list[Everything])
    assert same([value], there.decode(there.encode(([value],), {}))["value"])


@settings(max_examples=50)
@given(st.decimals(allow_nan=False, allow_infinity=False), st.datetimes(timezones=st.timezones()))
def test_digits_and_instants_come_back(number: Decimal, moment: datetime) -> None:
    there = codec(Decimal)
    assert there.decode_result(there.encode_result(number)).as_tuple() == number.as_tuple()
    there = codec(datetime)
    try:
        back = there.decode_result(there.encode_result(moment))
    except BadResult:
        offset = moment.utcoffset()
        assert offset is None or offset.total_seconds() % 60
    else:
        assert (back.isoformat(), back.utcoffset()) == (moment.isoformat(), moment.utcoffset())


def test_untyped_helpers_name_the_place() -> None:
    with pytest.raises(Misuse, match=r'progress\["a"\]\[0\]: NaN'):
        encode_any({"a": [float("nan")]}, "progress")
    with pytest.raises(Misuse, match="progress: JSON is malformed"):
        decode_any("nope", "progress")
