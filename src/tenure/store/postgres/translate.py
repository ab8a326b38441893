"""What an error of PostgreSQL or of the way to it means for the caller: nothing done, not known, or wrongly set up."""

from __future__ import annotations

import psycopg

from tenure.errors import BadSettings, Misuse, OutcomeUnknown, TenureError, Unavailable
from tenure.store.driver import Again
from tenure.store.postgres.target import Target

_AGAIN = {
    "40001": "another transaction was faster",
    "40P01": "PostgreSQL resolved a deadlock against this transaction",
    "55P03": "another transaction holds a lock",
    "23505": "another transaction took the unique key just then",
    "TN001": "the server behind the pooler has changed",
    "0A000": "the tables have changed",
    "26000": "a prepared statement is gone",
    "42P05": "a prepared statement is there already",
}
_NO_SCHEMA = {"42P01", "42703", "42883", "3F000"}
_SHUTDOWN = {"57P01", "57P02", "57P03", "57P05"}


class ConnectionLost(psycopg.OperationalError):
    """Raised by ourselves where the answer of a server does not come in time, or cannot be relied on."""


def translate(error: psycopg.Error, target: Target, *, changing: bool) -> TenureError:
    """Say what `error` means; `changing` tells that something that changes jobs had been sent."""
    return translate_code(error.sqlstate, error.diag.message_primary or str(error), target, changing=changing)


def translate_code(code: str | None, said: str, target: Target, *, changing: bool) -> TenureError:
    """Say what an error of any client library means, by its SQLSTATE and the first thing that it says."""
    said = (target.without_password(said).strip().splitlines() or ["no reason given"])[0]
    if code is None or code.startswith("08") or code in _SHUTDOWN:
        return _lost(said, target, changing=changing)
    return _refused(code, said, target)


def _refused(code: str, said: str, target: Target) -> TenureError:
    if code in _AGAIN:
        return Again(f"{target.label}: {_AGAIN[code]}; nothing was done, try again")
    if code in _NO_SCHEMA:
        return schema_missing(target)
    if code == "42501":
        return BadSettings(f"{target.label}: {said}: grant this role the rights on all tables of Tenure")
    if code == "25P02":
        return Misuse(f"{target.label}: the caller's transaction has already failed: roll it back first")
    if code == "57014":
        return Unavailable(f"{target.label}: the request took longer than its timeout; nothing was done, try again")
    # Errors of values (class 22) may quote them.
    told = f"error {code}" if code.startswith("22") else said
    return Unavailable(f"{target.label}: {told}; nothing was done")


def unreachable(error: psycopg.Error, target: Target) -> Unavailable:
    """Say that no connection could be made."""
    said = target.without_password(str(error)).strip().splitlines() or [type(error).__name__]
    return Unavailable(f"{target.label} cannot be reached: {said[0]}; nothing was done, try again later")


def schema_missing(target: Target, names: str = "") -> BadSettings:
    """Say that tables are missing, all of them or those of the migrations `names`."""
    lacks = f"lacks the migrations {names}" if names else "has no tables of Tenure, or not those of this version"
    return BadSettings(f"{target.label} {lacks}: run `tenure migrate --store {target.name}` as the owner of the tables")


def _lost(said: str, target: Target, *, changing: bool) -> TenureError:
    if changing:
        return OutcomeUnknown(f"{target.label}: the answer was lost ({said}); the change was made whole or not at all")
    return Unavailable(f"{target.label}: the connection was lost ({said}); nothing was done, try again")
