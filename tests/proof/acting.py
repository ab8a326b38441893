"""Random but legal lives: workers, zombies and operators on a memory store and a fenced destination, all recorded.

One thread and one injected clock, which is the judge's and the store's; answers get lost before or after the deed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from tenure.errors import NotFound, OutOfSequence, StaleToken
from tenure.fences.rule import Mark, announcement, judge, writing
from tenure.proof.history import AnyLine, Call, CallName, History, Meta, Outcome
from tenure.proof.recorder import Recorder
from tenure.protocol.job import Claimed, Claimer, Ending, NewJob, Verdict, Wanted
from tenure.protocol.lease import Token, trusted_until
from tenure.protocol.lifecycle import ENDINGS, State, Verb
from tenure.store.memory import MemoryStore

LEASE = 10.0
OUTCOMES: dict[Verdict, Outcome] = {Verdict.DONE: "ok", Verdict.ALREADY: "already", Verdict.STALE: "stale"}
OPERATIONS = (Verb.CANCEL, Verb.DISCARD, Verb.RELEASE, Verb.RETRY, Verb.RETRY)
WANTED = Wanted(("default",), ("work",), 2)


class Stage:
    """The store, the destination, the clock, and what has been recorded so far."""

    def __init__(self, seed: int, *, jobs: int = 4, history: str = "full") -> None:
        self.chance = random.Random(seed)
        self.time = 1000.0
        self.lines: list[AnyLine] = []
        self.store = MemoryStore(clock=lambda: self.time, wall=self.wall)
        self.driver = self.store.connect(timeout=1.0)
        self.verbs = self.store.verbs
        self.meta = Meta(began=self.time, seed=seed, store="memory://", history=history)  # type: ignore[arg-type]
        self.operator = Recorder(self.lines.append, "operator", clock=lambda: self.time)
        self.marks: dict[str, Mark] = {}
        self.versions: dict[str, int] = {}
        self.answers: dict[str, str] = {}
        self.ids = [f"job-{number}" for number in range(jobs)]
        self.players = [Player(self, name) for name in "ABC"]
        for job in self.ids:
            self.enqueue(job)

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def pass_time(self, most: float = 0.2) -> None:
        self.time += self.chance.uniform(0.001, most)

    def row(self, job: str) -> Any:
        return self.store._world.jobs.get(job)

    def tell(self, job: str, event: Any, **fields: Any) -> None:
        """Write the entry of the store's own history; in an abnormal one, only what Tenure keeps by itself."""
        if self.meta.history == "full":
            row = self.row(job)
            if row is not None:
                names = ("generation", "owner", "worker", "state", "attempts", "takeovers", "result")
                fields = {name: getattr(row, name) for name in names} | {"until": row.lease_until} | fields
            self.operator.store(job, event, at=self.time, **fields)

    def enqueue(self, job: str) -> None:
        new = NewJob(job, "work", lease=LEASE, max_attempts=4, max_takeovers=6, named=True)
        [made] = self.driver.do(self.verbs.enqueue, [new])
        if made.created:
            self.tell(job, "enqueue")

    def play(self, turns: int) -> History:
        for _ in range(turns):
            self.pass_time(self.chance.choice((0.2, 0.2, 1.0, LEASE / 2)))
            actors: tuple[Callable[[], None], ...] = (*self.players, *self.players, self._operate)
            self.chance.choice(actors)()
            if self.chance.random() < 0.02:
                self._prune()
            if self.chance.random() < 0.03:
                place = self.chance.randrange(len(self.players))
                self.players[place] = Player(self, f"{self.players[place].name}'")
        return self.finish()

    def finish(self) -> History:
        for job in self.ids:
            try:
                record = self.driver.do(self.verbs.get, job)
            except NotFound:
                self.operator.row(job)
            else:
                self.operator.tell_row(record)
                if self.meta.history == "abnormal":
                    for entry in self.driver.do(self.verbs.history, job):
                        self.operator.tell_history(entry)
        return History.of([self.meta, *self.lines])

    def _operate(self) -> None:
        verb, job = self.chance.choice(OPERATIONS), self.chance.choice(self.ids)
        asked = self.operator.asked(verb, job=job)
        before = self.row(job)

        def act() -> tuple[Outcome, Any]:
            [moved] = self.driver.do(self.verbs.operate, verb, [job])
            if not moved.moved:
                return "fail", None
            self.tell(job, verb, right=before.generation if before.state is State.RUNNING else None)
            return "ok", None

        self.ask(self.operator, asked, act)

    def _prune(self) -> None:
        job = self.chance.choice(self.ids)
        row = self.row(job)
        if row is not None and row.finished_at is not None:
            asked = self.operator.asked("prune", job=job)
            self.store._world.raise_floor(row.generation)
            self.store._world.remove(job)
            self.tell(job, "prune")
            self.pass_time()
            self.operator.answered(asked, "ok")
        self.enqueue(job)

    def ask(self, recorder: Recorder, asked: Call, act: Callable[[], tuple[Outcome, Any]]) -> Outcome:
        """Do it between question and answer, unless the question gets lost; the answer may get lost as well."""
        fate = self.chance.random()
        self.pass_time()
        if fate < 0.04:
            return "unknown" if self.chance.random() < 0.5 else recorder.answered(asked, "fail").outcome
        outcome, result = act()
        self.pass_time()
        if fate < 0.12:
            return "unknown"
        return recorder.answered(asked, outcome, result=result).outcome


class Player:
    """One start of a worker, which may go on after it has lost what it held."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.claimer = Claimer(f"owner-{name}-{stage.chance.getrandbits(32):x}", name)
        self.recorder = Recorder(stage.lines.append, self.claimer.owner, clock=lambda: stage.time)
        self.mine: dict[Token, float] = {}
        self.sequences: dict[Token, int] = {}
        self.past: list[Ending] = []
        self.ended: set[Token] = set()
        self.raised: set[Token] = set()

    def __call__(self) -> None:
        deeds = (self._claim, self._claim, self._renew, self._end, self._end, self._write, self._write, self._note)
        self.stage.chance.choice((*deeds, self._repeat, self._give_back))()

    def asked(self, call: CallName | Verb, token: Token | None = None, **fields: Any) -> Call:
        if token is not None:
            fields = {"job": token.job, "generation": token.generation} | fields
        return self.recorder.asked(call, owner=self.claimer.owner, worker=self.name, **fields)

    def _claim(self) -> None:
        sent = self.stage.time
        asked = self.asked("claim")
        self.stage.pass_time()
        if self.stage.chance.random() < 0.05:
            return
        claimed = self.stage.driver.do(self.stage.verbs.claim, self.claimer, WANTED)
        for one in claimed:
            event = "claim" if one.lost_generation is None else "takeover"
            self.stage.tell(one.id, event, right=one.lost_generation)
        self.stage.pass_time()
        if self.stage.chance.random() < 0.1:
            return
        for one in claimed:
            self._take(asked, one, sent)
        if not claimed:
            self.recorder.answered(asked, "ok")

    def _take(self, asked: Call, one: Claimed, sent: float) -> None:
        deadline = trusted_until(sent, one.lease)
        given = {"lease": one.lease, "deadline": deadline} if one.state is State.RUNNING else {"state": one.state}
        self.recorder.answered(asked, "ok", job=one.id, generation=one.generation, lost=one.lost_generation, **given)
        if one.state is State.RUNNING:
            self.mine[Token(one.id, one.generation)] = deadline

    def _pick(self) -> Token | None:
        return self.stage.chance.choice(list(self.mine)) if self.mine else None

    def _renew(self) -> None:
        token = self._pick()
        if token is None:
            return
        sent = self.stage.time
        deadline = trusted_until(sent, LEASE)
        asked = self.asked("renew", token, lease=LEASE, deadline=deadline)

        def act() -> tuple[Outcome, Any]:
            refused = self.stage.driver.do(self.stage.verbs.renew, self.claimer.owner, [token])
            if not refused:
                self.stage.tell(token.job, "renew", right=token.generation)
            return "stale" if refused else "ok", None

        if self.stage.ask(self.recorder, asked, act) == "ok" and self.stage.time < self.mine[token]:
            self.mine[token] = max(self.mine[token], deadline)

    def _end(self) -> None:
        token = self._pick()
        if token is None:
            return
        if self.stage.chance.random() < 0.7:
            del self.mine[token]
        verb = Verb.COMPLETE if self.stage.chance.random() < 0.3 else self.stage.chance.choice(sorted(ENDINGS))
        if verb is Verb.COMPLETE and not self._has_raised(token):
            return
        result = f'"{self.stage.chance.getrandbits(40):x}"' if verb is Verb.COMPLETE else None
        self._settle(Ending(token, verb, self.stage.chance.choice((0.0, 0.0, 3.0)), result))

    def _repeat(self) -> None:
        if self.past:
            self._settle(self.stage.chance.choice(self.past))

    def _settle(self, ending: Ending) -> None:
        self.past.append(ending)
        asked = self.asked(ending.verb, ending.token, result=ending.result)
        self.ended.add(ending.token)

        def act() -> tuple[Outcome, Any]:
            [answer] = self.stage.driver.do(self.stage.verbs.settle, self.claimer.owner, [ending])
            if answer.verdict is Verdict.DONE:
                self.stage.tell(ending.token.job, ending.verb, right=ending.token.generation, owner=self.claimer.owner)
            elif answer.verdict is Verdict.STALE:
                self.stage.tell(ending.token.job, "refused", right=ending.token.generation, detail=str(ending.verb))
            return OUTCOMES[answer.verdict], answer.result if answer.verdict is Verdict.ALREADY else ending.result

        self.stage.ask(self.recorder, asked, act)

    def _note(self) -> None:
        token = self._pick()
        if token is None:
            return
        name = self.stage.chance.choice("xy")
        mine = f'"{self.stage.chance.getrandbits(20)}"'
        asked = self.asked("step", token, key=name, result=mine)

        def act() -> tuple[Outcome, Any]:
            answer = self.stage.driver.do(self.stage.verbs.record_step, self.claimer.owner, token, name, mine)
            if answer.verdict is Verdict.DONE:
                self.stage.tell(token.job, "step", right=token.generation)
            return OUTCOMES[answer.verdict], mine if answer.verdict is Verdict.DONE else answer.result

        self.stage.ask(self.recorder, asked, act)

    def _give_back(self) -> None:
        """Ask what the store says is held, and release what is not known here: a claim whose answer was lost."""
        for token in self.stage.driver.do(self.stage.verbs.held, self.claimer.owner):
            if token not in self.mine:
                self._settle(Ending(token, Verb.RELEASE))

    def _write(self) -> None:
        token = self._pick()
        if token is None or token in self.ended:
            return
        sent = self.stage.time
        self.stage.pass_time(0.002)
        if self.stage.time >= self.mine[token]:
            return
        self.sequences[token] = self.sequences.get(token, 0) + 1
        names = {"owner": self.claimer.owner, "worker": self.name, "job": token.job, "generation": token.generation}
        self.recorder.call("effect", "ok", sent=sent, deadline=self.mine[token], **names)
        if self._has_raised(token):
            self._at_the_destination("apply", token, self.sequences[token])

    def _has_raised(self, token: Token) -> bool:
        """Raise the fence for this run, unless that was done: before the first write, and before a completion."""
        if token not in self.raised and self._at_the_destination("raise", token, 0) == "ok":
            self.raised.add(token)
        return token in self.raised

    def _at_the_destination(self, call: Literal["raise", "apply"], token: Token, sequence: int) -> Outcome:
        base = self.stage.versions.get(token.job, 0)
        fields = {"scope": token.job, "destination": "table", "sequence": sequence or None}
        key = f"{token.job}/{token.generation}/{sequence}" if call == "apply" else None
        asked = self.asked(call, token, key=key, **fields)

        def act() -> tuple[Outcome, Any]:
            bid = writing(token, sequence=sequence) if sequence else announcement(token)
            try:
                self.stage.marks[token.job] = judge(self.stage.marks.get(token.job), bid)
            except StaleToken:
                return "stale", None
            except OutOfSequence:
                return "fail", None
            after = self.stage.versions[token.job] = base + (sequence > 0)
            told = {"before": base, "after": after, "value": self.name, "key": key} if sequence else {}
            self.recorder.applied(
                token.job,
                call,
                destination="table",
                job=token.job,
                generation=token.generation,
                sequence=sequence or None,
                at=self.stage.time,
                **told,
            )
            return "ok", None

        return self.stage.ask(self.recorder, asked, act)
