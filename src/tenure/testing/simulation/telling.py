"""How a trace tells what was asked of a store, in the words of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.protocol.job import Answer, Claimed, Ending, Turn, Verdict, Wanted


def told(ask: str, args: tuple[Any, ...], done: bool, result: Any) -> str:  # noqa: FBT001 -- an answer is such a pair
    """Tell an operation and its answer."""
    if not done:
        return f"{ask}: refused: {result}"
    if ask == "turn":
        return _turn(args[1], args[2], result)
    if ask == "renew":
        return _renew(args[1], result)
    if ask in {"report", "forget", "workers", "prune", "enqueue"}:
        return ask
    return f"{ask} {', '.join(_shown(one) for one in args[-2:])}: {_shown(result)}"


def _turn(endings: Sequence[Ending], wanted: Sequence[Wanted], turn: Turn) -> str:
    settled = [f"{end.verb} {end.token}: {_met(answer)}" for end, answer in zip(endings, turn.answers, strict=True)]
    if wanted:
        settled.append("claim: " + (", ".join(_claimed(row) for row in turn.claimed) or "nothing"))
    return "; ".join(settled)


def _claimed(row: Claimed) -> str:
    poison = "" if row.state == "running" else f" {row.state}"
    took = "" if row.lost_generation is None else f" (took over from {row.lost_generation})"
    return f"{row.id}:{row.generation}{poison}{took}"


def _renew(tokens: Sequence[object], refused: Sequence[Answer]) -> str:
    kept = [str(token) for token in tokens if token not in {answer.token for answer in refused}]
    lines = [f"renew {', '.join(kept)}: done"] if kept else []
    return "; ".join([*lines, *(f"renew {answer.token}: {_met(answer)}" for answer in refused)])


def _met(answer: Answer) -> str:
    met = "" if answer.verdict is Verdict.DONE else f" (it is {answer.state} under generation {answer.generation})"
    return f"{answer.verdict}{met}"


def _shown(value: object) -> str:
    if isinstance(value, Answer):
        return _met(value)
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or "none"
    return str(value)
