"""The story, step by step: each step waits for the one before to have happened, none for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from tenure.client import Client
from tenure.demo.children import PATIENCE, Cast, Child, Stalled, Told
from tenure.demo.destinations.place import Page, Way
from tenure.demo.events import Event, Summary
from tenure.demo.held import Held
from tenure.demo.task import LEASE, draft_text, page_text
from tenure.demo.worker import Cue
from tenure.protocol.job import JobRecord
from tenure.protocol.lifecycle import State

DEATHS = 6
NOTHING = Told("")
_WORKER = "tenure.demo.worker"


@dataclass(slots=True)
class Story:
    """One play on a stage that is set: the job is enqueued, the destination listens, `held` holds back what A sends."""

    cast: Cast
    client: Client
    job: str
    queue: str
    straight: Way
    page: Page
    held: Held
    answers: Callable[[], bool]  # whether the store can be written to just now
    began: float = field(default_factory=time.monotonic)
    a: Told = NOTHING
    late_effect: Told = NOTHING
    late_completion: Told = NOTHING
    late_writes: list[Told] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)  # the page, whenever something may have been written

    def play(self) -> Iterator[Event]:
        """Play it all; raises Stalled when something that was waited for does not come."""
        a = self._worker("A", "sleeper", self.held.ways)
        yield from self._six_die()
        yield from self._oversleep(a)
        b = self._worker("B", "successor")
        yield from self._take_over(b)
        yield from self._deliver_between(a)
        yield from self._succeed(b)
        yield from self._wake(a)

    def _six_die(self) -> Iterator[Event]:
        following = self._worker("W1", "doomed")
        for number in range(1, DEATHS + 1):
            worker = following
            worker.say("go")
            if number < DEATHS:
                following = self._worker(f"W{number + 1}", "doomed")
            claimed = worker.expect("claimed")
            worker.kill()
            yield self._event("killed", claimed, "run it", "", "killed in the middle of it (SIGKILL)")

    def _oversleep(self, a: Child) -> Iterator[Event]:
        a.say("go")
        yield self._event("claimed", a.expect("claimed"), "claim it", "store", "granted, the last lease has ended")
        self.held.hold()
        a.say("send")
        for _ in self.held.ways:
            self.a = a.expect("sent")
        yield self._event("sent", self.a, "write a draft, then its page", "", self.held.told)
        self._stop(a)
        yield self._event("stopped", self.a, "go on", "", f"stopped (SIGSTOP) with a lease of {LEASE:g} s")

    def _stop(self, a: Child) -> None:
        """Stop A outside any transaction: in SQLite it would keep its lock, and everybody waiting, while it sleeps."""
        deadline = time.monotonic() + PATIENCE
        a.stop()
        while not self.answers():
            if time.monotonic() > deadline:
                raise Stalled(f"the store was locked in every moment at which A was stopped for {PATIENCE:g} s")
            a.go_on()
            self.answers()  # waits for A to finish its transaction
            a.stop()

    def _take_over(self, b: Child) -> Iterator[Event]:
        b.say("go")
        claimed = b.expect("claimed")
        yield self._event("taken over", claimed, "claim it", "store", "granted, A's lease has ended")
        read = b.expect("read")
        yield self._event("read", read, "read the page", "destination", read.text or "there is none yet")
        self.seen.append(read.text)

    def _deliver_between(self, a: Child) -> Iterator[Event]:
        """Deliver A's draft between B's reading and B's writing; A hears of it when it wakes up."""
        if self.held.by_sender:
            a.go_on()
        self.held.deliver(0, a)
        if self.held.by_sender:
            self._stop(a)
        self._look()
        answer = "refused: the page is as B read it"
        if self.seen[-1] != self.seen[-2]:
            answer = "applied: the page is not as B read it"
        yield self._event("late write", self.a, "write its draft, late", "destination", answer)

    def _succeed(self, b: Child) -> Iterator[Event]:
        b.say("write")
        yield self._event("written", b.expect("written"), "write its page", "destination", "applied")
        yield self._event("completed", b.expect("completed"), "complete it", "store", "done")
        self._look()

    def _wake(self, a: Child) -> Iterator[Event]:
        a.go_on()
        a.say("wake")
        yield self._event("continued", self.a, "go on", "", "continued (SIGCONT) and knows nothing")
        self.late_effect = told = a.expect("effect")
        answer = f"refused: its lease ended {told.seconds:.1f} s ago" if told.refused else told.text
        yield self._event("late effect", told, "start another effect", "its own clock", answer)
        self.late_completion = told = a.expect("complete")
        yield self._event("late completion", told, "complete it", "store", _verdict(told))
        told = self._answered(a)
        answer = _verdict(told) if told.refused else "applied"
        yield self._event("late answer", told, "hear of its draft", "destination", answer)
        self.held.deliver(1, a)
        told = self._answered(a)
        self._look()
        answer = _verdict(told) if told.refused else "applied: B's page is overwritten"
        yield self._event("late write", told, "write its page, late", "destination", answer)

    def _answered(self, a: Child) -> Told:
        self.late_writes.append(a.expect("delivered"))
        return self.late_writes[-1]

    def _look(self) -> None:
        self.seen.append(self.page.read())

    def summary(self, store: str) -> Summary:
        """Judge by what the store and the destination hold and held, and by what A was told."""
        record = self.client.get(self.job)
        first, between, written, last = self.seen
        b_text = page_text("B", record.generation)
        kept = (first, between, written, last) == (first, first, b_text, b_text)
        a_texts = (draft_text("A", self.a.generation), page_text("A", self.a.generation))
        return Summary(
            destination=self.straight.destination,
            store=store,
            fence=self.straight.fence,
            generation_a=self.a.generation,
            generation_b=record.generation,
            stale_completion_refused=self.late_completion.refused and self._is_completed_by_b(record),
            stale_write_refused=all(told.refused for told in self.late_writes) and kept,
            zombie_stopped_by_own_clock=self.late_effect.refused and self.late_effect.seconds > 0,
            damage_shown=not any(told.refused for told in self.late_writes) and (between, last) == a_texts,
            effects_applied=sum(before != after for before, after in zip(self.seen, self.seen[1:], strict=False)),
            holds=last,
            seconds=round(time.monotonic() - self.began, 1),
        )

    def _is_completed_by_b(self, record: JobRecord) -> bool:
        refused = {(entry.generation, entry.event) for entry in self.client.history(self.job)}
        noted = (self.a.generation, "stale complete refused") in refused
        return noted and (record.state, record.worker) == (State.COMPLETED, "B")

    def _worker(self, name: str, part: str, held: tuple[Way, ...] = ()) -> Child:
        worker = self.cast.start(name, _WORKER, part)
        worker.say(msgspec.json.encode(Cue(self.queue, self.straight, held)).decode())
        return worker

    def _event(self, event: str, told: Told, tried: str, answered_by: str, answer: str) -> Event:
        at = round(time.monotonic() - self.began, 2)
        return Event(event, at, told.who, told.generation, tried, answered_by, answer)


def _verdict(told: Told) -> str:
    return f"{'refused: ' if told.refused else ''}{told.text}"
