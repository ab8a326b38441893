"""The feeder: a thread and a connection that settle what has finished and claim for the free slots, turn by turn.

Each turn is one round trip. While a turn is under way the next batch gathers, and a lone finish is flushed at once:
group commit by pressure, without a timer. Where many jobs were completed and the store does two things at once, they
are settled beside the claim (`tenure.worker.settler`). It claims for slots that are free, and for very short jobs a
little ahead (`tenure.worker.prefetch`), so that nothing is hoarded (B20), no more at a time than are answered while
that is of use (`tenure.worker.pace`), and only while the keeper can renew. The bell, a due time or the end of
a lease wakes it; when nothing does, it looks every `LOOK` seconds, and that alone is enough for correctness. A look is
a read that asks what time has made claimable; a claim looks for takeovers only where it found a lease that has ended.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence

from tenure.clock import Clock, boot_clock
from tenure.errors import OutcomeUnknown, TenureError
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Turn, Verdict, Wanted
from tenure.protocol.lease import SHORTEST
from tenure.protocol.lifecycle import Verb
from tenure.store.contract import Driver, Verbs
from tenure.worker.keeper import Keeper
from tenure.worker.lane import Lane
from tenure.worker.pace import Pace
from tenure.worker.part import Crashed, Part
from tenure.worker.run import Run, Runs
from tenure.worker.seldom import Seldom
from tenure.worker.settler import MANY, Completed, Settler

LOOK = SHORTEST + 0.75
"""Seconds between two looks of an idle worker. Each look learns when the next lease ends and wakes for it; a lease that
began just after a look lasts at least `SHORTEST`, so no end waits longer than one second for its takeover, a quarter
of it for waking up, asking and claiming."""

LOOK_WITHOUT_BELL = 0.25
"""Seconds between two looks where nothing rings."""

_BETWEEN_LOOKS = 0.01  # seconds at least, for what comes due in quick succession may be others' work
_PAUSE_AFTER_FAILURE = (0.1, 5.0)
_BUSY = 0.5  # seconds until a run is settled again whose job another transaction had locked
_LAST_TRIES = 2
_BETWEEN_LAST_TRIES = 0.05

Dispatch = Callable[[Sequence[tuple[Lane, list[Claimed]]], float], None]
Settled = Callable[[Run, Ending, Answer], None]


class Feeder:
    """Feed the lanes of one worker; `dispatch` gets what was claimed, `settled` hears every answer.

    `beside` is a second connection, for a store that does two things at once.
    """

    def __init__(
        self,
        driver: Driver,
        verbs: Verbs,
        claimer: Claimer,
        lanes: Sequence[Lane],
        *,
        runs: Runs,
        keeper: Keeper,
        dispatch: Dispatch,
        settled: Settled,
        emitter: Emitter,
        crashed: Crashed,
        pace: Pace,
        beside: Driver | None = None,
        clock: Clock = boot_clock,
        every_round: Callable[[Driver], None] = lambda _driver: None,
    ) -> None:
        self._driver, self._verbs, self._claimer = driver, verbs, claimer
        self._lanes = lanes
        self._queues = sorted({queue for lane in lanes for queue in lane.queues})
        self._runs, self._keeper = runs, keeper
        self._dispatch, self._settled = dispatch, settled
        self._emitter = emitter
        self._clock = clock
        self._every_round = every_round
        self._pace = pace
        self._finished: deque[tuple[Run | None, Ending]] = deque()
        self._wake = threading.Event()
        self._claiming, self._stopped, self._over = True, False, False  # over: the time to settle what is left
        self._uncertain = False  # an answer was lost: the store may hold claims of ours that we do not know of
        self._next_look = self._no_look_before = 0.0
        self._seldom = Seldom()
        self._failures, self._answered = 0, False  # in a row; whether the last round was answered anything
        self._careful = False  # a turn has failed: one locked job may be what holds all others up
        self._busy: deque[tuple[float, Run | None, Ending]] = deque()  # jobs that are locked, and when to try again
        self.has_bell = False
        self.last_round = clock()
        self._settler = None if beside is None else self._make_settler(beside, crashed)
        self._part = Part("feeder", self._run, crashed)

    def _make_settler(self, driver: Driver, crashed: Crashed) -> Settler:
        owner = self._claimer.owner
        return Settler(driver, self._verbs, owner, settled=self._settled_beside, over=self._wake.set, crashed=crashed)

    # -- what other threads call

    def start(self) -> None:
        """Start the thread."""
        if self._settler is not None:
            self._settler.start()
        self._part.start()

    def finished(self, run: Run, ending: Ending | None) -> None:
        """Take the end of a run; the first word counts, and a run without an ending is not settled."""
        if ending is not None and run.end():
            self._finished.append((run, ending))
        if not self._wake.is_set():
            self._wake.set()  # a slot is free, whatever became of the run

    def ring(self) -> None:
        """Look for work now."""
        for lane in self._lanes:
            lane.ring()
        self._wake.set()

    def stop_claiming(self) -> None:
        """Claim nothing from now on, let nothing begin, and give that back; go on settling."""
        self._claiming = False
        self._wake.set()

    def refusal(self) -> str | None:
        """Say why nothing may be claimed, nor begin, now; None while it may."""
        if not self._claiming:
            return "the worker is stopping"
        return None if self._keeper.healthy else "the worker cannot renew leases"

    def stop(self, timeout: float) -> bool:
        """End the thread once everything is settled, or after `timeout` seconds; False if something is left."""
        self._claiming = False
        self._stopped = True
        self._wake.set()
        self._part.join(timeout)
        self._over = True
        if self._settler is not None:
            self._settler.stop(timeout)
        return not self._busy and not self._unsettled

    # -- the feeder's own thread

    @property
    def _look_at(self) -> float:
        soonest, next_look = self._no_look_before, self._next_look
        return next_look if next_look > soonest else soonest

    @property
    def _is_alone(self) -> bool:
        return self._settler is None or self._settler.idle

    @property
    def _waits_for_no_lock(self) -> bool:
        return self._careful or not self._claiming  # a worker that stops has no time to

    @property
    def _unsettled(self) -> bool:
        return bool(self._finished) or not self._is_alone

    def round(self) -> None:
        """Look if it is time to, and do one turn if there is anything to do: settle, claim, dispatch."""
        self._answered = False
        if self._uncertain:
            self._reconcile()
        for lane in self._lanes:
            lane.prefetch.review()
        free = self._free()
        if free and self._clock() >= self._look_at:
            self._look()  # before the claim, which might fill the only slot with what is due instead of abandoned
        now = self._clock()
        wanted = [(lane, lane.want(room, now)) for lane, room in free if lane.patience(now) <= 0.0]
        endings = self._hand_over(self._gather())
        if endings or wanted:
            self._turn(endings, wanted)

    def _turn(self, endings: list[tuple[Run | None, Ending]], wanted: list[tuple[Lane, Wanted]]) -> None:
        sent_at = self._clock()
        try:
            turn = self._driver.do(
                self._verbs.turn,
                self._claimer,
                [ending for _, ending in endings],
                [want for _, want in wanted],
                careful=self._waits_for_no_lock,
            )
        except TenureError as error:
            self._careful = True
            self._finished.extendleft(reversed(endings))
            for lane, want in wanted:
                lane.unanswered(want)
            self._uncertain = self._uncertain or isinstance(error, OutcomeUnknown)
            took = self._clock() - sent_at
            if self._pace.unanswered(took):
                self._tell_slow(endings, sum(want.limit for _, want in wanted), f"failed after {took:.1f} s")
            raise
        self._answered = True
        self._after(turn, endings, wanted, sent_at)

    def _after(
        self,
        turn: Turn,
        endings: list[tuple[Run | None, Ending]],
        wanted: list[tuple[Lane, Wanted]],
        sent_at: float,
    ) -> None:
        took = self._clock() - sent_at
        if endings:
            self._tell(endings, turn.answers)
        self._careful = bool(self._busy)
        batches = [(lane, [row for row in turn.claimed if row.task in lane.names]) for lane, _ in wanted]
        if endings or turn.claimed:
            self._measure(endings, batches, took)
        for (lane, want), (_, rows) in zip(wanted, batches, strict=True):
            lane.answered(want, rows, sent_at + took, took)
        if turn.claimed:
            self._dispatch(batches, sent_at)

    def _measure(
        self, endings: list[tuple[Run | None, Ending]], batches: list[tuple[Lane, list[Claimed]]], took: float
    ) -> None:
        moved, claimed, shortest = len(endings), 0, math.inf
        for run, _ in endings:
            if run is not None and run.lease.duration < shortest:
                shortest = run.lease.duration
        for _, rows in batches:
            count = len(rows)
            moved = count if count > moved else moved
            claimed += count
            for row in rows:
                shortest = row.lease if row.lease < shortest else shortest
        allowed = self._pace.allowed(shortest)
        if self._pace.answered(moved, took, allowed):
            self._tell_slow(endings, claimed, f"took {took:.1f} s, and must not take more than {allowed:.2g} s")

    def _tell_slow(self, endings: list[tuple[Run | None, Ending]], claimed: int, how: str) -> None:
        detail = f"to settle {len(endings)} jobs and claim {claimed} {how}: at most {self._pace.limit} at a time now"
        self._emitter.emit(Kind.STORE_SLOW, detail=detail)

    def _hand_over(self, endings: list[tuple[Run | None, Ending]]) -> list[tuple[Run | None, Ending]]:
        """Have what was completed settled beside the claim where that is many; return what the turn is to settle.

        Only completions: for whatever comes back to its queue, the looks are timed by the answer.
        """
        if self._settler is None or not self._settler.ready or self._waits_for_no_lock or self._failures:
            return endings
        completed: Completed = [(run, end) for run, end in endings if run is not None and end.verb is Verb.COMPLETE]
        if len(completed) < MANY:
            return endings
        self._settler.settle(completed)
        return [(run, end) for run, end in endings if run is None or end.verb is not Verb.COMPLETE]

    def _take_back(self, settler: Settler) -> None:
        if failed := settler.take_back():
            self._careful = True
            self._finished.extendleft(reversed(failed))

    def _gather(self) -> list[tuple[Run | None, Ending]]:
        if self._settler is not None:
            self._take_back(self._settler)
        while self._busy and (self._stopped or self._clock() >= self._busy[0][0]):
            self._finished.append(self._busy.popleft()[1:])
        gathered: list[tuple[Run | None, Ending]] = []
        while self._finished and len(gathered) < self._pace.limit:
            gathered.append(self._finished.popleft())
        return gathered

    def _free(self) -> list[tuple[Lane, int]]:
        # What has ended goes first: what came too late and is to be given back must not be claimed as abandoned.
        limit = self._pace.limit
        if self.refusal() is not None or len(self._finished) > limit:
            return []
        free = []
        for lane in self._lanes:
            room = lane.prefetch.free()
            if room > 0:
                free.append((lane, room if room < limit else limit))
        return free

    def _look(self) -> None:
        """Learn what time has made claimable, and when it will the next time.

        Under an old transaction a look walks over every job that ran since, and is made seldom.
        """
        asked_at = self._clock()
        outlook = self._driver.do(self._verbs.outlook, self._queues)
        self._answered = True
        for lane in self._lanes:  # who has no room now claims as soon as there is some
            if outlook.due:
                lane.ring()
            if outlook.abandoned:
                lane.behind = True
        pause = LOOK if self.has_bell else LOOK_WITHOUT_BELL
        if outlook.soonest is not None and outlook.soonest < pause:
            pause = max(_BETWEEN_LOOKS, outlook.soonest)
        now = self._clock()
        self._next_look = now + pause
        self._no_look_before = now + self._seldom.after(now - asked_at)

    def _tell(self, endings: list[tuple[Run | None, Ending]], answers: list[Answer]) -> None:
        now = self._clock()
        over = []
        for (run, ending), answer in zip(endings, answers, strict=True):
            if answer.verdict is _LOCKED:
                self._busy.append((now + _BUSY, run, ending))
            elif run is not None:
                over.append((run, ending, answer))
            if ending.verb in _COMES_BACK and answer.verdict is Verdict.DONE:
                self._next_look = min(self._next_look, now + ending.delay)
        self._let_go(over)

    def _settled_beside(self, completed: Completed, answers: Sequence[Answer]) -> None:
        self._let_go([(run, ending, answer) for (run, ending), answer in zip(completed, answers, strict=True)])

    def _let_go(self, over: Sequence[tuple[Run, Ending, Answer]]) -> None:
        """Forget runs that are settled, and tell of them; the settler's thread does this too."""
        self._keeper.drop(*[run.lease for run, _, _ in over])
        self._runs.discard(*[run for run, _, _ in over])
        for run, ending, answer in over:
            self._settled(run, ending, answer)

    def _reconcile(self) -> None:
        """Give back what the store says is ours and we do not know of: claims whose answer was lost (R28)."""
        if not self._is_alone:  # what is just being settled beside would seem unknown
            return
        held = self._driver.do(self._verbs.held, self._claimer.owner)
        self._answered = True
        for token in self._runs.never_had(held):
            self._finished.append((None, Ending(token, Verb.RELEASE, reason="the answer to its claim was lost")))
        self._uncertain = False

    def _run(self) -> None:
        while not self._stopped:
            self._go_round()
            if not self._finished or self._failures:
                self._wake.wait(self._pause())
        self._wind_up()

    def _go_round(self) -> bool:
        self._wake.clear()
        try:
            self.round()
            self._every_round(self._driver)
        except TenureError as error:
            self._failed(error)
            return False
        self._succeeded()
        return True

    def _wind_up(self) -> None:
        """Settle what is left; what is locked is tried until the time is over, a store that is away is asked twice."""
        failed = 0
        while (self._busy or self._unsettled) and failed < _LAST_TRIES and not self._over:
            failed = 0 if self._go_round() else failed + 1
            if failed or not self._finished:
                self._wake.wait(_BETWEEN_LAST_TRIES)

    def _pause(self) -> float:
        if self._stopped:
            return 0.0  # its ring may have come before the round that cleared it
        if self._failures:
            first, longest = _PAUSE_AFTER_FAILURE
            return min(longest, first * 2.0 ** min(self._failures, 10))
        now, refused, looks = self._clock(), self.refusal() is not None, False
        patience = min(LOOK, self._busy[0][0] - now) if self._busy else LOOK
        for lane in self._lanes:
            left = lane.prefetch.patience()
            patience = left if left < patience else patience
            if not refused and lane.prefetch.free() > 0:
                left, looks = lane.patience(now), True
                patience = left if left < patience else patience
        if looks:
            left = self._look_at - now
            patience = left if left < patience else patience
        return patience if patience > 0.0 else 0.0

    def _failed(self, error: TenureError) -> None:
        if not self._failures:
            self._emitter.emit(Kind.STORE_LOST, detail=f"nothing can be claimed or settled: {error}")
        self._failures += 1
        self._driver.close()

    def _succeeded(self) -> None:
        self.last_round = self._clock()
        if self._failures and self._answered:  # a round that had nothing to ask has learned nothing
            self._failures = 0
            self._emitter.emit(Kind.STORE_BACK, detail="claiming and settling again")
            self.ring()


_LOCKED = Verdict.BUSY  # looked up once: there is one answer for each job
_COMES_BACK = {Verb.FAIL, Verb.RETRY, Verb.SNOOZE, Verb.RELEASE}
