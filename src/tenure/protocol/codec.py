"""Arguments and results of a task as JSON text, typed by the signature of its function.

Nothing is stored that would not come back: every value is checked at the call, before it is sent anywhere, and refused
with the path to the culprit (case B25). Only JSON is ever read, so stored text can be wrong but cannot run (B29). Error
messages hold types and paths, never values (B30); the error behind them is not chained, as it may quote one.

Defaults that were not passed are not stored: the default of the code that runs the job applies, so that a rolling
deploy can change it. In return, what an older enqueuer could not know must have a default (B28).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from tenure.errors import BadArguments, BadResult, Misuse
from tenure.protocol.signature import Signature, read_signature
from tenure.protocol.values import TOO_DEEP, Flaw, culprit, difference, in_range, name_step

MAX_BYTES = 1_048_576
"""The most UTF-8 bytes that the arguments of a job, or its result, may take as JSON; the same on every store (B35)."""

_SCALARS = (str, int, bool, float, NoneType)
_MISSING = (
    "the running code requires it and what is stored lacks it, as after a deploy that added it:"
    " give it a default and retry the job, or cancel the job and enqueue it again"
)
_UNKNOWN = (
    "it is stored but the running code does not know it, as after a deploy that removed it or is not finished:"
    " deploy code that accepts it and retry the job, or cancel the job and enqueue it again"
)
_ELSEWHERE = "store it elsewhere and pass a reference to it"
_NO_NULL = "Expected `null`"
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_PLACE = re.compile(r" - at (`key` in )?`\$([^`]*)`$")
_QUOTED_VALUE = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)

_encode = msgspec.json.Encoder().encode
_read_any = msgspec.json.Decoder().decode


class Codec:
    """Translate the arguments and results of one task; compiled once from its function.

    Arguments are one JSON object keyed by parameter name. With `takes_job` the first parameter of the function receives
    the job and is no argument. Raises Misuse for a signature that no stored job can carry.
    """

    __slots__ = ("_arguments", "_optional", "_plain", "_plain_result", "_read", "_read_result", "_signature", "_task")

    def __init__(self, task: str, function: Callable[..., Any], *, takes_job: bool) -> None:
        signature = read_signature(task, function, takes_job=takes_job)
        fields = [
            (name, kind) if name in signature.required else (name, kind, UNSET)
            for name, kind in signature.types.items()
        ]
        self._task = task
        self._signature = signature
        self._arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        self._read = msgspec.json.Decoder(self._arguments).decode
        self._read_result = msgspec.json.Decoder(signature.returns).decode
        self._optional = tuple(name for name in signature.types if name not in signature.required)
        self._plain = {name: _plain_types(kind) for name, kind in signature.types.items()}
        self._plain_result = {"": _plain_types(signature.returns)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in the order of the signature."""
        return tuple(self._signature.types)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Bind a call to the signature and write its arguments as one compact JSON object.

        Raises BadArguments, naming the parameter, for a call that does not fit the signature, for a value that would
        not come back equal in type and value, and above MAX_BYTES.
        """
        given = self._by_name(args, kwargs) if args or self._signature.positional_only else kwargs
        try:
            arguments = self._arguments(**given)
        except TypeError:
            raise BadArguments(self._task, *_misfit(self._signature, args, kwargs)) from None
        text = _write(arguments, self._read, plain=_are_plain(given, self._plain))
        if isinstance(text, Flaw):
            raise BadArguments(self._task, *text)
        return text

    def decode(self, text: str) -> dict[str, Any]:
        """Read stored arguments, by parameter name; those that were not passed stay away.

        Raises BadArguments, with the path, for text that is no JSON or does not fit the signature of the running code.
        """
        arguments = _read(self._read, text)
        if isinstance(arguments, Flaw):
            raise BadArguments(self._task, *arguments)
        given = msgspec.structs.asdict(arguments)
        for name in self._optional:
            if given[name] is UNSET:
                del given[name]
        return given

    def spread(self, arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Split decoded arguments into the positional and the keyword part of the call.

        Raises BadArguments when a positional-only parameter has none but a later one has.
        """
        if not self._signature.positional_only:
            return (), arguments
        names = self._signature.positional_only
        leading = tuple(takewhile(arguments.__contains__, names))
        if any(name in arguments for name in names[len(leading) :]):
            raise BadArguments(self._task, names[len(leading)], _MISSING)
        rest = {name: value for name, value in arguments.items() if name not in leading}
        return tuple(arguments[name] for name in leading), rest

    def encode_result(self, value: Any) -> str:
        """Write what the function returned as JSON, None as ``null``.

        Raises BadResult, with the path, for a value that would not come back equal in type and value, and above
        MAX_BYTES.
        """
        text = _write(value, self._read_result, plain=_are_plain({"": value}, self._plain_result))
        if isinstance(text, Flaw):
            raise BadResult(self._task, *self._as_declared(text))
        return text

    def _as_declared(self, flaw: Flaw) -> Flaw:
        if self._signature.returns not in {None, NoneType} or not flaw.problem.startswith(_NO_NULL):
            return flaw
        problem = flaw.problem.replace("`null`", "`None`", 1)
        return flaw._replace(problem=f"{problem}: the task's signature says `-> None`")

    def decode_result(self, text: str) -> Any:
        """Read a stored result; raise BadResult when it does not fit the return annotation of the running code."""
        result = _read(self._read_result, text)
        if isinstance(result, Flaw):
            raise BadResult(self._task, *result)
        return result

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        positional, nameless = self._signature.positional, self._signature.positional_only
        given = dict(zip(positional, args, strict=False))
        if len(args) > len(positional) or (kwargs and not kwargs.keys().isdisjoint((*given, *nameless))):
            raise BadArguments(self._task, *_misfit(self._signature, args, kwargs))
        return given | kwargs


def encode_any(value: Any, where: str) -> str:
    """Write a value without a declared type, such as a job's progress, as JSON; `where` starts the path in an error.

    Raises Misuse for a value that would not come back equal in type and value, and above MAX_BYTES.
    """
    text = _write(value, _read_any, plain=False)
    if isinstance(text, Flaw):
        raise Misuse(f"{where}{text.path}: {text.problem}")
    return text


def decode_any(text: str, where: str) -> Any:
    """Read JSON without a declared type; raise Misuse, starting with `where`, for text that is none."""
    value = _read(_read_any, text)
    if isinstance(value, Flaw):
        raise Misuse(f"{where}{value.path}: {value.problem}")
    return value


def check_json(text: str, where: str) -> None:
    """Raise Misuse, starting with `where`, for a text that is no JSON, and above MAX_BYTES."""
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise Misuse(f"{where}: {size} bytes as JSON, above the limit of {MAX_BYTES}: {_ELSEWHERE}")
    decode_any(text, where)


def _write(value: Any, read: Callable[[bytes], Any], *, plain: bool) -> str | Flaw:
    """Write a value; unless it is plain, read it back and compare."""
    try:
        data = _encode(value)
        if len(data) > MAX_BYTES:
            return Flaw("", f"{len(data)} bytes as JSON, above the limit of {MAX_BYTES}: {_ELSEWHERE}")
        flaw = None if plain else difference(value, read(data))
        return data.decode() if flaw is None else _rooted(flaw)
    except Exception as error:  # noqa: BLE001 -- a value's own code may raise anything
        return _rooted(_culprit(value) or _explain(error))


def _read(read: Callable[[str], Any], text: str) -> Any | Flaw:
    try:
        return read(text)
    except Exception as error:  # noqa: BLE001 -- a value's own code may raise anything
        return _rooted(_explain(error))


def _culprit(value: Any) -> Flaw | None:
    try:
        return culprit(value)
    except RecursionError:
        return Flaw("", TOO_DEEP)


def _rooted(flaw: Flaw) -> Flaw:
    return flaw._replace(path=flaw.path.removeprefix("."))


def _explain(error: Exception) -> Flaw:
    """Say what an error of reading or writing JSON means, without any value that it may quote."""
    if isinstance(error, RecursionError):
        return Flaw("", TOO_DEEP)
    if not isinstance(error, msgspec.DecodeError):
        return Flaw("", f"cannot be carried as JSON ({type(error).__name__})")
    problem = str(error)
    place = _PLACE.search(problem)
    key, path = place.groups() if place else (None, "")
    if error.__cause__ is not None:
        return Flaw(path, f"its class refused it with {type(error.__cause__).__name__} in a check of its own")
    problem = problem[: place.start()] if place else problem
    field = _FIELD.fullmatch(problem)
    if field is not None:
        verb, name = field.groups()
        return Flaw(path + name_step(name), _MISSING if verb == "missing required" else _UNKNOWN)
    problem = _QUOTED_VALUE.sub(r"\1", problem)
    return Flaw(path, f"the key: {problem}" if key else problem)


def _misfit(signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flaw:
    """Say why a call does not fit the signature."""
    names = ", ".join(signature.types) or "none"
    if len(args) > len(signature.positional):
        by_name = [name for name in signature.types if name not in signature.positional]
        remedy = f"; pass {', '.join(by_name)} by name" if by_name else ""
        most = len(signature.positional)
        return Flaw("", f"{len(args)} positional arguments, and at most {most} are taken: {names}{remedy}")
    by_position = signature.positional[: len(args)]
    for name in kwargs:
        if name not in signature.types:
            return _rooted(Flaw(name_step(name), f"there is no such parameter; there are: {names}"))
        if name in by_position:
            return Flaw(name, "given twice, by position and by name: pass it once")
        if name in signature.positional_only:
            return Flaw(name, "is positional-only: pass it by position")
    missing = [name for name in signature.types if name in signature.required.difference(by_position, kwargs)]
    problem = f"is required and not given: pass {', '.join(missing)}"
    is_job = missing[0] == "job" == next(iter(signature.types)) and signature.types["job"] is Any
    return Flaw(missing[0], f"{problem}; to be given the run, annotate it as Job" if is_job else problem)


def _plain_types(annotation: Any) -> tuple[type, ...]:
    """Tell the scalar types that come back as they are wherever `annotation` admits nothing but scalars."""
    if annotation is Any:
        return _SCALARS
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = tuple(NoneType if member is None else member for member in members)
    return kinds if all(any(kind is scalar for scalar in _SCALARS) for kind in kinds) else ()


def _are_plain(given: dict[str, Any], plain: dict[str, tuple[type, ...]]) -> bool:
    """Tell whether every value comes back as it is, without trying; every enqueue waits for this answer."""
    for name, value in given.items():
        kind = type(value)
        if kind not in plain[name] or (kind is int and not in_range(value)) or (kind is float and not isfinite(value)):
            return False
    return True
