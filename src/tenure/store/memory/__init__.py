"""The store in memory: the executable meaning of the contract, the tests' fast store and the simulator's world.

`world` holds the data, the clock and one undo log; `moves` carries out a move of the lifecycle table on a row; `jobs`,
`leases` and `upkeep` are the verbs, each a plain function of the world; `store` makes operations of them and drives
them in sessions: one lock, rollback on any exception.
"""

from tenure.store.memory.store import AT_ONCE, Do, MemoryBell, MemoryConnection, MemoryStore, MemoryVerbs

__all__ = ["AT_ONCE", "Do", "MemoryBell", "MemoryConnection", "MemoryStore", "MemoryVerbs"]
