"""A task's signature as the codec needs it: which arguments there are, and of what type each one is.

Each annotation is resolved by itself, so that the first parameter, which takes the job, may be annotated with a name
that exists for type checkers only, and so that an error can name its parameter.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec

from tenure.errors import Misuse

if sys.version_info >= (3, 14):
    from annotationlib import Format

_VARIADIC = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
_READ_AS = (dict, list, str, float, bool)


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a task by name, in the order of the signature."""

    types: dict[str, Any]
    returns: Any
    positional: tuple[str, ...]  # may be given by position
    positional_only: tuple[str, ...]
    required: frozenset[str]


def read_signature(task: str, function: Callable[..., Any], *, takes_job: bool) -> Signature:
    """Read the signature of `function`, without its first parameter when that one takes the job.

    Raises Misuse, naming the parameter, for what no stored job can carry: ``*args`` and ``**kwargs``, annotations that
    cannot be resolved at run time, and types that do not come back from JSON.
    """
    declared = _declared(task, function)
    parameters = list(declared.parameters.values())
    if takes_job:
        if not parameters or parameters[0].kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise Misuse(f"{task}: it is to be given its job, but has no first parameter that could take it")
        del parameters[0]
    for parameter in parameters:
        if parameter.kind in _VARIADIC:
            shown = _VARIADIC[parameter.kind] + parameter.name
            raise Misuse(f"{task}: {shown} cannot be stored: name each parameter, or take one `list` or `dict`")
    names = _globals(function)
    return Signature(
        types={p.name: _resolve(task, f"parameter {p.name}", p.annotation, names) for p in parameters},
        returns=_resolve(task, "return annotation", declared.return_annotation, names),
        positional=tuple(p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY),
        positional_only=tuple(p.name for p in parameters if p.kind is Parameter.POSITIONAL_ONLY),
        required=frozenset(p.name for p in parameters if p.default is Parameter.empty),
    )


def _declared(task: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        if sys.version_info >= (3, 14):
            return inspect.signature(function, annotation_format=Format.FORWARDREF)
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise Misuse(f"{task}: its signature cannot be read ({error}): register a Python function") from error


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    target: Any = inspect.unwrap(function)
    target = getattr(target, "func", target)
    called = target if hasattr(target, "__globals__") else type(target).__call__
    return getattr(called, "__globals__", {})


def _resolve(task: str, where: str, annotation: Any, names: dict[str, Any]) -> Any:
    if annotation is Parameter.empty:
        return Any
    alone = SimpleNamespace(__annotations__={"it": annotation})
    try:
        hint = get_type_hints(alone, globalns=names, include_extras=True)["it"]
    except Exception as error:
        remedy = "write types that exist at run time at the top of the module, not under TYPE_CHECKING"
        raise Misuse(f"{task}: {where} cannot be resolved ({error}): {remedy}") from error
    try:
        foreign = next(_foreign(msgspec.inspect.type_info(hint), set()), None)
    except Exception as error:
        raise Misuse(f"{task}: {where} cannot be carried as JSON: {error}") from error
    if foreign is not None:
        remedy = "use plain types, a dataclass or a msgspec.Struct"
        raise Misuse(f"{task}: {where} cannot be carried as JSON, because of `{foreign}`: {remedy}")
    return hint


def _foreign(info: Any, seen: set[int]) -> Iterator[str]:
    """Name the types inside `info` that no JSON is ever read as; `object` and `Iterable` are fine, `complex` is not."""
    if isinstance(info, msgspec.inspect.CustomType) and not _is_read(info.cls):
        yield info.cls.__name__
    if isinstance(info, msgspec.inspect.RawType | msgspec.inspect.ExtType):
        yield type(info).__name__.removesuffix("Type")
    if isinstance(info, tuple):
        for part in info:
            yield from _foreign(part, seen)
    if isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field) and id(info) not in seen:
        seen.add(id(info))
        for name in info.__struct_fields__:
            yield from _foreign(getattr(info, name), seen)


def _is_read(kind: type) -> bool:
    try:
        return any(issubclass(known, kind) for known in _READ_AS)
    except TypeError:  # a protocol that cannot be checked at run time
        return False
