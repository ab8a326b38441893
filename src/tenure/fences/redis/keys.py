"""Which keys a command touches, and in which slot of a cluster a key lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tenure.errors import Misuse
from tenure.fences.redis.connect import as_text
from tenure.protocol.names import check_name

MOST_WORDS = 7000
"""How many words one command may have: a script cannot lay out more."""

FENCE, RESETS = "tenure:fence:", "tenure:resets:"
"""What a fence's own keys begin with; the scope's tag follows."""

_UNFIT = {"noscript", "blocking", "movablekeys"}
_ESCAPING = {"MOVE", "SPUBLISH"}

Words = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """What the server says of one of its commands: where its keys stand, and whether it writes."""

    writes: bool
    first: int
    last: int
    step: int

    def keys(self, words: Words) -> list[bytes]:
        """List the keys among the words of a command."""
        last = self.last if self.last >= 0 else len(words) + self.last
        return [as_key(key) for key in words[self.first : last + 1 : self.step]]


def read_spec(name: str, told: Any) -> Spec:
    """Read the server's answer to COMMAND INFO; raises Misuse for what cannot run under a fence."""
    if told is None:
        raise Misuse(f"the server knows no command {name}")
    flags = {as_text(flag).lower() for flag in told[2]}
    first, last, step = told[3:6]
    if first == 0 or flags & _UNFIT:
        raise Misuse(f"{name} does not tell which keys it touches, or cannot run in a script: use fence.script")
    return Spec("write" in flags, first, last, step)


def read_name(words: Words) -> str:
    """Return the name of a command; raises Misuse for one that cannot run under a fence."""
    if isinstance(words, str | bytes) or not 1 <= len(words) <= MOST_WORDS:
        raise Misuse(f'a command is 1 to {MOST_WORDS} words, such as ("SET", key, value)')
    name = as_text(words[0]).upper()
    # It could not be undone, and the fence of another database would not be asked.
    if name in _ESCAPING or (name == "COPY" and any(as_text(word).upper() == "DB" for word in words[3:])):
        raise Misuse(f"{name} reaches beyond the keys of this database, where no fence judges and nothing is undone")
    return name


def tag(scope: str) -> str:
    """Return the hash tag of a scope: its name in braces, with braces and percent signs in it quoted."""
    quoted = check_name("a fence's scope", scope).replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{{{quoted}}}"


def own_key(kind: str, scope: str) -> bytes:
    """Return a fence's own key, `FENCE` or `RESETS`, in the same bytes for every client, whatever its encoding is."""
    return (kind + tag(scope)).encode()


def check_keys(scope: str, keys: Sequence[Any], *, tagged: bool) -> None:
    """Raise Misuse for a fence's own key, and for one in another slot than the fence if keys must be tagged."""
    own = tag(scope)
    for key in map(as_key, keys):
        if key.startswith((FENCE.encode(), RESETS.encode())):
            raise Misuse(f"the key {key!r} is a fence's own")
        if tagged and not _has_tag(key, own):
            raise Misuse(
                f"the key {key!r} and the fence of scope {scope!r} do not share a slot: put {own} into the key"
                " (RedisFence.tag makes it), or say tagged=False on a server that is no cluster and will not become one"
            )


def as_key(key: Any) -> bytes:
    """Return a key as the server sees it."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return key
    raise Misuse(f"a key is text or bytes, not {type(key).__name__}")


def _has_tag(key: bytes, own: str) -> bool:
    """Tell whether what stands in the first braces of a key, by which a cluster places it, is a scope's tag."""
    inside, closed, _ = key.partition(b"{")[2].partition(b"}")
    return b"{" + inside + closed == own.encode()
