"""Arguments as people type them: `key=value` pairs or JSON, and each value read by the type of its parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from inspect import formatannotation
from typing import Any

import msgspec

from tenure.cli.streams import read_input
from tenure.errors import Misuse

FORMS = "arguments are key=value pairs, one JSON object, or - for a JSON object on standard input"

Given = dict[str, msgspec.Raw | str]
"""Arguments by name: JSON where an object was given, text as it was typed after a `key=`."""

_SHOWN = 60  # characters of a typed value that an error repeats
_BOOLEANS = {"true": b"true", "1": b"true", "false": b"false", "0": b"false"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_read = msgspec.json.Decoder(msgspec.Raw).decode
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read_arguments(words: Sequence[str]) -> Given:
    """Read arguments by name; raises Misuse for words that are none, never quoting what may be a value (B30)."""
    if len(words) == 1 and (words[0] == "-" or words[0].lstrip().startswith("{")):
        text = read_input() if words[0] == "-" else words[0]
        try:
            return dict(_read_object(text))
        except msgspec.DecodeError as error:
            raise Misuse(f"the arguments are no JSON object: {error}") from None
    given: Given = {}
    for number, word in enumerate(words, start=1):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Misuse(f"argument {number} has no name: {FORMS}")
        if name in given:
            raise Misuse(f"argument {name} is given twice")
        given[name] = value
    return given


def untyped(value: msgspec.Raw | str) -> msgspec.Raw:
    """Read a value of which nothing is known: JSON where it is valid JSON, else text."""
    return _json(value) or _text(value) if isinstance(value, str) else value


def typed(value: msgspec.Raw | str, kind: Any) -> msgspec.Raw | None:
    """Find the JSON from which `kind` reads what was typed; None where it means nothing as a `kind`.

    Where `kind` admits text, what was typed is text as it is, unless another part of a union takes it as JSON: 1234 is
    text for `str` and a number for `int | str`, and null is None wherever None is admitted.
    """
    if not isinstance(value, str):
        return value
    return next((reading for reading in _readings(value, kind) if _flaw(reading, kind) is None), None)


def misfit(value: str, kind: Any, *, hidden: bool) -> str:
    """Say that what was typed means nothing as a `kind`; a hidden value is not repeated."""
    if hidden:
        return f"the value given is no {formatannotation(kind)}"
    shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
    return f"{shown!r} is no {formatannotation(kind)}{_why(value, kind)}"


def _why(value: str, kind: Any) -> str:
    if value == "None" and _flaw(msgspec.Raw(b"null"), kind) is None:
        return ": None is written null"
    flaw = _flaw(_text(value), kind) or ""
    return "" if flaw.startswith("Expected `") else f" ({flaw})"


def _readings(text: str, kind: Any) -> Iterator[msgspec.Raw]:
    json = _json(text)
    if json is not None and not (text.lstrip().startswith('"') and _admits_text(kind)):
        yield json
    yield _text(text)
    if text.lower() in _BOOLEANS:
        yield msgspec.Raw(_BOOLEANS[text.lower()])
    if _WHOLE.fullmatch(text):
        yield msgspec.Raw(str(int(text)).encode())
    if _NUMBER.fullmatch(text):
        yield msgspec.Raw(repr(float(text)).encode())


def _admits_text(kind: Any) -> bool:
    info = msgspec.inspect.type_info(kind)
    members = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return any(isinstance(member, msgspec.inspect.StrType) for member in members)


def _flaw(reading: msgspec.Raw, kind: Any) -> str | None:
    try:
        msgspec.json.decode(reading, type=kind)
    except Exception as error:  # noqa: BLE001 -- a value's own code may raise anything
        return str(error)
    return None


def _json(text: str) -> msgspec.Raw | None:
    try:
        return _read(text)
    except msgspec.DecodeError:
        return None


def _text(text: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(text))
