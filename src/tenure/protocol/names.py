"""The one rule for names: job ids, queues, tasks, workers, unique keys, steps; and that for trace contexts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenure.errors import Misuse

LONGEST = 200
_SHOWN = 40
LONGEST_TRACE = 55 + 1 + 512
"""A `traceparent` of W3C's Trace Context, a separator, and as much of a `tracestate` as everybody must pass on."""

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_name(what: str, value: str) -> str:
    """Return `value` if it is a name; raise Misuse naming `what` and the rule otherwise.

    The same rule holds on every store and in every place where a name is accepted (case B29): what one layer takes, no
    other refuses. Names are compared exactly: ``A`` and ``a`` are two names.
    """
    return _check(what, value, "a name", LONGEST)


def check_ids(jobs: Sequence[str]) -> Sequence[str]:
    """Return ids of jobs; raises Misuse for one id alone, whose letters would be taken for ids."""
    if isinstance(jobs, str | bytes):
        raise Misuse("jobs are named by a list of ids, and this is one text: write [job] for one job")
    return jobs


def check_trace(value: str) -> str:
    """Return `value` if it can be a trace context; raise Misuse naming the rule otherwise."""
    return _check("a trace context", value, "it", LONGEST_TRACE)


def _check(what: str, value: str, kind: str, longest: int) -> str:
    if not isinstance(value, str):
        raise Misuse(f"{what} must be text, not {type(value).__name__}: {_rule(kind, longest)}")
    if not value or len(value) > longest or _FORBIDDEN.search(value):
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        raise Misuse(f"{what} {shown!r} is refused: {_rule(kind, longest)}")
    return value


def _rule(kind: str, longest: int) -> str:
    return f"{kind} is 1 to {longest} characters of text without control characters (no line breaks, no NUL)"
