"""What may be seen of a job: pure, and the only place that decides what is hidden (B30).

Arguments, results, progress, messages and tracebacks are shown only when asked for (`reveal`); arguments that the job
declares secret never. Everything else about a job is for every operator to see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import msgspec

from tenure.protocol.job import Failure, HistoryEntry, JobRecord

HIDDEN = "•••"
UNREADABLE = "unreadable: this is no JSON"
PAYLOAD = ("arguments", "result", "progress")

_SHORTEST = 4  # a shorter secret would blot out ordinary words

_read = msgspec.json.Decoder(msgspec.Raw).decode
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def listed(record: JobRecord) -> dict[str, Any]:
    """Describe a job in a list: its fields, its phase, and neither payload nor messages."""
    shown = {field.name: getattr(record, field.name) for field in fields(record) if field.name not in PAYLOAD}
    return shown | {"phase": record.phase, "failure": hide(record.failure, record.reason)}


def whole(record: JobRecord, history: list[HistoryEntry], *, reveal: bool) -> dict[str, Any]:
    """Describe one job: its fields, its phase, its payload as JSON values, its history."""
    return listed(record) | {
        **payload(record, reveal=reveal),
        "failure": failure(record, record.failure, record.reason, reveal=reveal),
        "history": [
            {field.name: getattr(entry, field.name) for field in fields(entry)}
            | {"failure": failure(record, entry.failure, entry.reason, reveal=reveal)}
            for entry in history
        ],
    }


def payload(record: JobRecord, *, reveal: bool) -> dict[str, msgspec.Raw | dict[str, Any] | str | None]:
    """Describe arguments, result and progress: each None where there is none."""
    if not reveal:
        return {name: None if getattr(record, name) is None else HIDDEN for name in PAYLOAD}
    return {"arguments": _arguments(record), "result": _value(record.result), "progress": _value(record.progress)}


def failure(record: JobRecord, met: Failure | None, reason: str | None, *, reveal: bool) -> Failure | None:
    """Describe what went wrong; a revealed message still does not carry the values of secret arguments."""
    if met is None or not reveal:
        return hide(met, reason)
    message, traceback = met.message, met.traceback
    for secret in _secrets(record):
        message, traceback = message.replace(secret, HIDDEN), traceback.replace(secret, HIDDEN)
    return replace(met, message=message, traceback=traceback)


def hide(met: Failure | None, reason: str | None) -> Failure | None:
    """Keep a failure's type and place, and a message that is the `reason` too, which every operator sees anyway."""
    if met is None:
        return None
    return replace(met, message=met.message if met.message and met.message == reason else HIDDEN, traceback=HIDDEN)


def _arguments(record: JobRecord) -> dict[str, Any] | msgspec.Raw | str | None:
    try:
        given = _read_object(record.arguments)
    except msgspec.DecodeError:
        # What cannot be told apart by name must not be shown if any of it may be secret.
        return HIDDEN if record.secret else _value(record.arguments)
    return {name: HIDDEN if name in record.secret else value for name, value in given.items()}


def _value(text: str | None) -> msgspec.Raw | str | None:
    if text is None:
        return None
    try:
        # The text itself goes on, so that numbers stay exact.
        return _read(text)
    except msgspec.DecodeError:
        return UNREADABLE


def _secrets(record: JobRecord) -> list[str]:
    try:
        given = msgspec.json.decode(record.arguments)
    except msgspec.DecodeError:
        return []
    named = [given[name] for name in record.secret if name in given] if isinstance(given, dict) else []
    return sorted({text for text in _leaves(named) if len(text) >= _SHORTEST}, key=len, reverse=True)


def _leaves(value: object) -> Iterator[str]:
    """Yield every text and number inside a JSON value, as a message would show it."""
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
