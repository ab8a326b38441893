"""Which values come back from JSON as they were, and the path to the first one that does not.

Encoding alone proves nothing: NaN becomes null, a tuple becomes a list, two keys become one. So a value is written,
read with its declared type, and compared with the original: the same type and an equal value, all the way down
(`difference`). What cannot be written or read at all is searched for its first offender instead (`culprit`).

The one change allowed is an `int` that arrives as the `float` it was declared to be, when that loses nothing. An aware
datetime keeps its wall clock, instant and offset; its `tzinfo` arrives as a fixed offset, so the name of a zone (and
with it the rule for other dates) is not carried. No message ever contains a value: types and paths only.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import zip_longest
from operator import eq, is_
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct

MAX_DEPTH = 100
"""Containers inside each other; every reader has room for that, whatever its own stack already holds."""

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep, or deeper than the stack allows: pass a flatter value"
_CHANGED = "does not come back equal: pass it in another form, such as `str`"
_SHOWN = 80  # characters of a name or key that a message shows


class Flaw(NamedTuple):
    """What is wrong with a value, and where: `path` is relative to the value, such as ``.price`` or ``[3]``."""

    path: str
    problem: str

    def under(self, step: str) -> Flaw:
        """Tell the same of the container that holds the value at `step`."""
        return Flaw(step + self.path, self.problem)


def difference(sent: Any, back: Any, depth: int = 0) -> Flaw | None:
    """Compare a value with what came back for it, by type and content, and tell the first difference."""
    if sent is back:  # what Python keeps only one of: None, True, small integers, members of enums
        return None
    kind = type(sent)
    if kind is not type(back):
        return _converted(sent, back)
    equal = _EQUAL.get(kind)
    if equal is not None:
        return None if equal(sent, back) else Flaw("", _limit(sent) or _CHANGED)
    return Flaw("", TOO_DEEP) if depth >= MAX_DEPTH else _contents(sent, back, kind, depth + 1)


def culprit(value: Any, above: frozenset[int] = frozenset()) -> Flaw | None:
    """Search a value that could not be written or read for the first part that JSON cannot carry."""
    if id(value) in above:
        return Flaw("", "contains itself: pass a value without cycles")
    if len(above) >= MAX_DEPTH:
        return Flaw("", TOO_DEEP)
    parts = _parts(value)
    if parts is None:
        problem = _limit(value) or (None if _is_writable(value) else _unsupported(value))
        return Flaw("", problem) if problem else None
    bad_key = _bad_key(value) if isinstance(value, dict) else None
    above |= {id(value)}
    return bad_key or next((flaw.under(step) for step, part in parts if (flaw := culprit(part, above))), None)


def key_step(key: Any) -> str:
    """Write a dictionary key as a step of a path: ``["k"]``, ``[3]``, or only the type of anything else."""
    if type(key) is str:
        return f"[{json.dumps(key if len(key) <= _SHOWN else key[:_SHOWN] + '...')}]"
    return f"[{key}]" if type(key) is int and in_range(key) else f"[<{type(key).__name__}>]"


def name_step(name: str) -> str:
    """Write the name of a field as a step of a path; one that no field can have is written as a key."""
    return f".{name}" if name.isidentifier() and len(name) <= _SHOWN else key_step(name)


def in_range(number: int) -> bool:
    """Tell whether a signed or an unsigned 64-bit integer holds the number, as every reader of JSON can be asked to."""
    return -(2**63) <= number < 2**64


@lru_cache(maxsize=1024)
def field_names(kind: type) -> tuple[str, ...] | None:
    """Name the fields of a Struct, dataclass, attrs class or named tuple; None for any other type."""
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(field.name for field in kind.__attrs_attrs__)
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def _same_int(sent: int, back: int) -> bool:
    return sent == back and in_range(sent)


def _same_float(sent: float, back: float) -> bool:
    return sent == back and math.copysign(1.0, sent) == math.copysign(1.0, back)


def _same_decimal(sent: Decimal, back: Decimal) -> bool:
    return sent.is_finite() and sent.as_tuple() == back.as_tuple()


def _same_clock(sent: Any, back: Any) -> bool:
    """Compare datetimes or times; `==` never holds between zones inside a repeated hour (PEP 495)."""
    return (
        sent.replace(tzinfo=None) == back.replace(tzinfo=None)
        and sent.utcoffset() == back.utcoffset()
        and (sent.tzinfo is None) == (back.tzinfo is None)
        and (sent.tzinfo is not None or sent.fold == back.fold)
    )


_EQUAL: dict[type, Callable[[Any, Any], bool]] = {
    type(None): is_,
    bool: is_,
    int: _same_int,
    float: _same_float,
    str: eq,
    bytes: eq,
    bytearray: eq,
    Decimal: _same_decimal,
    datetime: _same_clock,
    time: _same_clock,
    date: eq,
    timedelta: eq,
}


def _limit(value: Any) -> str | None:
    """Tell what no annotation can mend about a scalar."""
    kind = type(value)
    if (kind is float and not math.isfinite(value)) or (kind is Decimal and not value.is_finite()):
        return "NaN and infinity are not JSON: pass None or a `str` for them"
    if kind is int and not in_range(value):
        return "an `int` outside 64 bits: pass it as `str`"
    if kind is str and any("\ud800" <= letter <= "\udfff" for letter in value):
        return "a `str` with a lone surrogate is not valid Unicode: pass it as `bytes`, declared so, or repair it"
    return None


def _contents(sent: Any, back: Any, kind: type, depth: int) -> Flaw | None:
    compare = _INSIDE.get(kind)
    if compare is not None:
        return compare(sent, back, depth)
    names = field_names(kind)
    if names is not None:
        return _record(sent, back, names, depth)
    return None if sent == back else Flaw("", _CHANGED)


def _sequence(sent: Sequence[Any], back: Sequence[Any], depth: int) -> Flaw | None:
    for index, (part, returned) in enumerate(zip(sent, back, strict=True)):
        flaw = difference(part, returned, depth)
        if flaw is not None:
            return flaw.under(f"[{index}]")
    return None


def _mapping(sent: Mapping[Any, Any], back: Mapping[Any, Any], depth: int) -> Flaw | None:
    for (key, part), (known, returned) in zip_longest(sent.items(), back.items(), fillvalue=(UNSET, UNSET)):
        if difference(key, known) is not None:
            return Flaw(key_step(key), _key_problem(key, known))
        flaw = difference(part, returned, depth)
        if flaw is not None:
            return flaw.under(key_step(key))
    return None


def _set(sent: AbstractSet[Any], back: AbstractSet[Any], depth: int) -> Flaw | None:
    returned = {part: part for part in back}
    for part in sent:
        flaw = difference(part, returned[part], depth) if part in returned else Flaw("", _limit(part) or _CHANGED)
        if flaw is not None:
            return flaw.under("[...]")
    return None


def _record(sent: Any, back: Any, names: tuple[str, ...], depth: int) -> Flaw | None:
    for name in names:
        flaw = difference(getattr(sent, name, UNSET), getattr(back, name, UNSET), depth)
        if flaw is not None:
            return flaw.under(f".{name}")
    return None


_INSIDE: dict[type, Callable[[Any, Any, int], Flaw | None]] = {
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
    set: _set,
    frozenset: _set,
}


def _parts(value: Any) -> Iterable[tuple[str, Any]] | None:
    kind: type = type(value)
    names = field_names(kind)
    if names is not None:
        fields = ((f".{name}", getattr(value, name, UNSET)) for name in names)
        return ((step, part) for step, part in fields if part is not UNSET)
    if isinstance(value, dict):
        return ((key_step(key), part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return ((f"[{index}]", part) for index, part in enumerate(value))
    return (("[...]", part) for part in value) if isinstance(value, set | frozenset) else None


def _bad_key(value: dict[Any, Any]) -> Flaw | None:
    for key in value:
        problem = _limit(key)
        if problem is not None:
            return Flaw(key_step(key), f"the key: {problem}")
        if not _is_writable({key: None}):
            return Flaw(key_step(key), f"`{type(key).__name__}` cannot be the type of a key: use `str` keys")
    return None


def _is_writable(value: Any) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
    return True


_EXAMPLES: dict[type, str] = {tuple: "tuple[int, ...]", set: "set[int]", frozenset: "frozenset[int]"}
_JSON_TYPES = (dict, list, str, int, float, type(None))


def _converted(sent: Any, back: Any) -> Flaw | None:
    kind: type = type(sent)
    other: type = type(back)
    if kind is int and other is float and in_range(sent):
        return None if sent == back else Flaw("", "an `int` of this size loses digits as a `float`: declare `int`")
    if (problem := _limit(sent)) is not None:
        return Flaw("", problem)
    if issubclass(kind, other) and not issubclass(kind, Enum):
        remedy = f"pass a plain `{other.__name__}`"
    elif other in _JSON_TYPES:
        remedy = f"declare its type in the task's signature, e.g. `{_EXAMPLES.get(kind, kind.__name__)}`"
    else:
        remedy = f"pass a `{other.__name__}`"
    return Flaw("", f"`{kind.__name__}` would come back as `{other.__name__}`: {remedy}")


def _key_problem(key: Any, known: Any) -> str:
    if (problem := _limit(key)) is not None:
        return f"the key: {problem}"
    kind = type(key).__name__
    if known is UNSET or type(key) is type(known):
        return "would be lost: its key is not declared, or is written like another key"
    return (
        f"a key of type `{kind}` would come back as `{type(known).__name__}`:"
        f" declare it in the task's signature, e.g. `dict[{kind}, str]`"
    )


def _unsupported(value: Any) -> str:
    kind = type(value).__name__
    plain = next((base.__name__ for base in _EQUAL if isinstance(value, base)), None)
    remedy = f"pass a plain `{plain}`" if plain else "pass plain values, a dataclass or a msgspec.Struct"
    return f"`{kind}` cannot be written as JSON: {remedy}"
