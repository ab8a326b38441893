"""The kinds of settings: a value of another kind than its field says is refused by name, before it is compared."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tenure.errors import BadSettings

_WORDS = {float: "a number", int: "a whole number", str: "text", tuple: "a tuple of texts", type(None): "None"}


def check_kinds(settings: Any) -> None:
    """Raise BadSettings for the first field of a dataclass whose value is not of the kind that its annotation says."""
    for name, kinds in _kinds(settings.__class__).items():
        value = getattr(settings, name)
        if type(value) in kinds and type(value) is not tuple:
            continue
        if not any(_is_a(value, kind) for kind in kinds):
            wanted = " or ".join(_WORDS.get(kind, kind.__name__) for kind in kinds)
            raise BadSettings(f"{name} is {value!r}: it must be {wanted}")


@cache
def _kinds(settings: Any) -> dict[str, tuple[type, ...]]:
    hints = get_type_hints(settings)
    return {field.name: _plain(hints[field.name]) for field in fields(settings)}


def _plain(hint: Any) -> tuple[type, ...]:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return tuple(get_origin(option) or option for option in options)


def _is_a(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind in {bool, object}
    if kind is tuple:
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
