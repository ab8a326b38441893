"""A store whose every answer is written down: what was asked before it is sent, what was answered when it came.

It stands between a real worker and its real store, so the history tells what that worker was told, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from tenure.clock import Clock
from tenure.errors import OutcomeUnknown, TenureError
from tenure.proof.history import Call, Outcome
from tenure.proof.recorder import Recorder
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Moved, Turn, Verdict, Wanted
from tenure.protocol.lease import Token, trusted_until
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op
from tenure.store.contract import Driver, Store

T = TypeVar("T")

_OUTCOMES: dict[Verdict, Outcome] = {Verdict.DONE: "ok", Verdict.ALREADY: "already", Verdict.STALE: "stale"}


class RecordedStore:
    """A store that lends recorded drivers; all else is the store's own."""

    def __init__(self, store: Store, recorder: Recorder, rate: float = 1.0) -> None:
        self._store = store
        self._recorder = recorder
        self._rate = rate
        self._leases: dict[Token, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> Driver:
        """Open a driver that threads may share."""
        return self._recorded(self._store.connect(timeout=timeout, repeat_unknown=repeat_unknown))

    def dedicated(self, *, timeout: float) -> Driver:
        """Open a driver for one thread."""
        return self._recorded(self._store.dedicated(timeout=timeout))

    def _recorded(self, driver: Driver) -> Driver:
        return cast(Driver, RecordedDriver(driver, self._recorder, self._leases, self._rate))


def recorded(store: Store, recorder: Recorder, rate: float = 1.0) -> Store:
    """Record whatever is asked of `store`; `rate` is that of the asking worker's clock against the judge's."""
    return cast(Store, RecordedStore(store, recorder, rate))


class RecordedDriver:
    """A driver that writes down the verbs that change a right."""

    def __init__(self, driver: Driver, recorder: Recorder, leases: dict[Token, float], rate: float) -> None:
        self._driver = driver
        self._note = recorder
        self._leases = leases  # how long the lease of each claim is; the claiming and the renewing driver share it
        self._rate = rate

    def do(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
        """Run a verb, and write down what was asked and answered where it is one that the judge looks at."""
        noted: dict[str, Callable[..., Any]] = {
            "turn": self._turn,
            "settle": self._settle,
            "renew": self._renew,
            "operate": self._operate,
        }
        write = noted.get(verb.__name__)
        if write is None:
            return self._driver.do(verb, *args, **kwargs)
        return write(lambda: self._driver.do(verb, *args, **kwargs), *args)

    def close(self) -> None:
        """Give connections back."""
        self._driver.close()

    # -- one method for each verb

    def _turn(
        self, do: Callable[[], Turn], claimer: Claimer, endings: Sequence[Ending], wanted: Sequence[Wanted]
    ) -> Turn:
        ends = self._endings(claimer.owner, endings, claimer.worker)
        claims = [self._note.asked("claim", owner=claimer.owner, worker=claimer.worker)] if wanted else []
        turn = self._answered(do, [*ends, *claims])
        self._ended(ends, turn.answers)
        for asked in claims:
            self._claimed(asked, turn.claimed)
        return turn

    def _claimed(self, asked: Call, rows: Sequence[Claimed]) -> None:
        for row in rows:
            self._leases[Token(row.id, row.generation)] = row.lease
            self._note.answered(
                asked,
                "ok",
                job=row.id,
                generation=row.generation,
                lease=row.lease,
                deadline=self._deadline(asked.sent, row.lease),
                lost=row.lost_generation,
                state=row.state,
            )
        if not rows:
            self._note.answered(asked, "ok")

    def _settle(self, do: Callable[[], list[Answer]], owner: str, endings: Sequence[Ending]) -> list[Answer]:
        asked = self._endings(owner, endings)
        answers = self._answered(do, asked)
        self._ended(asked, answers)
        return answers

    def _endings(self, owner: str, endings: Sequence[Ending], worker: str | None = None) -> list[Call]:
        return [
            self._note.asked(
                ending.verb,
                job=ending.token.job,
                generation=ending.token.generation,
                owner=owner,
                worker=worker,
                result=ending.result,
                detail=_why(ending),
            )
            for ending in endings
        ]

    def _ended(self, asked: Sequence[Call], answers: Sequence[Answer]) -> None:
        for call, answer in zip(asked, answers, strict=True):
            outcome = _OUTCOMES.get(answer.verdict, "fail")
            told = {"result": answer.result} if outcome == "already" else {}
            self._note.answered(call, outcome, current=answer.generation, **told)

    def _renew(
        self, do: Callable[[], list[Answer]], owner: str, tokens: Sequence[Token], duration: float | None = None
    ) -> list[Answer]:
        asked = [
            self._note.asked(
                "renew" if duration is None else "extend",
                job=token.job,
                generation=token.generation,
                owner=owner,
                lease=duration or self._leases.get(token),
            )
            for token in tokens
        ]
        refused = self._answered(do, asked)
        answers = {answer.token: answer for answer in refused}
        for call, token in zip(asked, tokens, strict=True):
            answer = answers.get(token)
            if answer is not None:
                self._note.answered(call, _OUTCOMES.get(answer.verdict, "fail"), current=answer.generation)
            else:
                self._note.answered(call, "ok", deadline=self._deadline(call.sent, call.lease))
        return refused

    def _operate(
        self, do: Callable[[], list[Moved]], verb: Verb, jobs: Sequence[str], _reason: str | None = None
    ) -> list[Moved]:
        asked = [self._note.asked(verb, job=job) for job in jobs]
        moved = self._answered(do, asked)
        for call, one in zip(asked, moved, strict=True):
            self._note.answered(call, "ok" if one.moved else "fail")
        return moved

    def _answered(self, do: Callable[[], T], asked: Sequence[Call]) -> T:
        try:
            return do()
        except OutcomeUnknown:
            raise  # the questions stand in the history without an answer, and that is what they are
        except TenureError:
            for call in asked:
                self._note.answered(call, "fail")
            raise

    def _deadline(self, sent: float, lease: float | None) -> float | None:
        return None if lease is None else sent + trusted_until(0.0, lease) / self._rate


def _why(ending: Ending) -> str:
    if ending.reason is not None or ending.failure is None:
        return ending.reason or ""
    return f"{ending.failure.type}: {ending.failure.message}"


def skewed(clock: Clock, offset: float, rate: float) -> Clock:
    """Make a clock that is wrong by `offset` and runs at `rate`."""
    return lambda: offset + rate * clock()
