"""Puts a run together: the files of its processes, the rows and history of the store, the log of the destination."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf

from msgspec.structs import replace

from tenure.client import Client
from tenure.errors import Misuse, NotFound
from tenure.proof.history import Applied, Call, History
from tenure.proof.prove.places import Place, Service, applied, names_in
from tenure.proof.recorder import Recorder


def tell_store(client: Client, jobs: Iterable[str], note: Recorder) -> None:
    """Write down how every job stands, and the abnormal turns of its life."""
    for job in jobs:
        try:
            record = client.get(job)
        except NotFound:
            note.row(job)
            continue
        for entry in client.history(job):
            note.tell_history(entry)
        note.tell_row(record)


def tell_log(service: Service, note: Recorder) -> None:
    """Write down the log that the reference destination kept."""
    for line in service.log:
        note.write(line)


def rebuilt_log(place: Place, destination: str, calls: Iterable[Call]) -> list[Applied]:
    """Tell the log of a destination that keeps none, from what is left in it and what it had acknowledged.

    What is left in a scope is a list, in the order of the destination. A write that was acknowledged and is not in it
    was replaced by one that was computed from the same version: it stood before that one.
    """
    sent: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.call == "apply" and call.scope is not None and call.outcome in {"ok", "unknown"}:
            sent[call.scope].append(call)
    return [
        applied(
            scope,
            str(call.value),
            destination=destination,
            job=call.job,
            generation=call.generation,
            sequence=call.sequence,
        )
        for scope, writes in sent.items()
        for call in _order(writes, _left(place, destination, scope))
    ]


def _left(place: Place, destination: str, scope: str) -> list[str]:
    """Read which writes are left in a scope: none, where its value is no text that tells them."""
    try:
        value: object = place.read(scope)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise Misuse(f"the destination {destination} could not be read in the end: {told}") from error
    return names_in(value) if isinstance(value, str) else []


def _order(writes: list[Call], kept: list[str]) -> Iterator[Call]:
    by_name: dict[str, Call] = {}
    for call in sorted(writes, key=lambda call: call.sent, reverse=True):
        by_name[names_in(str(call.value))[-1]] = call
    lost: dict[str, list[Call]] = defaultdict(list)
    for name, call in by_name.items():
        if name not in kept and call.outcome == "ok":
            lost[_base(call)].append(call)
    for place, name in enumerate(kept):
        replaced = by_name.get(name)
        if replaced is not None:
            # Whatever else was computed from what this one was computed from, and is not there any more.
            yield from _branches(lost, kept[place - 1] if place else "nothing")
            yield replaced


def _branches(lost: dict[str, list[Call]], base: str) -> Iterator[Call]:
    for call in sorted(lost.pop(base, []), key=lambda call: call.answered or inf):
        yield call
        yield from _branches(lost, names_in(str(call.value))[-1])


def _base(call: Call) -> str:
    names = names_in(str(call.value))
    return names[-2] if names[1:] else "nothing"


def as_locks(history: History) -> History:
    """Read a run in which leases were used as locks: who has entered believes in its lease until it has left."""
    left: dict[tuple[str, str | None, int | None], float] = {}
    for call in history.calls:
        if call.call == "effect" and call.answered is not None:
            left[call.process, call.job, call.generation] = call.answered
    calls = [
        replace(call, deadline=left.get((call.process, call.job, call.generation)))
        if call.call in {"claim", "renew", "extend"} and call.outcome == "ok"
        else call
        for call in history.calls
        if call.call != "effect"
    ]
    return History.of(
        [history.meta, *calls, *history.faults, *history.calms, *history.entries, *history.rows], history.notes
    )
