"""The history of a run: what every process asked and was answered, what the store and the destinations kept of it.

A history is text, one JSON object a line; `docs/judge.md` tells it field by field. Its moments are seconds on one
clock, the *judge's*: any clock that all who record can read and that nobody steps, such as the boot clock of one host.
Moments of the store's own clock stand in the lines of its history only (`at`, `until`) and are compared only with each
other.

A process that may be killed at any moment writes each call twice, before it is sent and once it is answered (see
`tenure.proof.recorder`). The reader puts the files of a run together; of a call that was answered it keeps the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from tenure.errors import Misuse
from tenure.protocol.lifecycle import State
from tenure.store.contract import MAX_GENERATION

L = TypeVar("L", bound="Line")

VERSION = 1
"""The version of the format; the reader refuses every other."""


def _version() -> int:
    """Give the version to a first line: a made default is written out, where a plain one would be left out."""
    return VERSION


CallName = Literal[
    "claim",
    "renew",
    "extend",
    "progress",
    "step",
    "complete",
    "fail",
    "retry",
    "snooze",
    "release",
    "cancel",
    "discard",
    "prune",
    "raise",
    "apply",
    "seal",
    "effect",
]
"""What can be asked: of a store, by an owner or an operator; of a destination; and of the gate before an effect."""

EventName = Literal[
    "enqueue",
    "claim",
    "takeover",
    "renew",
    "extend",
    "progress",
    "step",
    "complete",
    "fail",
    "retry",
    "snooze",
    "release",
    "cancel",
    "discard",
    "prune",
    "refused",
]
"""What a store's history tells of a job."""

Outcome = Literal["ok", "already", "stale", "fail", "unknown"]
Act = Literal["raise", "apply", "seal", "repeat", "reset"]
Version = int | str | None
Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_GENERATION)]


class Line(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    gc=False,
):
    """One line; `place`, the file and line where it stands, is set by the reader."""

    place: str = ""


class Meta(Line, frozen=True, kw_only=True, tag="meta"):
    """What the judge must know of a run; the first line of exactly one of its files."""

    version: int = msgspec.field(default_factory=_version)
    began: float | None = None
    workload: str = ""
    seed: int | None = None
    store: str = ""
    durability: str = ""
    durable: bool = True  # whether the store keeps whatever it acknowledged (I5, I6, I13)
    history: Literal["full", "abnormal", "none"] = "none"  # which turns of a job's life the store's lines tell
    destination: str = ""
    retention: float | None = None  # seconds for which destinations keep idempotency keys (I10)
    faults: tuple[str, ...] = ()
    clock_jumps: bool = False  # whether a clock was stepped, stood still or ran at a wrong rate (I6, I7, I13, I16)
    clones: bool = False  # whether whole processes were copied while they held a lease (I17)
    must_fail: tuple[str, ...] = ()  # invariants that this run must be seen to break


class Part(Line, frozen=True, kw_only=True, tag="part"):
    """The first line of every other file of a run."""

    version: int = msgspec.field(default_factory=_version)
    process: str = ""


class Call(Line, frozen=True, kw_only=True, tag="call"):
    """One call about one job or one scope: who asked what, when, and what was answered when.

    Without an owner it is an operator's. A claim that took several jobs is one line for each, all with its `number`.
    """

    process: str
    call: CallName
    sent: float
    number: Number | None = None
    answered: float | None = None
    outcome: Outcome = "unknown"
    job: str | None = None
    generation: Number | None = None
    owner: str | None = None
    worker: str | None = None
    current: Number | None = None  # the generation that was met instead
    lease: float | None = None  # seconds that a claim or a renewal granted
    deadline: float | None = None  # the end of the holder's belief, on the judge's clock
    lost: Number | None = None  # the generation whose lease had ended, for a claim that took over
    state: State | None = None  # `discarded` for a claim that found a poison job
    version: Number | None = None  # of the lease, in a system that counts renewals (I17)
    destination: str = ""
    scope: str | None = None
    sequence: Number | None = None
    key: str | None = None
    value: Any = None
    result: Any = None
    detail: str = ""


class Entry(Line, frozen=True, kw_only=True, tag="store"):
    """One turn of a job's life as the store's own history tells it, in the store's order.

    `generation` is the row's afterwards; `right` is the generation whose right was used up, ended or refused. All other
    fields are the row's afterwards too; each is None where the store does not tell.
    """

    job: str
    event: EventName
    at: float | None = None
    right: Number | None = None
    generation: Number | None = None
    owner: str | None = None
    worker: str | None = None
    state: State | None = None
    until: float | None = None
    attempts: Number | None = None
    takeovers: Number | None = None
    result: Any = None
    detail: str = ""


class Row(Line, frozen=True, kw_only=True, tag="row"):
    """How a job stood in the store at the end; without a state it was gone."""

    job: str
    at: float | None = None
    state: State | None = None
    generation: Number | None = None
    owner: str | None = None
    worker: str | None = None
    ended: EventName | None = None
    attempts: Number | None = None
    max_attempts: Number | None = None
    takeovers: Number | None = None
    max_takeovers: Number | None = None
    due_in: float = 0.0  # seconds until the job may run, by the store's clock
    result: Any = None


class Applied(Line, frozen=True, kw_only=True, tag="applied"):
    """One line of a destination's log, in the destination's order."""

    scope: str
    act: Act
    destination: str = ""
    job: str | None = None
    generation: Number | None = None
    sequence: Number | None = None
    key: str | None = None
    before: Version = None  # the version that the write was computed from
    after: Version = None  # the version that it left
    value: Any = None
    at: float | None = None


class Fault(Line, frozen=True, kw_only=True, tag="fault"):
    """What was done to whom, from when to when."""

    what: str
    whom: str = ""
    began: float
    ended: float | None = None
    detail: str = ""


class Calm(Line, frozen=True, kw_only=True, tag="calm"):
    """From `at` on nothing was disturbed, and `within` seconds later every job that can run has to be over (I14)."""

    at: float
    within: float


AnyLine = Meta | Part | Call | Entry | Row | Applied | Fault | Calm


@dataclass(frozen=True, slots=True)
class History:
    """A whole run: calls in the order of sending, everything else in the order in which it was written."""

    meta: Meta
    calls: list[Call] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    calms: list[Calm] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Iterable[AnyLine], notes: Iterable[str] = ()) -> History:
        """Put the lines of a run together; raises Misuse unless exactly one of them is a `meta` line."""
        piles: dict[type[Line], list[Any]] = {kind: [] for kind in AnyLine.__args__}
        for line in lines:
            piles[type(line)].append(line)
        metas = piles[Meta]
        if len(metas) != 1:
            places = ", ".join(meta.place for meta in metas if meta.place)
            raise Misuse(
                f"a history has one line of kind meta, and this has {len(metas)}{places and f' ({places})'}: give all"
                " files of one run, and of one run only"
            )
        return cls(
            metas[0],
            calls=_answered(piles[Call]),
            entries=piles[Entry],
            rows=piles[Row],
            applied=piles[Applied],
            faults=piles[Fault],
            calms=piles[Calm],
            notes=list(notes),
        )

    def lines(self) -> Iterator[AnyLine]:
        """List every line in the order in which one file would tell them."""
        yield self.meta
        yield from self.faults
        yield from self.calms
        yield from self.calls
        yield from self.applied
        yield from self.entries
        yield from self.rows

    @property
    def origin(self) -> float:
        """The moment from which people are told moments: the beginning of the run."""
        if self.meta.began is not None:
            return self.meta.began
        return self.calls[0].sent if self.calls else 0.0


def read(paths: Sequence[Path]) -> History:
    """Read the files of one run; raises Misuse naming file, line and culprit where one is malformed."""
    notes: list[str] = []
    return History.of([line for path in paths for line in _lines(path, notes, short=len(paths) == 1)], notes)


def write(history: History, path: Path) -> None:
    """Write a whole run into one file, replacing it."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.writelines(encode(placed(line, "")) + b"\n" for line in history.lines())


def placed(line: L, place: str) -> L:
    """Return a line with the place where it stands."""
    return line if line.place == place else msgspec.structs.replace(line, place=place)


def _answered(calls: list[Call]) -> list[Call]:
    """Drop what was noted before sending wherever there is an answer, and sort by the moment of sending."""
    known = {(call.process, call.number) for call in calls if call.number is not None and call.answered is not None}
    kept = [call for call in calls if call.answered is not None or (call.process, call.number) not in known]
    return sorted(kept, key=lambda call: call.sent)


class _Head(msgspec.Struct):
    kind: str = ""
    version: Any = None


def _lines(path: Path, notes: list[str], *, short: bool) -> Iterator[AnyLine]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Misuse(f"cannot read {path}: {error.strerror or type(error).__name__}") from error
    texts = data.split(b"\n")
    if _is_torn(texts[-1]):
        notes.append(f"the last line of {path.name} was cut off while it was written, and is left out")
        texts.pop()
    _check_head(path, texts)
    decode = msgspec.json.Decoder(AnyLine).decode
    set_place = msgspec.structs.force_setattr
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Misuse(f"{path}, line {number}: {_culprit(error)}: {_shown(text)}") from error
        if isinstance(line, Meta | Part) and number > 1:
            raise Misuse(f"{path}, line {number}: a {_kind(line)} line stands first in its file, and only there")
        set_place(line, "place", f"line {number}" if short else f"{path.name}:{number}")
        yield line


def _check_head(path: Path, texts: list[bytes]) -> None:
    first = texts[0] if texts else b""
    try:
        head = msgspec.json.decode(first, type=_Head)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Misuse(f"{path}, line 1: a history begins with a line of kind meta or part: {_shown(first)}") from error
    if head.kind not in {"meta", "part"}:
        raise Misuse(f"{path}, line 1: a history begins with a line of kind meta or part: {_shown(first)}")
    if head.version != VERSION:
        raise Misuse(f"{path}, line 1: the format has version {head.version!r}, and this judge reads version {VERSION}")


def _is_torn(last: bytes) -> bool:
    """Tell a line that a killed process did not finish from one that only lacks its line break."""
    try:
        msgspec.json.decode(last or b"null")
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    return False


def _kind(line: Line) -> str:
    return str(type(line).__struct_config__.tag)


def _culprit(error: Exception) -> str:
    """Tell what is wrong and in which field, in the words of a person who wrote the line by hand."""
    what, _, path = str(error).replace("`", "").partition(" - at ")
    return f"{path.removeprefix('$.')}: {what}" if path else what


def _shown(text: bytes, length: int = 80) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= length else shown[:length] + "…"
