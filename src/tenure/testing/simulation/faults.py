"""The faults of a history: who crashes, stands still, is copied or cut off, and what the store loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tenure.fences.rule import announcement
from tenure.proof.history import Fault as FaultLine
from tenure.protocol.lease import Token
from tenure.protocol.op import Op
from tenure.testing.simulation.network import Answer, Link
from tenure.testing.simulation.plan import Fault
from tenure.testing.simulation.process import GRACE, Process
from tenure.testing.simulation.threads import Over

if TYPE_CHECKING:
    from tenure.testing.simulation.world import World

_RESTART: Final = 0.2
_HURRIED: Final = 0.2  # a stop below this gives no grace


class Faults:
    """Does what the plan says, when it says."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lines: list[FaultLine] = []
        self.lagging = False  # whether the next claim will not reach the store's replica
        self.outages = 0  # failovers under way, during which no request gets through
        self.lost_claims = False
        self.at_requests: dict[tuple[int, int], Fault] = {}
        self._empty: dict[int, float] = {}  # slots whose process is gone, with the moment of the next start

    # -- planning

    def plan_all(self) -> None:
        """Put every fault into the plan of time, or before a request."""
        for fault in self.world.plan.faults:
            if fault.at is None:
                self.at_requests[fault.whom, fault.nth] = fault
            elif fault.what in _WORLDLY or fault.what in _HARMS:
                self.world.scheduler.at(fault.at, self.happens, fault)

    def at_request(self, process: Process, fault: Fault) -> Callable[[], object] | None:
        """Let a fault happen before the request for which it is planned; return what has to happen after that."""
        if self.world.calm:
            return None
        if fault.moment == "executed":
            return lambda: self._harm(fault, process)
        if fault.moment == "sent":
            self.world.scheduler.at(self.world.scheduler.now, lambda: self._harm(fault, process))
            return None
        self._harm(fault, process)
        if process.dead:
            raise Over
        if process.frozen:
            self.world.scheduler.sleep(0.0)
        return None

    def happens(self, fault: Fault) -> None:
        """Let a fault happen whose moment has come."""
        if self.world.calm:
            return
        doing = _WORLDLY.get(fault.what)
        if doing is not None:
            doing(self, fault)
            return
        process = self._process_in(fault.whom)
        if process is not None:
            self._harm(fault, process)

    def _process_in(self, slot: int) -> Process | None:
        living = [one for one in self.world.processes if not one.dead and one.slot == slot]
        return living[0] if living else None

    def _harm(self, fault: Fault, process: Process) -> None:
        if process.dead or self.world.calm:
            return
        _HARMS[fault.what](self, process, fault.seconds)

    # -- what is done to a process

    def crash(self, process: Process, seconds: float) -> None:
        """End a process at once; another takes its place `seconds` later."""
        if process.dead:
            return
        self._note("crash", process.name)
        process.dead = True
        self._boot_later(process.slot, seconds)

    def _boot_later(self, slot: int, seconds: float) -> None:
        moment = self.world.scheduler.now + _RESTART + seconds
        self._empty[slot] = moment
        self.world.scheduler.at(moment, lambda: self._boot(slot, moment))

    def _boot(self, slot: int, moment: float) -> None:
        if self._empty.get(slot) == moment:
            del self._empty[slot]
            self.world.boot(slot)

    def pause(self, process: Process, seconds: float) -> None:
        """Freeze a process for a while."""
        if process.frozen:
            return
        self._note("pause", process.name, seconds)
        process.frozen = True
        self.world.scheduler.at(self.world.scheduler.now + seconds, lambda: self._thaw(process))

    def _thaw(self, process: Process) -> None:
        if process.frozen and not process.dead:
            self.world.say(process.name, "goes on")
            self.world.scheduler.thaw(process)

    def clone(self, process: Process, _seconds: float) -> None:
        """Let a copy of a process live beside it, with the same identity and the same leases."""
        world = self.world
        if not process.started:
            return
        self._note("clone", process.name)
        copy = Process(
            world, world.cast.next(world), process.name + "c", process.claimer, (process.offset, process.rate)
        )
        claims = process.claims()
        world.start(copy, lambda: copy.resume(claims))

    def stop(self, process: Process, seconds: float) -> None:
        """Ask a worker to stop gracefully; another takes its place afterwards."""
        self._note("stop", process.name, seconds)
        process.stops.put(GRACE if seconds > _HURRIED else 0.0)

    def stopped(self, process: Process) -> None:
        """Hear that a worker stopped by itself."""
        self.world.say(process.name, "has stopped")
        process.dead = True
        self._boot_later(process.slot, 0.0)

    def cut_store(self, process: Process, seconds: float) -> None:
        """Cut a process off its store."""
        self._cut(process.to_store, seconds, "cut store", process.name)

    def cut_answers(self, process: Process, seconds: float) -> None:
        """Let a process's requests reach its store, and no answer come back."""
        self._note("cut answers", process.name, seconds)
        link = process.to_store
        link.back += 1
        self.world.scheduler.at(
            self.world.scheduler.now + seconds, lambda: setattr(link, "back", max(0, link.back - 1))
        )

    def cut_destination(self, process: Process, seconds: float) -> None:
        """Cut a process off the destination."""
        self._cut(process.to_destination, seconds, "cut destination", process.name)

    def step_wall_clock(self, process: Process, seconds: float) -> None:
        """Step the wall clock of a process's host."""
        self._note("step wall clock", process.name, seconds)
        process.wall_offset += seconds - 30.0

    def _cut(self, link: Link, seconds: float, what: str, whom: str) -> None:
        self._note(what, whom, seconds)
        link.out += 1
        self.world.scheduler.at(self.world.scheduler.now + seconds, lambda: self._mend(link))

    def _mend(self, link: Link) -> None:
        link.out = max(0, link.out - 1)

    # -- what is done to the store and the destination

    def step_store_clock(self, fault: Fault) -> None:
        """Step the store's clock forward."""
        self._note("step store clock", "the store", fault.seconds)
        self.world.store_shift += fault.seconds

    def lag(self, fault: Fault) -> None:
        """Let the next claim not reach the replica that will be promoted."""
        self.lagging = True
        self._outage = fault.seconds

    def executed_unreplicated(self, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: Any) -> Answer:
        """Execute an operation; if it is a claim, it is the last thing that the primary did."""
        world = self.world
        claims = verb.__name__ == "turn" and args[2] and not args[1]
        if claims:
            world.server.keep()
        answer = world.server.execute(verb, args, kwargs)
        if claims and answer[0] and answer[1].claimed and all(row.lost_generation is None for row in answer[1].claimed):
            self.lagging = False
            self.lost_claims = True
            self.outages += 1
            self._note("failover", "the store", self._outage)
            for link in world.links:
                link.out += link.name.endswith("store")
            world.scheduler.at(world.scheduler.now + self._outage, self._fail_over)
        return answer

    def _fail_over(self) -> None:
        if not self.outages:
            return
        self.outages -= 1
        world = self.world
        world.server.fail_over()
        world.marks.reach("floor raised")
        world.say("store", "failed over, with a higher floor")
        for link in world.links:
            if link.name.endswith("store"):
                self._mend(link)

    def outsider(self, _fault: Fault) -> None:
        """Let a destination meet generations that this store has not given out, as one does that met a lost store's."""
        world = self.world
        world.say("outsider", "raises the fences of all jobs")
        for job in world.plan.jobs:
            mark = world.vault.kept(job.id).mark
            if mark is not None:
                world.vault.announce(announcement(Token(job.id, mark.generation + 3)), world.scheduler.now)

    # -- the end of all faults

    def heal(self) -> None:
        """Let every link work, every process go on, every worker be started again."""
        world = self.world
        self.lagging = False
        self._fail_over()
        for link in world.links:
            link.out = link.back = 0
        for process in world.processes:
            self._thaw(process)
        for slot in list(self._empty):
            del self._empty[slot]
            world.boot(slot)

    def _note(self, what: str, whom: str, seconds: float | None = None) -> None:
        now = self.world.scheduler.now
        self.lines.append(FaultLine(what=what, whom=whom, began=now, ended=None if seconds is None else now + seconds))
        self.world.say(whom, what if seconds is None else f"{what} for {seconds:.3f} s")


_HARMS: Final[dict[str, Callable[[Faults, Process, float], None]]] = {
    "crash": Faults.crash,
    "pause": Faults.pause,
    "clone": Faults.clone,
    "stop": Faults.stop,
    "cut store": Faults.cut_store,
    "cut answers": Faults.cut_answers,
    "cut destination": Faults.cut_destination,
    "step wall clock": Faults.step_wall_clock,
}
_WORLDLY: Final[dict[str, Callable[[Faults, Fault], None]]] = {
    "step store clock": Faults.step_store_clock,
    "failover": Faults.lag,
    "outsider": Faults.outsider,
}
