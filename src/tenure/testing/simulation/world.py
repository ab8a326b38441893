"""One history: a store, a destination, an operator and a few workers, from the first job to the last answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from tenure.errors import LeaseLost, OutcomeUnknown, OutOfSequence, Refused, StaleToken
from tenure.fences.rule import Bid
from tenure.proof.history import Call, CallName, Calm, History, Meta, Outcome, Row
from tenure.protocol.events import Kind
from tenure.protocol.job import Claimer, Ending
from tenure.protocol.lease import Effect
from tenure.protocol.lifecycle import State
from tenure.protocol.op import Op
from tenure.testing.simulation import telling
from tenure.testing.simulation.book import Book
from tenure.testing.simulation.cast import LEASE, Cast
from tenure.testing.simulation.destination import VAULT, Destination
from tenure.testing.simulation.faults import Faults
from tenure.testing.simulation.marks import Marks
from tenure.testing.simulation.network import CALM, Answer, Link, Members, Network
from tenure.testing.simulation.operator import Operator
from tenure.testing.simulation.plan import Plan
from tenure.testing.simulation.process import Belief, Process
from tenure.testing.simulation.server import Change, MemoryServer, Server
from tenure.testing.simulation.threads import Scheduler, Stage, Stuck
from tenure.worker.context import Job
from tenure.worker.feeder import LOOK

MARGIN: Final = 2.0
"""Seconds, beside a lease and a look, in which a job has to be over: for its handler, and for requests that fail."""

WITHIN: Final = LEASE + LOOK + MARGIN
_CHECK: Final = 0.05
_HEARD: Final = 0.3  # of the rings of a bell
_AVAILABLE: Final = State.AVAILABLE

Trace = list[tuple[float, str, str]]


class World:
    """Everything in one history. What happens is told to `book`, `marks` and, where there is one, `trace`."""

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        cast: Cast,
        chance: Random,
        *,
        trace: Trace | None = None,
        make_server: Callable[[Callable[[], float]], Server] = MemoryServer,
        make_network: Callable[..., Network] = Network,
    ) -> None:
        self.plan = plan
        self.cast = cast
        self.chance = chance
        self.trace = trace
        self.calm = False
        self.violations: list[str] = []
        self.processes: list[Process] = []
        self.links: list[Link] = []
        self.scheduler = stage.scheduler = Scheduler(stage.bodies, chance.random)
        self.network = make_network(self.scheduler, chance.random, plan.weather)
        self.store_shift = 0.0
        self.server = make_server(self._store_clock)
        self.server.heard = self._changed
        self.vault = Destination(fenced=plan.fenced)
        self.book = Book(self.scheduler)
        self.marks = Marks()
        self.faults = Faults(self)
        self._slots: dict[int, int] = {}
        self._looks = False  # whether it is planned to look if all is over

    # -- from beginning to end

    def play(self) -> History:
        """Let everything happen, and return what was noted."""
        try:
            self._set_out()
            self.scheduler.run(self.plan.calm_at + WITHIN)
        except Stuck as stuck:
            self.broken(str(stuck))
        except Exception as error:
            error.add_note(f"while playing the history of seed {self.plan.seed}")
            raise
        finally:
            self.scheduler.end()
            self.cast.clear()
        return self._history()

    def untie(self) -> None:
        """Let go of everybody, once nothing is asked of this world any more: little is left to the collector."""
        for process in self.processes:
            vars(process.worker).clear()
            vars(process).clear()
        vars(self).clear()

    def _set_out(self) -> None:
        self.server.execute(self.server.verbs.enqueue, (self.plan.jobs,), {})
        for slot in range(self.plan.workers):
            self.boot(slot)
        self.faults.plan_all()
        Operator(self).plan_all()
        self.scheduler.at(self.plan.calm_at, self.calm_down)
        self._look_soon()

    def boot(self, slot: int) -> None:
        """Start a worker with an identity of its own."""
        number = self._slots[slot] = self._slots.get(slot, 0) + 1
        name = f"w{slot + 1}.{number}"
        self.start(Process(self, self.cast.next(self), name, Claimer(f"owner-{name}", name), self.plan.clocks[slot]))

    def start(self, process: Process, main: Callable[[], object] | None = None) -> None:
        """Let a process live."""
        self.processes.append(process)
        self.links += (process.to_store, process.to_destination)
        process.to_store.out = self.faults.outages
        self.say(process.name, "starts")
        self.scheduler.spawn(process, "main", main or process.live)

    def calm_down(self) -> None:
        """End every disturbance, for good."""
        self.calm = True
        self.say("world", "is calm from now on")
        self.network.change(CALM)
        self.faults.heal()

    def _look_soon(self) -> None:
        self._looks = True
        self.scheduler.at(self.scheduler.now + _CHECK, self._look)

    def _look(self) -> None:
        """Stop where nothing can happen any more; as long as jobs wait or run, there is no need to look."""
        self._looks = False
        if not self.server.all_over():
            return
        living = (process for process in self.processes if not process.dead)
        if self.network.under_way or any(process.frozen or process.worker.runs() for process in living):
            self._look_soon()
        else:
            self.scheduler.stop()

    def _history(self) -> History:
        plan = self.plan
        meta = Meta(
            began=0.0,
            workload="simulation",
            seed=plan.seed,
            store=self.server.name,
            durable=not self.faults.lost_claims,
            history="full",
            destination="fenced" if plan.fenced else "without a fence",
            faults=tuple(dict.fromkeys(fault.what for fault in plan.faults)),
            clock_jumps=not plan.steady,
            clones=any(fault.what == "clone" for fault in plan.faults),
        )
        return History(
            meta,
            calls=self.book.close(),
            entries=self.server.entries,
            rows=self._rows(),
            applied=self.vault.log,
            faults=self.faults.lines,
            calms=[Calm(at=plan.calm_at, within=WITHIN)],
        )

    def _rows(self) -> list[Row]:
        """Tell how every job stands, also those that are gone."""
        rows = self.server.rows()
        there = {row.job for row in rows}
        return rows + [Row(job=job.id) for job in self.plan.jobs if job.id not in there]

    # -- the store

    def _store_clock(self) -> float:
        return 5e4 + self.store_shift + self.plan.store_rate * self.scheduler.now

    def executed(self, process: Members, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: Any) -> Answer:
        """Execute an operation at the store."""
        if self.faults.lagging:
            answer = self.faults.executed_unreplicated(verb, args, kwargs)
        else:
            answer = self.server.execute(verb, args, kwargs)
        if self.trace is not None:
            self.say("store", f"{process.name}: {telling.told(verb.__name__, args, *answer)}")
        return answer

    def pruned(self, process: Members, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: Any) -> Answer:
        """Execute a prune, and note what that removed: the answer does not tell."""
        told_of = len(self.server.entries)
        answer = self.executed(process, verb, args, kwargs)
        gone = [entry.job for entry in self.server.entries[told_of:] if entry.event == "prune"]
        self.book.removed.setdefault(id(args), []).extend(gone)
        return answer

    def _changed(self, changes: list[Change]) -> None:
        self.marks.changed(changes, self._store_clock)
        if not self._looks and self.server.all_over():
            self._look_soon()
        for _, after in changes:
            if after is not None and after.state is _AVAILABLE:
                self._ring()
                return

    def _ring(self) -> None:
        """Let each bell hear of work, unless it does not: a bell is only a hint."""
        scheduler, chance = self.scheduler, self.chance.random
        for process in self.processes:
            if not process.dead and chance() < _HEARD:
                for bell in process.bells:
                    scheduler.at(scheduler.now + 0.003 * chance(), bell.ring)

    def about_to_settle(self, process: Process, endings: Sequence[Ending]) -> None:
        """Look at what a process is about to settle."""
        for ending in endings:
            if ending.token in process.lost:
                self.broken(f"{process.name} settles {ending.token} with {ending.verb} after it was told of its loss")

    # -- destinations

    def ask_fence(
        self, process: Process, call: CallName, bid: Bid, act: Callable[[], Answer], value: int | None = None
    ) -> Any:
        """Ask something of the vault that its fence decides, and note it."""
        sent = self.scheduler.now
        outcome: Outcome = "ok"
        try:
            return process.ask_destination(call, act)
        except StaleToken:
            self.marks.reach(f"{call} refused as stale")
            outcome = "stale"
            raise
        except OutOfSequence as refusal:
            outcome = "already" if refusal.sequence == refusal.highest else "fail"
            raise
        except OutcomeUnknown:
            outcome = "unknown"
            raise
        except BaseException:
            outcome = "unknown" if self.scheduler.over or process.dead else "fail"
            raise
        finally:
            told = Call(
                process=process.name,
                call=call,
                sent=sent,
                answered=None if outcome == "unknown" else self.scheduler.now,
                outcome=outcome,
                destination=VAULT,
                scope=bid.scope,
                job=bid.job,
                generation=bid.generation,
                owner=process.claimer.owner,
                worker=process.claimer.worker,
                sequence=bid.sequence or None,  # an announcement has none
                value=value,
            )
            self.book.calls.append(told)

    def ask_vault(self, process: Process, act: Callable[[], Answer]) -> Any:
        """Read the vault."""
        return process.ask_destination("read", act)

    def write_vault(self, process: Process, bid: Bid, version: int) -> Any:
        """Write what was computed from a version."""
        return self.ask_fence(
            process,
            "apply",
            bid,
            lambda: self.vault.apply(bid, version, self.scheduler.now),
            version,
        )

    def gate(self, process: Process, job: Job) -> Effect:
        """Pass the gate before an effect, and note it."""
        token = job.token
        try:
            with job.effect() as effect:
                pass
        except LeaseLost:
            self.marks.reach("effect stopped at the gate")
            raise
        lease, now = job.lease, self.scheduler.now
        passed = Call(
            process=process.name,
            call="effect",
            sent=now,
            answered=now,
            outcome="ok",
            job=token.job,
            generation=token.generation,
            deadline=lease.until if isinstance(lease, Belief) else None,
            sequence=effect.sequence,
            owner=process.claimer.owner,
            worker=process.claimer.worker,
        )
        self.book.calls.append(passed)
        return effect

    # -- what is heard

    def believes(self, lease: Belief) -> None:
        """Hear until when a holder believes in its lease."""
        self.book.believed(lease.process.name, lease.token, lease.until)
        if lease.lost:
            self.marks.reach("claim answered after its lease")

    def hears(self, process: Process, kind: Kind, job: str | None, generation: int | None, detail: str) -> None:
        """Hear an event of a worker."""
        self.marks.heard(process, kind, job, generation, detail)
        if self.trace is not None:
            about = f" {job}:{generation}" if job is not None else ""
            self.say(process.name, f"{kind}{about}: {detail}" if detail else f"{kind}{about}")

    def say(self, who: str, what: str) -> None:
        """Write a line of the trace."""
        if self.trace is not None:
            self.trace.append((self.scheduler.now, who, what))

    def broken(self, sentence: str) -> None:
        """Note what must not happen."""
        self.violations.append(f"at {self.scheduler.now:.3f} s: {sentence}")
        self.say("world", f"BROKEN: {sentence}")


__all__ = ["Refused", "World"]
