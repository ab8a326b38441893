"""Bad histories, made by hand: for each invariant those that break it and nothing else, and what is to be told."""

from __future__ import annotations

from tests.proof.bad_histories import belief, destinations, lives, replay, rights, stale, tokens, whole
from tests.proof.lines import Bad

BAD: dict[str, Bad] = (
    tokens.BAD | rights.BAD | lives.BAD | belief.BAD | destinations.BAD | whole.BAD | stale.BAD | replay.BAD
)
