"""Who plays: apps with the tasks of the simulation, made once and used in history after history.

A task's job is a *program*: a list of deeds, each a name and a number, that the handler goes through. A clone goes on
where the original was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tenure.app import App
from tenure.errors import LeaseLost, OutcomeUnknown, OutOfSequence, Unavailable
from tenure.fences import rule
from tenure.protocol.ending import Cancel, Discard, Retry, Snooze
from tenure.protocol.events import Emitter
from tenure.protocol.lease import Effect, Token
from tenure.protocol.retry import Backoff
from tenure.store.memory import MemoryStore
from tenure.testing.simulation.process import Play, Process
from tenure.testing.simulation.threads import Over
from tenure.worker.context import Job

if TYPE_CHECKING:
    from tenure.testing.simulation.world import World

LEASE: Final = 1.0
SLICE: Final = 0.25
_PAUSE: Final = 0.05
_SOON: Final = Backoff(first=0.1, factor=1.0, most=0.1)
_NOBODYS: Final = (MemoryStore(), Emitter())

Program = tuple[tuple[str, float], ...]
"""The deeds of one job, each with a number that says how long, or how often."""


class HandlerFailed(Exception):
    """A handler that fails as programs do."""


class Seat:
    """An app for one process at a time; its handlers act for the process that sits there."""

    def __init__(self) -> None:
        self.process: Process
        self.app = App(timeout=LEASE)
        for name, fences in (("fenced", (Raising(self),)), ("plain", ())):
            self.app.task(name=name, lease=LEASE, backoff=_SOON, fences=fences)(self._handler())

    def leave(self) -> None:
        """Let nothing keep the process that sat here."""
        del self.process
        store, self.app.events = _NOBODYS
        self.app.use_store(store)

    def _handler(self) -> Callable[[Job, int], int]:
        def handler(job: Job, n: int) -> int:
            return perform(self.process, job, n)

        return handler


class Raising:
    """The fence that a task declares: the destination of its effects, as the process of a seat reaches it."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def raise_to(self, token: Token) -> None:
        """Announce an owner; raises StaleToken when a newer one was there."""
        process = self._seat.process
        world = process.world
        bid = rule.announcement(token)
        world.ask_fence(process, "raise", bid, lambda: world.vault.announce(bid, world.scheduler.now))


def perform(process: Process, job: Job, n: int) -> int:
    """Go through a program from where this run is."""
    play = process.plays.setdefault(job.token, Play())
    world = process.world
    program = world.plan.programs[n]
    try:
        while play.place < len(program):
            deed, number = program[play.place]
            if world.trace is not None:
                world.say(process.name, f"{job.token}: {deed}")
            _DEEDS[deed](process, job, play, number)
            play.place += 1
    except Over:
        # Nothing that this run still says is heard; said in this way it costs least.
        job.lease.lose("its process is gone")
        raise LeaseLost(job.id, job.generation, "its process is gone") from None
    return n


def _work(process: Process, job: Job, _play: Play, seconds: float) -> None:
    """Work for a while, and listen."""
    _spend(process, seconds, job.check)


def _stubborn(process: Process, _job: Job, _play: Play, seconds: float) -> None:
    """Work for a while, and do not listen."""
    _spend(process, seconds, lambda: None)


def _spend(process: Process, seconds: float, listen: Callable[[], object]) -> None:
    world = process.world
    left = seconds
    while left > 0 and not world.calm:
        world.scheduler.sleep(left if left < SLICE else SLICE)
        left -= SLICE
        listen()


def _update(process: Process, job: Job, play: Play, late: float) -> None:
    """Read the destination, and write what was computed from that; `late` seconds pass between gate and sending."""
    world = process.world
    if play.write is None:
        version = _insist(job, lambda: world.ask_vault(process, lambda: world.vault.read(job.id)))
        effect = world.gate(process, job)
        play.effects += 1
        play.write = (effect, version)
        if late and not world.calm:
            world.scheduler.sleep(late)
    effect, version = play.write
    bid = rule.writing(effect)
    try:
        _insist(job, lambda: world.write_vault(process, bid, version))
    except OutOfSequence as refusal:
        if refusal.sequence != refusal.highest:
            raise
        world.marks.reach("write applied before")
    play.write = None


def _insist(job: Job, ask: Callable[[], Any]) -> Any:
    """Ask until there is a definite answer, as long as the run may go on (R34)."""
    while True:
        try:
            return ask()
        except (OutcomeUnknown, Unavailable):
            job.check()


def _step(process: Process, job: Job, _play: Play, _number: float) -> None:
    """Pay once, under a key that every run of this job shares."""
    world = process.world

    def pay(idempotency_key: str = "") -> int:
        bid = rule.writing(Effect(job.id, job.generation, 1))
        paid: int = _insist(
            job,
            lambda: process.ask_destination("pay", lambda: world.vault.pay(idempotency_key, bid, world.scheduler.now)),
        )
        return paid

    job.step("pay", pay)


def _progress(_process: Process, job: Job, play: Play, _number: float) -> None:
    job.progress(play.place)


def _extend(_process: Process, job: Job, _play: Play, seconds: float) -> None:
    job.lease.extend(seconds)


def _fail(process: Process, job: Job, _play: Play, tries: float) -> None:
    if _unlucky(process, job, tries):
        raise HandlerFailed("as its program says")


def _retry(process: Process, job: Job, _play: Play, tries: float) -> None:
    if _unlucky(process, job, tries):
        raise Retry(0.05, "as its program says")


def _unlucky(process: Process, job: Job, tries: float) -> bool:
    return job.attempt <= tries and not process.world.calm


def _snooze(process: Process, job: Job, _play: Play, seconds: float) -> None:
    if job.generation == 1 and not process.world.calm:
        raise Snooze(seconds)


def _cancel(_process: Process, _job: Job, _play: Play, _number: float) -> None:
    raise Cancel("as its program says")


def _discard(_process: Process, _job: Job, _play: Play, _number: float) -> None:
    raise Discard("as its program says")


def _kill(process: Process, _job: Job, _play: Play, _number: float) -> None:
    """Take the worker down."""
    if not process.world.calm:
        process.world.faults.crash(process, 0.3)
        raise Over


_DEEDS: dict[str, Callable[[Process, Job, Play, float], None]] = {
    "work": _work,
    "stubborn": _stubborn,
    "update": _update,
    "step": _step,
    "progress": _progress,
    "extend": _extend,
    "fail": _fail,
    "retry": _retry,
    "snooze": _snooze,
    "cancel": _cancel,
    "discard": _discard,
    "kill": _kill,
}


class Cast:
    """All seats; a process that dies keeps its own until the history is over."""

    def __init__(self) -> None:
        self._seats: list[Seat] = []
        self._taken = 0

    def next(self, _world: World) -> Seat:
        """Give a seat that is free in this history."""
        if self._taken == len(self._seats):
            self._seats.append(Seat())
        self._taken += 1
        return self._seats[self._taken - 1]

    def clear(self) -> None:
        """Let every seat be taken again; nothing keeps the processes that sat there."""
        for seat in self._seats[: self._taken]:
            seat.leave()
        self._taken = 0
