"""The network between a process and what it asks: messages that are late, lost, repeated, and answers that are lost.

A message is carried out at its far side in one step, so what happens to it is decided by four moments: when it gets
there, whether it does, when its answer gets back, and whether it does. Whoever asked waits until a deadline of its own;
what comes later than that comes too late for it, and is carried out all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from tenure.errors import OutcomeUnknown, Unavailable
from tenure.testing.simulation.threads import TIMEOUT, Group, Scheduler, Task

Answer = tuple[bool, Any]
"""What the far side says: True and a result, or False and the error with which it refused."""

_REFUSED: Final = object()
_REFUSALS: Final = 0.5  # of the requests over a cut link, that are refused at once instead of getting no answer
_LATE_REQUESTS: Final = 0.5  # of slow messages, whose request is slow and not the answer
_QUICKEST: Final = 0.0003
_SPREAD: Final = 0.003


@dataclass(frozen=True, slots=True)
class Weather:
    """How often a message is slow, lost, loses its answer, or comes twice; and for how many seconds it may be slow."""

    slow: float = 0.0
    lost: float = 0.0
    mute: float = 0.0
    twice: float = 0.0
    longest: float = 1.0

    @property
    def trouble(self) -> float:
        """How often anything at all happens to a message."""
        return self.slow + self.lost + self.mute + self.twice


CALM: Final = Weather()


@dataclass(slots=True)
class Link:
    """The way between one process and one far side; each direction with the number of cuts in force."""

    name: str
    out: int = 0
    back: int = 0


class Message(Struct, eq=False):
    """One request under way; `what` names it. `after` is called at the far side once it was carried out.

    `again` is called when it comes twice.
    """

    what: str
    task: Task
    ticket: int
    deadline: float
    link: Link
    act: Callable[[], Answer]
    after: Callable[[], object] | None
    again: Callable[[], object] | None
    mute: bool = False
    way_back: float = 0.0


class Network:
    """Carries messages; what happens to each is drawn by chance from the weather."""

    def __init__(self, scheduler: Scheduler, chance: Callable[[], float], weather: Weather) -> None:
        self.scheduler = scheduler
        self.under_way = 0  # messages that may still get to a far side
        self._chance = chance
        self.change(weather)

    def change(self, weather: Weather) -> None:
        """Let the weather be another from now on."""
        self._weather = weather
        self._trouble = weather.trouble

    def ask(  # noqa: PLR0917 -- one call for each request, so it is called quickly
        self,
        what: str,
        link: Link,
        act: Callable[[], Answer],
        timeout: float,
        after: Callable[[], object] | None = None,
        again: Callable[[], object] | None = None,
    ) -> Any:
        """Have `act` done at the far side of `link` and return its result, for the task that is running.

        Raises what the far side refuses with, Unavailable when nothing was sent, and OutcomeUnknown when no answer came
        within `timeout` seconds of the task's clock.
        """
        scheduler = self.scheduler
        task = scheduler.task()
        self.send(Message(what, task, task.ticket, scheduler.now + timeout / task.group.rate, link, act, after, again))
        told = scheduler.switch()
        if told is TIMEOUT:
            raise OutcomeUnknown(f"no answer came over {link.name} within {timeout:g} s")
        if told is _REFUSED:
            raise Unavailable(f"{link.name} refused the connection")
        done, result = told
        if done:
            return result
        raise result

    def send(self, message: Message) -> None:
        """Let a message begin its way."""
        chance = self._chance
        way: float | None = _QUICKEST + _SPREAD * chance()
        message.way_back = _QUICKEST + _SPREAD * chance()
        if message.link.out:
            self._cut(message)
            return
        if self._trouble and (luck := chance()) < self._trouble:
            way = self._troubled(message, way, luck)
        if way is None:
            self.never_answered(message)
        else:
            self.under_way += 1
            scheduler = self.scheduler
            scheduler.at(scheduler.now + way, self.arrive, message)

    def arrive(self, message: Message) -> None:
        """Carry a message out and send its answer back."""
        self.under_way -= 1
        if message.link.out:
            self.never_answered(message)
            return
        answer = message.act()
        if message.after is not None:
            message.after()
        moment = self.scheduler.now + message.way_back
        if message.mute or message.link.back or moment > message.deadline:
            self.never_answered(message)
        else:
            self.answer(message, answer, moment)

    def answer(self, message: Message, answer: Answer, moment: float) -> None:
        """Let an answer get back to who asked."""
        self.scheduler.wake_at(moment, message.task, message.ticket, answer)

    def never_answered(self, message: Message) -> None:
        """Let who asked wait until its deadline."""
        self.scheduler.wake_at(message.deadline, message.task, message.ticket, TIMEOUT)

    def repeat(self, message: Message, late: float) -> None:
        """Let a message get there a second time, `late` seconds from now."""
        if message.again is not None:
            message.again()
        self.under_way += 1
        self.scheduler.at(self.scheduler.now + late, self._arrive_again, message)

    def _arrive_again(self, message: Message) -> None:
        self.under_way -= 1
        if not message.link.out:
            message.act()

    def _cut(self, message: Message) -> None:
        if self._chance() < _REFUSALS:
            self.scheduler.wake_at(self.scheduler.now + message.way_back, message.task, message.ticket, _REFUSED)
        else:
            self.never_answered(message)

    def _troubled(self, message: Message, way: float | None, luck: float) -> float | None:
        """Decide what happens to an unlucky message, and return how long it is under way; None for one that is lost."""
        weather = self._weather
        if luck < weather.lost:
            return None
        luck -= weather.lost
        if luck < weather.mute:
            message.mute = True
            return way
        luck -= weather.mute
        late = self._chance() * weather.longest
        if luck < weather.twice:
            self.repeat(message, late)
        elif self._chance() < _LATE_REQUESTS:
            return late
        else:
            message.way_back = late
        return way


class Members(Group):
    """A process as the network sees it: its tasks, and its links to what it asks."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.to_store = Link(f"{name} to the store")
        self.to_destination = Link(f"{name} to the destination")
