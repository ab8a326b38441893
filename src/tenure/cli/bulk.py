"""Operators' verbs on many jobs: in batches, each answer counted, and told how far it got when it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tenure.cli.exits import Exit
from tenure.cli.screen import Screen
from tenure.cli.streams import Unheard
from tenure.errors import TenureError
from tenure.protocol.job import Moved
from tenure.protocol.lifecycle import Actor, State, Verb, sources

Act = Callable[[Sequence[str]], list[Moved]]

SHOWN = 20
"""How many refusals are told one by one; the others are counted."""

PAST = {
    Verb.RETRY: "retried",
    Verb.CANCEL: "cancelled",
    Verb.DISCARD: "discarded",
    Verb.RELEASE: "released",
}


@dataclass(slots=True)
class Tally:
    """How many jobs were moved, refused, or not there."""

    verb: Verb
    moved: int = 0
    refused: list[Moved] = field(default_factory=list)
    refusals: int = 0
    missing: int = 0

    def count(self, answers: Iterable[Moved]) -> None:
        """Count answers; the first refusals are kept to be told."""
        for answer in answers:
            if answer.moved:
                self.moved += 1
                continue
            self.missing += answer.state is None
            self.refusals += answer.state is not None
            if len(self.refused) < SHOWN:
                self.refused.append(answer)

    def __str__(self) -> str:
        """Tell the numbers that are not zero."""
        counts = ((self.moved, PAST[self.verb]), (self.refusals, "refused"), (self.missing, "not found"))
        told = [f"{count:,} {what}" for count, what in counts if count]
        return ", ".join(told) or f"0 {PAST[self.verb]}"

    @property
    def exit(self) -> Exit:
        """The exit code that these answers make."""
        if self.missing and not self.moved and not self.refusals:
            return Exit.NOT_FOUND
        return Exit.REFUSED if self.refusals or self.missing else Exit.DONE


def operate(screen: Screen, verb: Verb, act: Act, batches: Iterable[Sequence[str]]) -> Exit:
    """Carry `act` out on each batch of ids and tell what became of them."""
    tally = Tally(verb)
    with told_when_interrupted(screen, tally), screen.progress(str(verb)) as advance:
        for ids in batches:
            answers = act(ids)
            tally.count(answers)
            for answer in answers:
                screen.emit(answer)
            advance(len(ids))
    screen.say(*map(_refusal(verb), tally.refused), str(tally))
    return tally.exit


@contextmanager
def told_when_interrupted(screen: Screen, so_far: object) -> Iterator[None]:
    """Say how far work in steps got when it does not come to its end."""
    try:
        yield
    except (KeyboardInterrupt, Unheard, TenureError):
        screen.note(f"so far: {so_far}; the rest was not touched, run it again to go on", {"so_far": str(so_far)})
        raise


def jobs(count: int, *, more: bool = False) -> str:
    """Tell a number of jobs."""
    return f"{count:,}{' or more' if more else ''} {'job' if count == 1 else 'jobs'}"


def _instead(state: State) -> str:
    allowed = [verb for verb in PAST if state in sources(Actor.OPERATOR, verb)]
    return f"; for this one there is {', '.join(allowed)}" if allowed else ""


def _refusal(verb: Verb) -> Callable[[Moved], str]:
    def tell(answer: Moved) -> str:
        if answer.state is None:
            return f"job {answer.id}: there is no such job"
        taken = " or ".join(state for state in State if state in sources(Actor.OPERATOR, verb))
        return f"job {answer.id} is {answer.state}: {verb} takes jobs that are {taken}{_instead(answer.state)}"

    return tell
