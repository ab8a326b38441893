"""The rule of every fence, stated once. Each destination carries it out in one atomic step with the effect (R31).

For each *scope*, the name of what is protected, a fence remembers one `Mark`: whose tokens it counts, the highest
generation that it has met, and the highest sequence applied under that generation. It is kept for as long as what it
protects can be written (R35), and moves in three ways only:

- **raise**: a new owner announces its generation before its first read there (R32). Refused as stale when a newer one
  has been met. A raise to the generation in force changes nothing.
- **apply**: a write is let through when its (generation, sequence) is higher than the mark's, which then becomes the
  mark. The generation orders owners; the sequence orders the writes of one owner and tells repeats (R33).
- **reset**: a person puts the mark aside, with a reason that is kept (R38).

What cannot be judged is refused (R37): no token, no whole number of 1 to 15 digits, a token of another job than the one
whose tokens the scope counts (R36), or one that leaps so far beyond the mark that no store can have issued it (R38).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec import Struct

from tenure.errors import BadToken, Misuse, OutOfSequence, StaleToken
from tenure.protocol.lease import Effect, Token
from tenure.protocol.names import check_name
from tenure.store.contract import FLOOR_STEP, MAX_GENERATION

LEAP = 1000 * FLOOR_STEP
"""How far a generation may lie beyond the mark: room for a thousand restores of the store (R38)."""

MAX_SEQUENCE = MAX_GENERATION
"""The largest sequence: 15 digits, for the same reason as the largest generation."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a fence remembers of one scope; `sequence` is 0 until something is applied under `generation`."""

    job: str
    generation: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Reset:
    """A mark that a person put aside: when, in seconds since the epoch, and why."""

    scope: str
    mark: Mark
    at: float
    reason: str


class Bid(Struct, frozen=True, gc=False):
    """A token and a sequence that are fit to be compared under `scope`; sequence 0 announces and writes nothing."""

    scope: str
    job: str
    generation: int
    sequence: int

    @property
    def mark(self) -> Mark:
        """The mark that this bid leaves if it passes."""
        return Mark(self.job, self.generation, self.sequence)


def announcement(token: Token, scope: str | None = None) -> Bid:
    """Read what a new owner announces; `scope` is by default the job itself. Raises BadToken."""
    return _bid(token, scope, 0)


def writing(token: Token, scope: str | None = None, sequence: int | None = None) -> Bid:
    """Read what a write bids; its number is `sequence`, else that of an `Effect`, else 1. Raises BadToken."""
    if sequence is None:
        sequence = token.sequence if isinstance(token, Effect) else 1
    if not _is_whole(sequence) or not 1 <= sequence <= MAX_SEQUENCE:
        raise BadToken(f"sequence is {sequence!r}: the writes of one run are numbered from 1, with 15 digits at most")
    return _bid(token, scope, sequence)


def judge(mark: Mark | None, bid: Bid, *, leap: int = LEAP) -> Mark:
    """Return the mark that `bid` leaves; raises StaleToken, OutOfSequence or BadToken, and then nothing may change."""
    if mark is not None and mark.job != bid.job:
        raise BadToken(
            f"scope {bid.scope!r} counts the tokens of {mark.job!r}, and those of another job ({bid.job!r}) cannot"
            f" be compared with them: take a lease on the resource itself, such as app.lease({bid.scope!r}), and pass"
            " its token (R36)"
        )
    met = 0 if mark is None else mark.generation
    if bid.generation - met > leap:
        raise BadToken(
            f"generation {bid.generation} lies more than {leap} beyond {met}, the highest that scope"
            f" {bid.scope!r} has met: no store has issued it; if one has, reset the scope first (R38)"
        )
    if bid.generation < met:
        reason = f"the destination has met generation {met}"
        raise StaleToken(bid.job, bid.generation, current=met, reason=reason)
    if mark is None or bid.generation > met:
        return bid.mark
    if bid.sequence == 0:
        return mark
    if bid.sequence <= mark.sequence:
        raise OutOfSequence(bid.job, bid.generation, bid.sequence, highest=mark.sequence)
    return bid.mark


def check_reason(reason: object) -> str:
    """Return the reason of a reset, which says something and can be stored everywhere; raises Misuse."""
    if not isinstance(reason, str) or not reason.strip():
        raise Misuse("a reset needs a reason, which is kept with the mark that was put aside (R38)")
    if _UNSTORABLE.search(reason):
        raise Misuse(
            "the reason of a reset holds a NUL or half a surrogate pair, which is no text; nothing was changed"
        )
    return reason


def read_number(what: str, text: str | None) -> int:
    """Read a generation or sequence as it travels in text: 1 to 15 digits, the first not 0. Raises BadToken (R37)."""
    if text is None:
        raise BadToken(f"{what} is missing: a write without it is refused")
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_GENERATION)) and text[0] != "0"):
        raise BadToken(f"{what} must be a whole number of 1 to 15 digits")
    return int(text)


def _bid(token: Token, scope: str | None, sequence: int) -> Bid:
    if not isinstance(token, Token):
        raise BadToken(f"a fence needs the run's token, such as job.token, and got {type(token).__name__}")
    generation = token.generation
    if not _is_whole(generation) or not 1 <= generation <= MAX_GENERATION:
        raise BadToken(f"generation is {generation!r}: a whole number from 1 to {MAX_GENERATION}")
    where = check_name("a fence's scope", token.job if scope is None else scope)
    job = where if scope is None else check_name("a token's job", token.job)
    return Bid(where, job, generation, sequence)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
