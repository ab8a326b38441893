"""A worker's process in the simulation: the real `Worker` with its real threads of control, on a clock of its own.

Crash: its tasks never go on, and its messages are still under way. Pause: they do not go on while time passes, for its
clocks too. Clone: a second process with the same identity, the same leases and the same beliefs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, cast

from tenure.errors import OutcomeUnknown, TenureError, Unavailable
from tenure.hold import Lease
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.job import Claimed, Claimer
from tenure.protocol.lease import DRIFT, MARGIN, Effect, Token
from tenure.protocol.op import Op
from tenure.testing.simulation.front import Front, QuietBell
from tenure.testing.simulation.network import Answer, Members
from tenure.testing.simulation.threads import SimpleQueue
from tenure.worker.worker import Worker

if TYPE_CHECKING:
    from tenure.testing.simulation.cast import Seat
    from tenure.testing.simulation.world import World

THREADS: Final = 2
"""Slots of each worker."""

PATIENCE: Final = 0.3
GRACE: Final = 0.4

_ASIDE: Final = frozenset({"workers", "report", "admit", "forget"})
"""Requests on which no promise rests: they tell who is there and how the store is."""


@dataclass(slots=True)
class Play:
    """How far a run of a program has come: what a clone goes on from."""

    place: int = 0
    effects: int = 0  # numbers of writes that were given out
    write: tuple[Effect, int] | None = None  # under way: its number, and the version that it was computed from


@dataclass(slots=True)
class Claim:
    """A claim that this process believes in, for its clone."""

    row: Claimed
    until: float
    play: Play = field(default_factory=Play)


class Process(Members):
    """One start of a worker, on a host with clocks of its own."""

    def __init__(self, world: World, seat: Seat, name: str, claimer: Claimer, clock: tuple[float, float]) -> None:
        super().__init__(name)
        self.world = world
        self._scheduler = world.scheduler
        self.seat = seat
        self.claimer = claimer
        self.offset, self.rate = clock
        self.wall_offset = 1e6
        self.slot = int(name[1 : name.index(".")]) - 1
        self.exchanges = 0
        self.faults = world.faults.at_requests
        self.plays: dict[Token, Play] = {}
        self.lost: set[Token] = set()
        self.claimed: set[Token] = set()
        self.is_clone = name.endswith("c")
        self.started = False
        self.bells: list[QuietBell] = []
        self.stops = SimpleQueue(world.scheduler)
        seat.process = self
        seat.app.use_store(Front(self))
        seat.app.events = Ear(self)
        self.worker = PlayedWorker(self)

    # -- clocks

    def boot(self) -> float:
        """Read the boot clock of this process's host."""
        return self.offset + self.rate * self._scheduler.now

    def wall(self) -> float:
        """Read the wall clock of this process's host, which may be stepped."""
        return self.wall_offset + self.offset + self.rate * self._scheduler.now

    # -- life

    def live(self) -> None:
        """Work until asked to stop."""
        self._start()
        self.worker.stop(self.stops.get())
        self.world.faults.stopped(self)

    def _start(self) -> None:
        """Start the worker, as soon as the store can be reached."""
        while not self.started:
            try:
                self.worker.start()
            except TenureError:
                self.world.scheduler.sleep(0.1)
            else:
                self.started = True

    def resume(self, claims: list[Claim]) -> None:
        """Live with claims that another process made before it was copied."""
        self._start()
        for claim in claims:
            token = Token(claim.row.id, claim.row.generation)
            self.plays[token] = claim.play
            self.worker.adopt(claim.row, claim.until - claim.row.lease * (1.0 - DRIFT - MARGIN))
        self.worker.stop(self.stops.get())
        self.world.faults.stopped(self)

    def claims(self) -> list[Claim]:
        """List what a clone of this process would believe in."""
        return [
            Claim(run.claimed, self.boot() + run.lease.remaining(), self._play_of(run.lease.token))
            for run in self.worker.runs()
            if not run.ended
        ]

    def _play_of(self, token: Token) -> Play:
        play = self.plays.get(token)
        return Play() if play is None else Play(play.place, play.effects, play.write)

    def failed(self, error: Exception) -> None:
        """Hear of an error that nothing in the worker expected."""
        self.world.broken(f"{self.name}: {type(error).__name__}: {error}")

    # -- what it asks

    def ask_store(self, timeout: float, verb: Callable[..., Op[Any]], /, *args: Any, **kwargs: Any) -> Any:
        """Have an operation executed by the store."""
        world = self.world
        book, name = world.book, verb.__name__
        self.exchanges += 1
        after = self._fault() if self.faults else None
        if name in _ASIDE and after is None:
            return self._ask_aside(verb, args, kwargs)
        if self.lost and name == "turn":
            world.about_to_settle(self, args[1])
        note = book.asked(self.name, name, args)
        try:
            result = world.network.ask(
                name,
                self.to_store,
                partial(world.executed, self, verb, args, kwargs),
                timeout,
                after,
                None if note is None else partial(book.again, note),
            )
        except OutcomeUnknown:
            raise
        except TenureError:
            book.failed(note)
            raise
        book.answered(note, result)
        world.marks.answered(self, name, args, result)
        return result

    def _ask_aside(self, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Have done at once, or refused, what no promise rests on: on its way nothing could happen that matters."""
        self._scheduler.task()
        if self.to_store.out:
            raise Unavailable(f"{self.to_store.name} refused the connection")
        done, result = self.world.executed(self, verb, args, kwargs)
        if done:
            return result
        raise result

    def ask_destination(self, what: str, act: Callable[[], Answer]) -> Any:
        """Have something done by the destination."""
        world = self.world
        self.exchanges += 1
        after = self._fault() if self.faults else None
        return world.network.ask(what, self.to_destination, act, world.plan.patience, after)

    def _fault(self) -> Callable[[], object] | None:
        """Let the fault happen that is planned for this request."""
        fault = self.faults.pop((self.slot, self.exchanges), None)
        return None if fault is None else self.world.faults.at_request(self, fault)


class Belief(Lease):
    """A lease that tells the book until when its holder believes in it."""

    __slots__ = ("process",)

    def __init__(
        self,
        token: Token,
        owner: str,
        duration: float,
        sent_at: float,
        *,
        renew: Callable[[Lease, float | None], None],
        clock: MethodType,
    ) -> None:
        process = self.process = cast("Process", clock.__self__)
        super().__init__(token, owner, duration, sent_at, renew=renew, clock=clock, wall=process.wall)
        process.world.believes(self)
        if token in process.plays:  # of the process of which this one is a copy
            for _ in range(process.plays[token].effects):
                next(self._numbers)

    @property
    def until(self) -> float:
        """The end of the belief on the judge's clock."""
        process = self.process
        return (self._until - process.offset) / process.rate

    def renewed(self, sent_at: float, duration: float | None = None) -> None:
        """Note a renewal that the store confirmed."""
        super().renewed(sent_at, duration)
        self.process.world.believes(self)

    def verify(self) -> None:
        """Ask the store whether the lease still stands."""
        self.process.world.marks.reach("suspect lease verified")
        super().verify()

    def lose(self, reason: str) -> bool:
        """Note that the lease is gone."""
        if reason.endswith("did not stop"):
            self.process.world.marks.reach("left behind")
        return super().lose(reason)


class PlayedWorker(Worker):
    """The real worker, which tells of what would otherwise only be logged."""

    def __init__(self, process: Process) -> None:
        plan = process.world.plan
        super().__init__(
            process.seat.app,
            clock=process.boot,
            name=process.claimer.worker,
            threads=plan.threads,
            processes=1,
            patience=PATIENCE,
            grace=GRACE,
            retention=None,
            queues=("default",),
        )
        self.process = process
        self.claimer = process.claimer
        self.emitter = Ear(process)

    def runs(self) -> list[Any]:
        """List the runs that are not settled."""
        return self._runs.all()

    def adopt(self, row: Claimed, sent_at: float) -> None:
        """Go on with a run of the process that this one is a copy of."""
        lane = next(lane for lane in self._lanes if row.task in lane.names)
        self._dispatch([(lane, [row])], sent_at)

    def _crashed(self, error: BaseException) -> None:
        self.process.world.broken(f"{self.process.name}: a part of the worker failed: {error!r}")


class Ear(Emitter):
    """Hears the events that matter to the simulation; all of them while a trace is told."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.claimer.worker)
        self._process = process

    def wants(self, kind: Kind) -> bool:
        """Say whether an event of this kind would be noticed."""
        return kind in _HEARD or self._process.world.trace is not None

    def emit(
        self,
        kind: Kind,
        *,
        job: str | None = None,
        generation: int | None = None,
        task: str | None = None,  # noqa: ARG002 -- an emitter's arguments
        detail: str = "",
    ) -> None:
        """Hear one event."""
        if self.wants(kind):
            self._process.world.hears(self._process, kind, job, generation, detail)


_HEARD: Final = frozenset(
    {Kind.JOB_TAKEN_OVER, Kind.LEASE_LOST, Kind.STALE_REFUSED, Kind.TIMED_OUT, Kind.JOB_DISCARDED, Kind.FLOOR_RAISED}
)
