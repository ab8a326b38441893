"""A worker of the play: a real `Worker` in a process of its own, whose handler plays one of three parts.

``doomed`` runs until it is killed; ``sleeper`` (A) sends two writes, is stopped, and behaves carelessly when it is
continued; ``successor`` (B) does the job as a handler should.
"""

from __future__ import annotations

import argparse
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import msgspec

from tenure.app import App
from tenure.clock import boot_clock
from tenure.demo.children import PATIENCE, Stalled, Told, follow_parent, tell
from tenure.demo.destinations import load
from tenure.demo.destinations.place import Destination, Page, Way, refusal, unheard
from tenure.demo.task import draft_text, page_text, register
from tenure.errors import LeaseLost, StaleToken
from tenure.protocol.events import Event, Kind
from tenure.protocol.job import Ending, Verdict
from tenure.protocol.lease import Effect
from tenure.protocol.lifecycle import Verb
from tenure.worker.context import Job

_LOOK = 0.01


class Cue(msgspec.Struct, frozen=True):
    """What a worker is told first, on a line of its own: its queue, and its ways to the destination."""

    queue: str
    straight: Way
    held: tuple[Way, ...] = ()


class Words:
    """What the director has said so far."""

    def __init__(self) -> None:
        self._heard: set[str] = set()
        self._news = threading.Condition()

    def hear(self, word: str) -> None:
        """Take note of a word."""
        with self._news:
            self._heard.add(word)
            self._news.notify_all()

    def heard(self, word: str, patience: float = PATIENCE) -> bool:
        """Wait for a word; False when it was not said in time."""
        with self._news:
            return self._news.wait_for(lambda: word in self._heard, patience)

    def expect(self, word: str) -> None:
        """Wait for a word; raises Stalled."""
        if not self.heard(word):
            raise Stalled(f"nobody said {word!r} within {PATIENCE:g} s")


@dataclass(frozen=True, slots=True)
class Player:
    """Who plays, and where the page is."""

    app: App
    name: str
    cue: Cue
    destination: Destination
    words: Words

    def doomed(self, job: Job, _page: str) -> str:
        """Announce itself and work until it is killed."""
        with self.destination.page(self.cue.straight, unheard) as page:
            self._announce(job, page)
            self.words.heard("go home")
        raise Stalled(f"{self.name} was to be killed in the middle of its work")

    def successor(self, job: Job, _page: str) -> str:
        """Do the job: announce the token, read and compute, pass the gate, write under the token."""
        text = page_text(self.name, job.generation)
        with self.destination.page(self.cue.straight, unheard) as page:
            self._announce(job, page)
            self._tell(job, "read", page.read())
            self.words.expect("write")
            with job.effect() as token:
                page.write(token, text)
        self._tell(job, "written")
        return text

    def sleeper(self, job: Job, _page: str) -> str:
        """Send a draft and the page, oversleep, and then do everything that a late worker should not."""
        text = page_text(self.name, job.generation)
        with ExitStack() as stack:
            page = stack.enter_context(self.destination.page(self.cue.straight, unheard))
            held = [
                stack.enter_context(self.destination.page(way, partial(self._sent, job, act)))
                for act, way in enumerate(self.cue.held)
            ]
            senders = stack.enter_context(ThreadPoolExecutor(len(held)))
            self._announce(job, page)
            self.words.expect("send")
            # Both gates first: whoever lost its lease between them would wait for the answer to a write that is held.
            with job.effect() as first, job.effect() as second:
                pages = zip(held, (first, second), (draft_text(self.name, job.generation), text), strict=True)
                writes = [senders.submit(self._write_late, job, *sent) for sent in pages]
            ends = self._sleep(job)
            tell(self._another_effect(job, page, ends))
            tell(self._complete(job))
            for write in writes:
                tell(write.result())
        return text

    def _announce(self, job: Job, page: Page) -> None:
        page.raise_to(job.token)
        self._tell(job, "claimed")

    def _sent(self, job: Job, act: int) -> None:
        self._tell(job, "sent")
        if self.cue.held[act].slow is None:
            self.words.expect(f"deliver {act}")

    def _write_late(self, job: Job, page: Page, token: Effect, text: str) -> Told:
        told = Told("delivered", self.name, job.generation, text=text)
        try:
            page.write(token, text)
        except StaleToken as stale:
            told = Told("delivered", self.name, job.generation, refused=True, text=refusal(page, stale))
        self._tell(job, "answered")
        return told

    def _sleep(self, job: Job) -> float:
        """Wait to be woken; return the end of the lease as this process's own clock last had it."""
        ends = boot_clock() + job.lease.remaining()
        while not self.words.heard("wake", _LOOK):
            left = job.lease.remaining()
            ends = boot_clock() + left if left else ends
        return ends

    def _another_effect(self, job: Job, page: Page, ends: float) -> Told:
        try:
            with job.effect() as token:
                page.write(token, f"{page_text(self.name, job.generation)}, once more")
        except LeaseLost as error:
            late = boot_clock() - ends
            return Told("effect", self.name, job.generation, refused=True, text=error.reason, seconds=late)
        except StaleToken as stale:
            text = f"it was started, and the destination refused it: {refusal(page, stale)}"
            return Told("effect", self.name, job.generation, text=text)
        return Told("effect", self.name, job.generation, text="it was started")

    def _complete(self, job: Job) -> Told:
        (answer,) = self.app.client.settle(job.lease.owner, [Ending(job.token, Verb.COMPLETE, result=f'"{self.name}"')])
        if answer.verdict is Verdict.STALE:
            met = f"{answer.state} under generation {answer.generation}"
            return Told("complete", self.name, job.generation, refused=True, text=met)
        return Told("complete", self.name, job.generation, text=f"answered {answer.verdict}")

    def _tell(self, job: Job, event: str, text: str = "") -> None:
        tell(Told(event, self.name, job.generation, text=text))


def _retell(event: Event) -> None:
    if event.kind is Kind.JOB_COMPLETED:
        tell(Told("completed", event.worker or "", event.generation or 0))


def main() -> None:
    """Read the cue, begin when told to ``go``, heed what else is said, go home when the input ends."""
    follow_parent()
    parser = argparse.ArgumentParser(prog="python -m tenure.demo.worker")
    parser.add_argument("name")
    parser.add_argument("part", choices=["doomed", "sleeper", "successor"])
    say = parser.parse_args()
    cue = msgspec.json.decode(sys.stdin.readline(), type=Cue)
    app = App()
    player = Player(app, say.name, cue, load(cue.straight.destination), Words())
    register(app, getattr(player, say.part))
    app.events.subscribe(_retell)
    # It must not tidy up a store that is somebody's own.
    worker = app.worker(name=say.name, queues=(cue.queue,), threads=1, retention=None)
    for line in sys.stdin:
        if line.strip() == "go":
            worker.start()
        else:
            player.words.hear(line.strip())
    worker.stop(grace=0)


if __name__ == "__main__":
    main()
