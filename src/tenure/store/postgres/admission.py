"""What a connection must show before a verb uses it: the primary, durable settings, our tables, an identity."""

from __future__ import annotations

from dataclasses import dataclass

from tenure.errors import BadSettings, Unavailable
from tenure.protocol.op import Op, ask
from tenure.store.contract import Verbs
from tenure.store.migrate import pending
from tenure.store.postgres.target import Target
from tenure.store.postgres.translate import schema_missing
from tenure.store.statements import Batch, Call, Row

OLDEST = 140000
DURABLE = frozenset({"on", "remote_apply"})


class NotPrimary(Unavailable):
    """The server is a standby: leases are decided on the primary only (R11)."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What the greeting found out about a connection."""

    pooled: bool
    identity: str


def greet(verbs: Verbs, target: Target, *, backend: int, version: int) -> Op[Greeting]:
    """Admit a new connection, whose handshake announced `backend` and `version`.

    Raises BadSettings where an acknowledged generation could be lost (R42), a text could not be stored or tables are
    missing, and NotPrimary (R11).
    If the identity of the database has changed, the floor is raised before anything can be claimed (R44).
    """
    check_version(target, version)
    ((standby, commit, fsync, unlogged, applied, identity, pooled, encoding, _),) = yield from _one(
        Call("greet", {"pid": backend})
    )
    if standby:
        raise NotPrimary(f"{target.label} is a standby, where no lease can be decided: connect to the primary (R11)")
    _check_encoding(target, encoding)
    check_commit(target.label, commit)
    _check_durable(target, fsync, unlogged)
    missing = pending("tenure.store.postgres", applied)
    if missing:
        raise schema_missing(target, ", ".join(migration.name for migration in missing))
    yield from verbs.admit()
    return Greeting(pooled, identity)


def check_version(target: Target, version: int) -> None:
    """Raise BadSettings for a server older than PostgreSQL 14."""
    if version < OLDEST:
        raise BadSettings(f"{target.label} is PostgreSQL {version // 10000}; Tenure needs {OLDEST // 10000} or newer")


def check_commit(where: str, commit: str) -> None:
    """Raise BadSettings where a commit is acknowledged before it is safe (R42)."""
    if commit not in DURABLE:
        raise BadSettings(
            f"{where} has synchronous_commit = {commit}: a crash or a failover could lose a claim that was already"
            " acknowledged, and issue its generation again. Set it to on, for this role: ALTER ROLE … SET"
            " synchronous_commit = on"
        )


def _check_encoding(target: Target, encoding: str) -> None:
    if encoding != "UTF8":
        raise BadSettings(
            f"{target.label} has the encoding {encoding}, in which not every text can be stored: one such text would"
            " hold up everything that is stored with it. Create a database with ENCODING 'UTF8' (TEMPLATE template0)"
        )


def _check_durable(target: Target, fsync: str, unlogged: list[str]) -> None:
    if fsync != "on":
        raise BadSettings(
            f"{target.label} has fsync = {fsync}: a power cut could lose a claim that was already acknowledged, and"
            " issue its generation again. Set fsync = on in postgresql.conf"
        )
    if unlogged:
        names = ", ".join(sorted(unlogged))
        raise BadSettings(
            f"{target.label}: {names} not logged: a crash empties such a table, and generations would start again. Run"
            f" ALTER TABLE {min(unlogged)} SET LOGGED"
        )


def _one(call: Call) -> Op[list[Row]]:
    (answer,) = yield from ask(Batch((call,)))
    return answer
