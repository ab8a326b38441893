"""Part: many act at once, at random and with a moving clock; a judge reads what they were answered."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tenure.clock import boot_clock
from tenure.ids import new_job_id, new_owner
from tenure.proof.history import AnyLine, History, Meta, Outcome
from tenure.proof.judge import judge
from tenure.proof.recorder import Recorder
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Verdict
from tenure.protocol.lease import trusted_until
from tenure.protocol.lifecycle import ENDINGS, FINAL, State, Verb
from tenure.protocol.op import Op, ask
from tenure.testing.conformance.bench import LEASE, QUEUE, Act, Bench, new_job, token, wanted

MEMBERS = 5
ROUNDS = 60
JOBS = 16
OPERATED = (Verb.CANCEL, Verb.DISCARD, Verb.RELEASE, Verb.RETRY, Verb.RETRY, Verb.RELEASE)
ASSERTED = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I12", "I13", "I15", "I17"]
OUTCOMES: dict[Verdict, Outcome] = {Verdict.DONE: "ok", Verdict.ALREADY: "already", Verdict.STALE: "stale"}


@pytest.mark.parametrize("seed", range(4))
def test_a_crowd_keeps_the_invariants(crowd_bench: Bench, seed: int) -> None:
    crowd = Crowd(crowd_bench)
    told = crowd_bench.crowd([Member(crowd, f"member {n}", seed * 100 + n).live() for n in range(MEMBERS)])
    history = History.of([Meta(history="abnormal"), *(line for lines in told for line in lines), *_drain(crowd)])
    judgement = judge(history)
    assert judgement.violations == []
    assert [result.invariant for result in judgement.results if result.checked] == ASSERTED
    assert {str(row.state) for row in history.rows} <= {str(state) for state in FINAL}
    assert _reached(history) == set()


def test_a_job_is_claimed_by_one_of_many(crowd_bench: Bench) -> None:
    jobs = [crowd_bench.enqueue() for _ in range(60)]
    claims = crowd_bench.crowd([_claim_all(crowd_bench, limit=1 + n) for n in range(MEMBERS)])
    assert sorted(claimed for told in claims for claimed in told) == sorted(jobs)


def test_a_unique_key_is_given_to_one_of_many(crowd_bench: Bench) -> None:
    jobs = [[new_job(unique_key=str(key)) for key in range(10)] for _ in range(MEMBERS)]
    enqueue = crowd_bench.verbs.enqueue
    answers = crowd_bench.crowd([ask(Act(enqueue, (batch,))) for batch in jobs])
    for met in zip(*answers, strict=True):
        assert len({one.id for one in met}) == 1
        assert sorted(one.created for one in met) == [False] * (MEMBERS - 1) + [True]


class Crowd:
    """What the members share: the jobs, and bounds on the store's clock while it is being moved."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.jobs = [bench.enqueue(max_takeovers=8 if n % 4 else None, priority=n % 3) for n in range(JOBS)]
        self._begun = self._done = 0.0
        self._one_at_a_time = threading.Lock()

    def earliest(self) -> float:
        """Read a moment that the store's clock has surely reached."""
        return boot_clock() + self._done

    def latest(self) -> float:
        """Read a moment that the store's clock has surely not passed."""
        return self._begun + boot_clock()

    def shift(self, seconds: float) -> None:
        """Move the store's clock."""
        with self._one_at_a_time:
            self._begun += seconds
            self.bench.shift(seconds)
            self._done += seconds


@dataclass
class Member:
    """Somebody who claims, renews, ends and forgets at random."""

    crowd: Crowd
    name: str
    seed: int
    told: list[AnyLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Give the member an identity and a chance of its own."""
        self.claimer = Claimer(new_owner(), self.name)
        self.chance = random.Random(self.seed)
        self.recorder = Recorder(self.told.append, self.name, clock=self.crowd.latest)
        self.mine: list[Claimed] = []
        self.past: list[Ending] = []

    def live(self) -> Op[list[AnyLine]]:
        """Act for some rounds and return what was answered."""
        deeds: tuple[Callable[[], Op[None]], ...] = (
            *[self._claim] * 5,
            *[self._renew] * 2,
            *[self._end] * 3,
            self._progress,
            self._repeat,
            self._operate,
            self._turn_the_clock,
        )
        for _ in range(ROUNDS):
            yield from self.chance.choice(deeds)()
        return self.told

    def _ask(self, verb: Callable[..., Op[Any]], *args: Any) -> Op[tuple[Any, float]]:
        sent = self.crowd.earliest()
        return (yield from ask(Act(verb, args))), sent

    def _claim(self) -> Op[None]:
        asked = wanted(self.chance.randint(1, 3), takeovers=self.chance.random() < 0.8)
        claimed, sent = yield from self._ask(self.crowd.bench.verbs.claim, self.claimer, asked)
        for one in claimed:
            self.tell_claim(one, sent)
            if one.state is State.RUNNING:
                self.mine.append(one)

    def _renew(self) -> Op[None]:
        tokens = [token(one) for one in self.mine]
        answers, sent = yield from self._ask(self.crowd.bench.verbs.renew, self.claimer.owner, tokens)
        refused = {answer.token: answer for answer in answers}
        for one in self.mine:
            answer = refused.get(token(one))
            if answer is None:
                given = {"lease": one.lease, "deadline": trusted_until(sent, one.lease)}
                self.tell(Verb.RENEW, Answer(token(one), Verdict.DONE), sent, **given)
            elif answer.verdict is Verdict.STALE:
                self.tell(Verb.RENEW, answer, sent)

    def _end(self) -> Op[None]:
        if self.mine:
            # Often the run is ended without being forgotten, as a worker does that goes on unknowing.
            one = self.chance.choice(self.mine)
            if self.chance.random() < 0.7:
                self.mine.remove(one)
            verb = Verb.COMPLETE if self.chance.random() < 0.3 else self.chance.choice(sorted(ENDINGS))
            delay = self.chance.choice((0.0, 0.0, 20.0))
            yield from self._settle(Ending(token(one), verb, delay, result=f'"{new_job_id()}"'))

    def _repeat(self) -> Op[None]:
        if self.past:
            yield from self._settle(self.chance.choice(self.past))

    def _settle(self, ending: Ending) -> Op[None]:
        self.past.append(ending)
        [answer], sent = yield from self._ask(self.crowd.bench.verbs.settle, self.claimer.owner, [ending])
        result = answer.result if answer.verdict is Verdict.ALREADY else ending.result
        self.tell(ending.verb, answer, sent, result=result if ending.verb is Verb.COMPLETE else None)

    def _progress(self) -> Op[None]:
        if self.mine:
            one = self.chance.choice(self.mine)
            progress = self.crowd.bench.verbs.progress
            answer, sent = yield from self._ask(progress, self.claimer.owner, token(one), "1")
            self.tell(Verb.PROGRESS, answer, sent)

    def _operate(self) -> Op[None]:
        verb, jobs = self.chance.choice(OPERATED), self.chance.sample(self.crowd.jobs, 2)
        moved, sent = yield from self._ask(self.crowd.bench.verbs.operate, verb, jobs)
        for one in moved:
            self.recorder.call(verb, "ok" if one.moved else "fail", sent=sent, job=one.id)

    def _turn_the_clock(self) -> Op[None]:
        self.crowd.shift(self.chance.choice((1.0, 10.0, LEASE + 1.0)))
        yield from self._claim()

    def tell(self, verb: Verb, answer: Answer, sent: float, **fields: Any) -> None:
        """Note an answer to a write of this member."""
        right = {"job": answer.token.job, "generation": answer.token.generation, "owner": self.claimer.owner}
        self.recorder.call(verb, OUTCOMES[answer.verdict], sent=sent, worker=self.name, **right, **fields)

    def tell_claim(self, one: Claimed, sent: float) -> None:
        """Note what a claim was given: a lease, or a poison job that is over."""
        given: dict[str, Any] = {"state": one.state}
        if one.state is State.RUNNING:
            given = {"lease": one.lease, "deadline": trusted_until(sent, one.lease)}
        right = {"job": one.id, "generation": one.generation, "owner": self.claimer.owner}
        self.recorder.call("claim", "ok", sent=sent, worker=self.name, lost=one.lost_generation, **right, **given)


def _drain(crowd: Crowd) -> list[AnyLine]:
    """Bring every live job to its end, so that what was lost on the way is missed; and tell how all of them stand."""
    last = Member(crowd, "last", 0)
    worker = crowd.bench.worker("last")
    last.claimer = worker.claimer
    crowd.shift(10 * LEASE)
    sent = crowd.earliest()
    for one in worker.claim(JOBS):
        last.tell_claim(one, sent)
        if one.state is State.RUNNING:
            sent = crowd.earliest()
            last.tell(Verb.COMPLETE, worker.complete(one, '"last"'), sent, result='"last"')
    for job in crowd.jobs:
        last.recorder.tell_row(crowd.bench.get(job))
        for entry in crowd.bench.history(job):
            last.recorder.tell_history(entry)
    return last.told


def _reached(history: History) -> set[str]:
    """Name what such a crowd should have met and did not: a run without it would prove little."""
    done = [call for call in history.calls if call.outcome == "ok"]
    met: set[str] = {call.call for call in done} | {call.outcome for call in history.calls}
    met |= {"takeover" for call in done if call.lost is not None}
    return {"claim", "takeover", "renew", "complete", "progress", "stale"} - met


def _claim_all(bench: Bench, *, limit: int) -> Op[list[str]]:
    claimer = Claimer(new_owner(), "one of many")
    jobs: list[str] = []
    while claimed := (yield from ask(Act(bench.verbs.claim, (claimer, wanted(limit, queues=(QUEUE,)))))):
        assert len(claimed) <= limit
        jobs.extend(one.id for one in claimed)
    return jobs
