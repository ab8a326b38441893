"""`tenure jobs retry`, `cancel`, `discard` and `release`: the operator's verbs, by ids or by filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from tenure.cli.bulk import jobs, operate
from tenure.cli.call import EVERYWHERE, Call, command
from tenure.cli.exits import Exit
from tenure.cli.filters import InPhase, InState, Queue, Task, told, which_jobs
from tenure.cli.find import PAGE, Phase, batches
from tenure.client import Client
from tenure.errors import Misuse
from tenure.protocol.job import Filter, Moved
from tenure.protocol.lifecycle import Actor, State, Verb, sources
from tenure.protocol.names import check_name

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs; -- before one that begins with -.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the job's history.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before jobs are moved by filter.")]
Everything = Annotated[
    bool, typer.Option("--all", help="Every job that this can be done to, without a filter; bare leases only by id.")
]

_ACTS: dict[Verb, Callable[[Client, Sequence[str], str | None], list[Moved]]] = {
    Verb.RETRY: Client.retry,
    Verb.CANCEL: Client.cancel,
    Verb.DISCARD: Client.discard,
    Verb.RELEASE: Client.release,
}


def mover(verb: Verb, help_text: str) -> Callable[..., Exit]:
    """Make the command of an operator's verb."""

    @command(*EVERYWHERE)
    def move(
        call: Call,
        *,
        ids: Ids = None,
        queue: Queue = None,
        task: Task = None,
        state: InState = None,
        phase: InPhase = None,
        everything: Everything = False,
        reason: Reason = None,
        yes: Yes = False,
    ) -> Exit:
        which = which_jobs(queue, task, state, phase)
        if ids:
            _refuse_both(which, everything=everything)
            chosen = _in_batches(ids)
        else:
            states = _states(verb, which, everything=everything)
            if not yes and not _confirmed(call, verb, which, states, phase):
                call.screen.say("nothing was done")
                return Exit.REFUSED
            chosen = batches(call.client, which, states, phase)
        client = call.client
        return operate(call.screen, verb, lambda batch: _ACTS[verb](client, batch, reason), chosen)

    move.__doc__ = help_text
    return move


def _refuse_both(which: Filter, *, everything: bool) -> None:
    if everything or which != Filter():
        raise Misuse("give ids, or a filter, not both")


def _in_batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for id_ in ids:
        check_name("a job's id", id_)
    for start in range(0, len(ids), PAGE):
        yield ids[start : start + PAGE]


def _states(verb: Verb, which: Filter, *, everything: bool) -> list[State]:
    """Tell from which states the verb may take the jobs that are meant; raises Misuse where there are none."""
    if which == Filter() and not everything:
        raise Misuse(f"nothing says which jobs to {verb}: give ids, a filter such as --queue, or --all")
    possible = [state for state in State if state in sources(Actor.OPERATOR, verb)]
    if which.state is None:
        return possible
    if which.state not in possible:
        raise Misuse(f"{which.state} jobs cannot be moved by {verb}: it takes those that are {_either(possible)}")
    return [which.state]


def _confirmed(call: Call, verb: Verb, which: Filter, states: list[State], phase: Phase | None) -> bool:
    seen = 0
    for batch in batches(call.client, which, states, phase):
        seen += len(batch)
        if seen >= PAGE:
            break
    count = jobs(seen, more=seen >= PAGE)
    about = told(which, phase)
    return call.screen.confirm(f"{verb} {count} ({about + ', ' if about else ''}{_either(states)})?")


def _either(states: Sequence[State]) -> str:
    return " or ".join(states)
