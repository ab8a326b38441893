"""Which class of durability a Redis server's settings put a fence in (R42)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tenure.errors import TenureError
from tenure.fences.redis.connect import Command, Link, as_texts, was_answered
from tenure.protocol.op import Op, ask

_DURABLE = {
    "appendonly": ("yes",),
    "appendfsync": ("always",),
    "no-appendfsync-on-rewrite": ("no",),
    # The volatile ones evict keys with an expiry only, which a fence never has.
    "maxmemory-policy": ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"),
}


@dataclass(frozen=True, slots=True)
class Durability:
    """What the settings promise: without a weakness a fence is durable, otherwise it is only advisory."""

    weaknesses: tuple[str, ...]

    @property
    def kind(self) -> Literal["durable", "advisory"]:
        """The name of the class in force."""
        return "advisory" if self.weaknesses else "durable"


def look(link: Link) -> Op[Durability]:
    """Ask the server, or every primary of a cluster, for its settings and replicas."""
    if not link.cluster:
        return Durability(tuple((yield from _weaknesses(None))))
    found: list[str] = []
    for node in link.primaries():
        weaknesses = yield from _weaknesses(node)
        found += [f"{node.name}: {weakness}" for weakness in weaknesses]
    return Durability(tuple(found))


def _weaknesses(node: Any) -> Op[list[str]]:
    settings: dict[str, str] = {}
    try:
        for pattern in ("*append*", "maxmemory-policy"):
            settings |= as_texts((yield from ask(Command(("CONFIG GET", pattern), keyless=True, node=node))))
    except TenureError as error:
        if not was_answered(error):
            raise
        return [f"the server does not show its settings: {error.__cause__}"]
    replication = as_texts((yield from ask(Command(("INFO", "replication"), keyless=True, node=node))))
    return list(_judged(settings, replication))


def _judged(settings: Mapping[str, str], replication: Mapping[str, str]) -> Iterator[str]:
    for name, good in _DURABLE.items():
        value = settings.get(name, "unknown")
        if value not in good:
            yield f"{name} is {value}, not {good[0]}"
    if replication.get("role") != "master":
        yield "the server is a replica"
    if replication.get("connected_slaves", "0") != "0":
        yield "it has replicas: a failover may lose the last writes, and a fence with them"
