"""A call, a stored text and the signature of the running code fit together, or the error says what to do."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
import pytest

from tenure.errors import BadArguments, BadResult, Misuse
from tenure.protocol.codec import MAX_BYTES, Codec, encode_any
from tenure.protocol.values import field_names

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class Line:
    sku: str
    colour: Colour = Colour.RED


@dataclasses.dataclass
class Guarded:
    pin: str

    def __post_init__(self) -> None:
        if self.pin == "hunter2":
            raise ValueError(f"bad pin {self.pin}")
        if self.pin == "hunter3":
            raise KeyError(self.pin)


class Unchecked:
    pass


class Duck(Protocol):
    def quack(self) -> None: ...


def charge(order: int, cents: int = 5, *, lines: list[Line] | None = None, note: Any = None) -> Guarded | None: ...


def codec(function: Callable[..., Any] = charge, *, takes_job: bool = False) -> Codec:
    return Codec("charge", function, takes_job=takes_job)


@pytest.mark.parametrize(
    ("args", "kwargs", "stored"),
    [
        ((7,), {}, '{"order":7}'),
        ((7, 1999), {}, '{"order":7,"cents":1999}'),
        ((), {"cents": 1999, "order": 7}, '{"order":7,"cents":1999}'),
        ((7,), {"lines": [Line("a")]}, '{"order":7,"lines":[{"sku":"a","colour":"red"}]}'),
        ((7,), {"note": None}, '{"order":7,"note":null}'),
    ],
)
def test_only_what_was_passed_is_stored(args: tuple[Any, ...], kwargs: dict[str, Any], stored: str) -> None:
    text = codec().encode(args, kwargs)
    assert text == stored
    assert codec().decode(text).keys() == json.loads(stored).keys()


@pytest.mark.parametrize(
    ("args", "kwargs", "path", "problem"),
    [
        ((), {}, "order", "is required and not given: pass order"),
        ((), {"cents": 5}, "order", "is required"),
        ((7, 5, []), {}, "", "3 positional arguments, and at most 2 are taken: order, cents"),
        ((7,), {"order": 7}, "order", "given twice"),
        ((7,), {"amount": 5}, "amount", "there is no such parameter; there are: order, cents, lines, note"),
        ((7,), {"a\nb": 5}, '["a\\nb"]', "there is no such parameter"),
        (("7",), {}, "order", "Expected `int`, got `str`"),
        ((7,), {"lines": [Line("a"), Line(cast("str", 3))]}, "lines[1].sku", "Expected `str`, got `int`"),
        ((msgspec.UNSET,), {}, "order", "requires it"),
    ],
)
def test_a_call_that_does_not_fit_names_the_argument(
    args: tuple[Any, ...], kwargs: dict[str, Any], path: str, problem: str
) -> None:
    with pytest.raises(BadArguments) as caught:
        codec().encode(args, kwargs)
    assert caught.value.task == "charge"
    assert caught.value.path == path
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ("{}", "order", "give it a default and retry the job, or cancel the job and enqueue it again"),
        ('{"order":7,"tip":1}', "tip", "deploy code that accepts it"),
        ('{"order":7,"t\\np":1}', '["t\\np"]', "does not know it"),
        (json.dumps({"order": 7, "x" * 1000: 1}), f'["{"x" * 80}..."]', "does not know it"),
        ('{"order":7,"lines":[{}]}', "lines[0].sku", "give it a default"),
        ('{"order":"7"}', "order", "Expected `int`, got `str`"),
        ("[]", "", "Expected `object`, got `array`"),
        ("", "", "truncated"),
        ('{"order":7} x', "", "JSON is malformed"),
        ("\x80\x04K\x01.", "", "JSON is malformed"),
        ("\ud800", "", "UnicodeEncodeError"),
        ('{"order":7,"note":' + "[" * 100_000, "", "levels deep"),
        ('{"order":7,"note":' + "9" * 5_000 + "}", "note", "out of range"),
        ('{"order":7,"note":NaN}', "", "JSON is malformed"),
    ],
    ids=range(14),
)
def test_b28_b29_stored_text_that_does_not_fit_says_where_and_what_to_do(text: str, path: str, problem: str) -> None:
    with pytest.raises(BadArguments) as caught:
        codec().decode(text)
    assert caught.value.path == path
    assert problem in caught.value.problem


def test_b28_a_default_of_the_running_code_applies() -> None:
    def newer(order: int, cents: int, currency: str = "EUR") -> None: ...

    assert codec(newer).decode('{"order":7,"cents":5}') == {"order": 7, "cents": 5}


def test_b28_a_stored_result_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(BadResult) as caught:
        codec().decode_result('{"pin":3}')
    assert (caught.value.path, caught.value.problem) == ("pin", "Expected `str`, got `int`")


@pytest.mark.parametrize(
    "text",
    [
        '{"order":"hunter2"}',
        '{"order":7,"lines":[{"sku":"a","colour":"hunter2"}]}',
        '{"order":7,"lines":[{"sku":["hunter2"]}]}',
        '{"order":7,"guarded":{"pin":"hunter2"}}',
        '{"order":7,"guarded":{"pin":"hunter3"}}',
        '{"order":7} hunter2',
    ],
)
def test_b30_errors_of_reading_hold_no_values(text: str) -> None:
    def task(order: int, lines: list[Line], guarded: Guarded) -> None: ...

    with pytest.raises(BadArguments) as caught:
        codec(task).decode(text)
    no_value_in(caught.value)


@pytest.mark.parametrize(
    "value", ["hunter2", "hunter2\ud800", ["hunter2", float("nan")], {"k": b"hunter2"}, Line("hunter2")]
)
def test_b30_errors_of_writing_hold_no_values(value: Any) -> None:
    def task(order: Any) -> int:
        return int(order)

    with pytest.raises(BadResult) as caught:
        codec(task).encode_result(value)
    no_value_in(caught.value)


def no_value_in(error: BaseException) -> None:
    assert "hunter" not in f"{error} {error!r} {vars(error)}"
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_class_that_refuses_what_it_wrote_is_named() -> None:
    guarded = Guarded("ok")
    guarded.pin = "hunter2"
    with pytest.raises(BadResult, match="refused it with ValueError in a check of its own") as caught:
        codec().encode_result(guarded)
    no_value_in(caught.value)


def test_the_fields_of_an_attrs_class_are_known() -> None:
    class Bag:
        __attrs_attrs__ = (SimpleNamespace(name="pin"),)

    assert field_names(Bag) == ("pin",)


def test_without_annotations_everything_is_untyped() -> None:
    there = codec(lambda order, *, cents=5: (order, cents))
    assert there.decode(there.encode(([1, "a"],), {"cents": None})) == {"order": [1, "a"], "cents": None}
    assert there.decode_result(there.encode_result({"a": 1.5})) == {"a": 1.5}
    with pytest.raises(BadArguments, match=r"order\[0\]: `Line` would come back as `dict`: declare its type"):
        there.encode(([Line("a")],), {})


def echo(value: str) -> str:
    return value


def echo_any(value: Any) -> Any:
    return value


@pytest.mark.parametrize("size", [7_900, 8_100, 1_000_000, MAX_BYTES])
def test_b35_below_the_limit_in_bytes_everything_comes_back(size: int) -> None:
    there = codec(echo)
    value = "x" * (size - len('{"value":""}'))
    text = there.encode((value,), {})
    assert len(text) == size
    assert there.decode(text) == {"value": value}
    assert there.decode_result(there.encode_result("\U0001f600" * 2_000)) == "\U0001f600" * 2_000


@pytest.mark.parametrize("value", ["x" * (MAX_BYTES + 1), "\U0001f600" * (MAX_BYTES // 4), ["x" * 50_000_000]])
def test_b35_above_the_limit_is_refused_at_the_call(value: Any) -> None:
    with pytest.raises(
        BadArguments, match=rf"charge: \d+ bytes as JSON, above the limit of {MAX_BYTES}: store it else"
    ):
        codec(echo_any).encode((value,), {})
    with pytest.raises(BadResult, match="pass a reference"):
        codec(echo_any).encode_result(value)
    with pytest.raises(Misuse, match=r"progress: \d+ bytes"):
        encode_any(value, "progress")


def test_none_is_null() -> None:
    assert codec().encode_result(None) == "null"
    assert codec().decode_result("null") is None


def test_the_job_is_no_argument() -> None:
    def task(job: NotThere, order: int) -> None: ...  # type: ignore[name-defined] # noqa: F821

    assert codec(task, takes_job=True).encode((7,), {}) == '{"order":7}'


def test_positional_only_arguments_are_spread_over_the_call() -> None:
    def task(first: int = 1, second: int = 2, /, third: int = 3) -> None: ...

    there = codec(task)
    assert there.spread(there.decode(there.encode((5,), {"third": 7}))) == ((5,), {"third": 7})
    assert codec().spread({"order": 7}) == ((), {"order": 7})
    with pytest.raises(BadArguments, match="first: is positional-only"):
        there.encode((), {"first": 5})
    with pytest.raises(BadArguments, match="first: the running code requires it"):
        there.spread(there.decode('{"second":5}'))


class Service:
    def __call__(self, order: Line) -> None: ...

    def method(self, order: Line) -> None: ...


def wrapping(order: Line) -> None: ...


@functools.wraps(wrapping)
def wrapper(*args: Any, **kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    "function",
    [Service(), Service().method, functools.partial(Service().method), wrapper],
    ids=["call", "method", "partial", "wraps"],
)
def test_every_callable_has_a_signature(function: Callable[..., Any]) -> None:
    assert codec(function).decode(codec(function).encode((Line("a"),), {})) == {"order": Line("a")}


def variadic(*items: int) -> None: ...
def keywords(**options: int) -> None: ...
def foreign(order: list[complex]) -> None: ...
def unreadable(order: int) -> dict[str, Unchecked] | None: ...
def shapeless(order: Duck) -> None: ...


def ambiguous(order: datetime | str) -> None: ...
def unresolved(order: Decimal) -> None: ...
def raw(order: msgspec.Raw) -> None: ...
def jobless(*, order: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (variadic, r"charge: \*items cannot be stored: name each parameter"),
        (keywords, r"charge: \*\*options cannot be stored"),
        (foreign, "charge: parameter order cannot be carried as JSON, because of `complex`: use plain types"),
        (unreadable, "charge: return annotation cannot be carried as JSON, because of `Unchecked`"),
        (shapeless, "because of `Duck`"),
        (ambiguous, "charge: parameter order cannot be carried as JSON: Type unions may not"),
        (unresolved, "charge: parameter order cannot be resolved .*'Decimal'.* not under TYPE_CHECKING"),
        (raw, "because of `Raw`"),
        (iter, "charge: its signature cannot be read"),
    ],
)
def test_a_signature_that_cannot_be_carried_is_misuse(function: Callable[..., Any], problem: str) -> None:
    with pytest.raises(Misuse, match=problem):
        codec(function)


@pytest.mark.parametrize("function", [jobless, lambda: None])
def test_a_task_that_takes_its_job_has_room_for_it(function: Callable[..., Any]) -> None:
    with pytest.raises(Misuse, match="no first parameter that could take it"):
        codec(function, takes_job=True)


def test_a_call_that_does_not_fit_is_told_what_may_have_been_meant() -> None:
    def nojob(job, x: int) -> None: ...  # type: ignore[no-untyped-def] # noqa: ANN001 -- what is missing is the point

    def named(x: int, *, y: int) -> None: ...

    with pytest.raises(BadArguments, match=r"pass job; to be given the run, annotate it as Job$"):
        Codec("nojob", nojob, takes_job=False).encode((), {"x": 1})
    with pytest.raises(BadArguments, match=r"at most 1 are taken: x, y; pass y by name$"):
        Codec("named", named, takes_job=False).encode((1, 2), {})
    with pytest.raises(BadResult, match=r"Expected `None`, got `str`: the task's signature says `-> None`$"):
        Codec("named", named, takes_job=False).encode_result("shipped")
