"""What is done to the workers, to their network and to their store while they work: one thread for each kind.

Chance is drawn from the seed of the run. Pauses are aimed: a worker tells when it is between reading and writing.
"""

from __future__ import annotations

import queue
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle

from tenure.app import App
from tenure.clock import boot_clock
from tenure.errors import OutcomeUnknown, TenureError, Unavailable
from tenure.proof.prove.fleet import Fleet, Member, Moment
from tenure.proof.prove.managed import ManagedStore
from tenure.proof.prove.plan import JUMP, Plan
from tenure.proof.recorder import Recorder
from tenure.protocol.lifecycle import State
from tenure.testing.proxy import Proxy
from tenure.testing.streams import BOTH

_LOOK = 0.05
_LONGEST = 3.0  # leases that a pause lasts at most, where nobody takes the job over
_LINGER = 0.4
_PROBE = 0.25
_WAYS_TO_CUT = ("all", "byte", "drop", "refuse", "swallow")
_LONG_MESSAGE = 500  # bytes within which a message is cut
_OTHERS = (1, 3, 10, 100, 1000)  # requests that overtake one
_LONGEST_WAY = 2.0  # seconds that a request is overtaken for, longer than its sender waits for an answer


@dataclass
class Targets:
    """What a nemesis can reach: workers, store, the proxies before store and destination, a store of the run's own."""

    fleet: Fleet
    app: App
    queue: str
    address: str
    proxies: dict[str, Proxy] = field(default_factory=dict)
    managed: ManagedStore | None = None


class Nemesis:
    """Does the plan's faults from `start` to `stop`, and notes each of them."""

    def __init__(self, plan: Plan, targets: Targets, recorder: Recorder) -> None:
        self._plan = plan
        self._at = targets
        self._note = recorder
        self._ahead = 0.0  # seconds, of the store's clock
        self._ends_of_logs = cycle((True, True, False))
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._locks = targets.address.startswith("sqlite")
        self._probing = threading.Lock()
        self._probe = App(targets.address, timeout=_PROBE)  # not a recorded one: it is no part of the run
        self._threads = [
            threading.Thread(target=self._guarded, args=(name, act), name=name, daemon=True)
            for name, act in self._acts()
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, with everything undone that was done; raises what went wrong."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        for proxy in self._at.proxies.values():
            proxy.behave()
        if self._at.managed is not None and self._ahead:
            self._set_clock(self._at.managed, 0.0)
        self._probe.close()
        self.check()

    def check(self) -> None:
        """Raise the error with which one of the threads has ended."""
        if self._error is not None:
            raise self._error

    def _acts(self) -> list[tuple[str, Callable[[random.Random], None]]]:
        plan = self._plan
        pausers = max(1, plan.workers - 2) if "pause" in plan.faults else 0
        acts: list[tuple[str, Callable[[random.Random], None]]] = [
            (f"pause-{number}", self._pause) for number in range(pausers)
        ]
        every: dict[str, Callable[[random.Random], None]] = {
            "kill": self._kill,
            "rival": self._rival,
            "cut": self._cut,
            "delay": self._delay,
            "reorder": self._reorder,
        }
        needs = dict.fromkeys(("cut", "delay", "reorder"), self._at.proxies)
        if self._at.managed is not None:
            every |= {
                "crash": partial(self._crash, self._at.managed),
                "disk": partial(self._fill_disk, self._at.managed),
                "jump": partial(self._jump, self._at.managed),
            }
        acts += [(name, act) for name, act in every.items() if name in plan.faults and needs.get(name, True)]
        return acts

    def _guarded(self, name: str, act: Callable[[random.Random], None]) -> None:
        chance = random.Random(f"{self._plan.seed}/{name}")
        try:
            while not self._over.is_set():
                act(chance)
        except BaseException as error:  # noqa: BLE001 -- raised again by `check`, in the thread that waits
            self._error = self._error or error

    # -- workers

    def _pause(self, chance: random.Random) -> None:
        """Stop a worker that is about to write, until its job has another owner and a little longer."""
        linger, hesitation = chance.uniform(0.0, _LINGER), chance.choice((0.0, 0.0, 0.001, 0.003, 0.01))
        try:
            moment = self._next_moment()
        except queue.Empty:
            return
        member = moment.member
        if member.gone or not member.struck.acquire(blocking=False):
            return
        try:
            time.sleep(hesitation)
            began = boot_clock()
            self._stop_unlocked(member)
            self._await_loss(moment, began + _LONGEST * self._plan.lease)
            self._over.wait(linger)
            member.signal(signal.SIGCONT)
            self._note.fault("pause", member.name, began=began, ended=boot_clock(), detail=moment.job)
        finally:
            member.signal(signal.SIGCONT)
            member.struck.release()

    def _next_moment(self) -> Moment:
        moments = self._at.fleet.moments
        with suppress(queue.Empty):
            while True:  # what was told before now is over
                moments.get_nowait()
        return moments.get(timeout=0.3)

    def _stop_unlocked(self, member: Member) -> None:
        """Stop a worker outside its transactions: in SQLite it would keep the lock, and everybody waiting."""
        member.stop()
        while self._locks and not self._over.is_set() and not self._store_answers():
            member.signal(signal.SIGCONT)
            self._store_answers()  # waits for it to finish its transaction
            member.stop()

    def _store_answers(self) -> bool:
        """Tell whether the store's lock is free just now: move a job that is not there, which leaves nothing behind."""
        with self._probing:
            try:
                self._probe.client.release([f"{self._at.queue}-probe"])
            except Unavailable:
                return False
            except OutcomeUnknown:
                return True  # it had the lock, and then no room
            return True

    def _await_loss(self, moment: Moment, deadline: float) -> None:
        while boot_clock() < deadline and not self._over.wait(_LOOK):
            with suppress(TenureError):
                record = self._at.app.client.get(moment.job)
                if record.generation != moment.generation or record.state is not State.RUNNING:
                    return

    def _kill(self, chance: random.Random) -> None:
        """Kill a worker; the fleet replaces it."""
        if self._over.wait(chance.uniform(1.5, 4.0)):
            return
        member = self._somebody(chance)
        if member is None:
            return
        try:
            now = boot_clock()
            self._at.fleet.kill(member)
            self._note.fault("kill", member.name, began=now, ended=now)
        finally:
            member.struck.release()

    def _somebody(self, chance: random.Random) -> Member | None:
        """Choose a worker to which nothing is done just now, and hold it."""
        members = self._at.fleet.members()
        chance.shuffle(members)
        return next((member for member in members if member.struck.acquire(blocking=False)), None)

    def _rival(self, chance: random.Random) -> None:
        """Take a running job from its worker, as an operator would: give it to somebody else, or begin it anew."""
        if self._over.wait(chance.uniform(0.2, 0.8)):
            return
        try:
            moment = self._next_moment()
        except queue.Empty:
            return
        client, began = self._at.app.client, boot_clock()
        with suppress(TenureError):
            if chance.random() < 0.5:  # noqa: PLR2004 -- one or the other
                client.release([moment.job], "a rival took it")
            else:
                client.cancel([moment.job], "a rival cancelled it")
                client.retry([moment.job], "and began it anew")
            self._note.fault("rival", moment.member.name, began=began, ended=boot_clock(), detail=moment.job)

    # -- the network

    def _cut(self, chance: random.Random) -> None:
        """Cut every connection, or one in the middle of a message, drop an answer, refuse new ones, or swallow all."""
        if self._over.wait(chance.uniform(0.5, 3.0)):
            return
        where, proxy = chance.choice(sorted(self._at.proxies.items()))
        how, seconds = chance.choice(_WAYS_TO_CUT), chance.uniform(0.1, 0.8)
        began = boot_clock()
        if how == "drop":
            proxy.drop_reply()
        elif how == "byte":
            proxy.cut_after(chance.randrange(_LONG_MESSAGE), chance.choice(BOTH))
        else:
            self._cut_all(proxy, how, seconds)
        self._note.fault("cut", where, began=began, ended=boot_clock(), detail=how)

    def _cut_all(self, proxy: Proxy, how: str, seconds: float) -> None:
        """Cut every connection, and refuse new ones for a while, or have swallowed all that was sent for a while."""
        if how == "swallow":
            proxy.hold()
            self._over.wait(seconds)
        elif how == "refuse":
            proxy.refuse()
        proxy.cut()
        if how == "swallow":
            proxy.release()
        elif how == "refuse":
            self._over.wait(seconds)
            proxy.accept()

    def _delay(self, chance: random.Random) -> None:
        """Deliver everything late, or hold it back for a while and then let it all go."""
        if self._over.wait(chance.uniform(2.0, 5.0)):
            return
        where, proxy = chance.choice(sorted(self._at.proxies.items()))
        held, seconds = chance.random() < 0.5, chance.uniform(0.2, 1.5)  # noqa: PLR2004 -- one or the other
        began = boot_clock()
        if held:
            proxy.hold("server")
        else:
            proxy.delay(chance.uniform(0.01, 0.1))
        self._over.wait(seconds)
        proxy.release("server")
        proxy.delay(0.0)
        self._note.fault("delay", where, began=began, ended=boot_clock(), detail="held" if held else "late")

    def _reorder(self, chance: random.Random) -> None:
        """Keep a request back until many others have overtaken it, or for so long that its sender gives it up."""
        if self._over.wait(chance.uniform(0.2, 1.0)):
            return
        where, proxy = chance.choice(sorted(self._at.proxies.items()))
        others, longest = chance.choice(_OTHERS), chance.uniform(0.3, _LONGEST_WAY)
        began, before = boot_clock(), proxy.counts.overtaken
        proxy.overtake(others, longest)
        while proxy.counts.overtaken == before and boot_clock() < began + longest and not self._over.wait(_LOOK):
            pass
        overtaken = proxy.counts.overtaken - before
        if overtaken:
            told = f"{overtaken:,} others overtook a request"
            self._note.fault("reorder", where, began=began, ended=boot_clock(), detail=told)

    # -- a store of the run's own

    def _crash(self, store: ManagedStore, chance: random.Random) -> None:
        """Kill the store's server with everything in it, and start it again."""
        if self._over.wait(chance.uniform(4.0, 9.0)):
            return
        with store.alone:
            began = boot_clock()
            store.crash(self._over.wait, chance.uniform(0.1, 1.0))
            self._note.fault("crash", "store", began=began, ended=boot_clock())

    def _fill_disk(self, store: ManagedStore, chance: random.Random) -> None:
        """Leave the store without room for a while."""
        if self._over.wait(chance.uniform(1.0, 4.0)):
            return
        seconds = chance.uniform(0.5, 3.0)
        with store.alone:
            began = boot_clock()
            store.fill_disk(self._over.wait, seconds, end_log=next(self._ends_of_logs))
            self._note.fault("disk", "store", began=began, ended=boot_clock())

    def _jump(self, store: ManagedStore, chance: random.Random) -> None:
        """Set the clock of the store's server, forwards or back."""
        if not self._over.wait(chance.uniform(0.5, 2.0)):
            self._set_clock(store, chance.uniform(-JUMP, JUMP) * self._plan.lease)

    def _set_clock(self, store: ManagedStore, ahead: float) -> None:
        with store.alone:
            began = boot_clock()
            store.set_clock(ahead)
            self._note.fault(
                "jump", "store", began=began, ended=boot_clock(), detail=f"by {ahead - self._ahead:+.1f} s"
            )
            self._ahead = ahead
