"""`RedisFence`: compared and raised by one script, on the Redis server that holds the data (D3).

What holds: a write and its mark are made in one atomic step; a late write is refused there, however long it was on its
way; what the client library sends again after a lost answer is applied once. For redis-py's blocking and asyncio
clients, one server or a cluster, Redis 6.2 and newer, Valkey.

What does not: whatever makes the server forget a fence lets older tokens in again, be it a crash before the write was
on disk, a failover to a replica that lagged behind, eviction, FLUSHALL or a restored backup. Commands that are sent
around the fence are not seen by it. `RedisFence.check` tells which class of durability is in force.

To be configured: `appendonly yes`, `appendfsync always`, `no-appendfsync-on-rewrite no`, `maxmemory-policy noeviction`
(or a `volatile-…` one, which spares keys without an expiry), and no automatic failover.
"""

from tenure.fences.redis.durability import Durability
from tenure.fences.redis.fence import FencedScript, RedisFence

__all__ = ["Durability", "FencedScript", "RedisFence"]
