"""The header fields that carry a fencing token over HTTP: their names, how names travel in them, how they are read.

    Fencing-Token: 8                        the generation
    Fencing-Job: job-1                      whose generation it is
    Fencing-Scope: account/7                what is protected
    Fencing-Sequence: 3                     the number of this write under that generation
    Idempotency-Key: "job-1:charge"         the effect, whoever asks for it (R40); a quoted string

No standard names a fencing token, so the first four are private to services that say they take them. They have no
``X-`` and no default: a field that is missing is refused, never guessed (R37). `Idempotency-Key` is the field of the
IETF draft of that name: a structured-field string.

Job and scope are any text, and a header field is ASCII. A letter, a digit or one of ``-._~/:@`` stands for itself, any
other character for the percent-encoding of its UTF-8 bytes, in capitals. There is one spelling for each name; another
one is malformed, so no two names meet and no field that a server put together from two ("a, b") passes for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from tenure.errors import BadToken, Misuse
from tenure.fences.rule import announcement, read_number, writing
from tenure.protocol.lease import Effect, Token
from tenure.protocol.names import LONGEST, check_name

TOKEN = "Fencing-Token"
JOB = "Fencing-Job"
SCOPE = "Fencing-Scope"
SEQUENCE = "Fencing-Sequence"
KEY = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
"""Marks the answer to a request that was carried out before; its value is ``true``."""

LONGEST_NAME = 12 * LONGEST
"""The longest a name can get in a header field: four bytes a character, three characters a byte."""

LONGEST_KEY = 2 * LONGEST_NAME + 1
"""The longest idempotency key: a job's name, a colon and a step's name."""

_NAMES = {name.lower(): name for name in (TOKEN, JOB, SCOPE, SEQUENCE, KEY)}
_PLAIN = "-._~/:@"
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])+)"')

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class MissingHeader(BadToken):
    """A request lacks a header field that its endpoint asks for; nothing changed (R37)."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the header field {name} is missing: a write without it is refused")


class Carried(NamedTuple):
    """What the header fields of one request say; the token is an `Effect` when a sequence came with it."""

    token: Token
    scope: str
    key: str | None


def fencing_headers(token: Token, scope: str | None = None, key: str | None = None) -> dict[str, str]:
    """Write the header fields of a request; `scope` is by default the job itself. Raises BadToken.

    `token` is what ``job.effect()`` yields; without a sequence (a bare `Token`) it can only announce. `key` names the
    effect and must not contain the generation, or the next owner does again what this one did (R40).
    """
    bid = writing(token, scope) if isinstance(token, Effect) else announcement(token, scope)
    fields = {TOKEN: str(bid.generation), JOB: encode_name(bid.job), SCOPE: encode_name(bid.scope)}
    if isinstance(token, Effect):
        fields[SEQUENCE] = str(bid.sequence)
    if key is not None:
        fields[KEY] = _quoted(key)
    return fields


def read_headers(headers: Headers) -> Carried:
    """Read the header fields of a request, from a mapping or from pairs; raises MissingHeader or BadToken (R37).

    Sequence and key may be absent here: an announcement has neither, and each endpoint asks for what it needs.
    """
    fields = _collect(headers)
    generation = read_number(TOKEN, _there(fields, TOKEN))
    job = _read_name(JOB, _there(fields, JOB))
    scope = _read_name(SCOPE, _there(fields, SCOPE))
    token = Token(job, generation)
    if SEQUENCE in fields:
        token = Effect(job, generation, read_number(SEQUENCE, fields[SEQUENCE]))
    return Carried(token, scope, _read_key(fields[KEY]) if KEY in fields else None)


def encode_name(name: str) -> str:
    """Write any name in the ASCII of a header field, each in one way."""
    return quote(name, safe=_PLAIN)


def _collect(headers: Headers) -> dict[str, str]:
    fields: dict[str, str] = {}
    for spelled, value in headers.items() if isinstance(headers, Mapping) else headers:
        name = _NAMES.get(spelled.lower())
        if name is None:
            continue
        if name in fields:
            raise BadToken(f"the header field {name} is there twice, and nobody can say which one is meant")
        fields[name] = value.strip(" \t")
    return fields


def _there(fields: Mapping[str, str], name: str) -> str:
    if name not in fields:
        raise MissingHeader(name)
    return fields[name]


def _read_name(field: str, text: str) -> str:
    problem = f"the header field {field} must be a name of at most {LONGEST} characters, percent-encoded in one way"
    if len(text) > LONGEST_NAME:
        raise BadToken(problem)
    try:
        name = check_name(field, unquote(text, errors="strict"))
    except (Misuse, UnicodeDecodeError) as error:
        raise BadToken(problem) from error
    if encode_name(name) != text:
        raise BadToken(problem)
    return name


def _quoted(key: str) -> str:
    """Write a key as a structured-field string; what is not printable ASCII, and ``%``, is percent-encoded."""
    text = quote(key, safe=_PRINTABLE)
    if not text or len(text) > LONGEST_KEY:
        raise Misuse(f"an idempotency key has 1 to {LONGEST_KEY} characters, and this one has {len(text)}")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read_key(text: str) -> str:
    """Read a key as it was sent: opaque, so that no two that a client tells apart become one."""
    found = _QUOTED.fullmatch(text)
    key = "" if found is None else re.sub(r"\\(.)", r"\1", found[1])
    if not key or len(key) > LONGEST_KEY:
        raise BadToken(f"the header field {KEY} must be a quoted string of 1 to {LONGEST_KEY} characters of ASCII")
    return key
