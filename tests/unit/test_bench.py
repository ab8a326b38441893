"""The benchmark itself, without a single measurement: what it must notice, and what its tables must say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import page
from bench.arenas import Arena
from bench.bars import BARS, PEERS, Bar, judge
from bench.board import Board, fresh_board
from bench.children import Failed
from bench.entrant import Entrant
from bench.entrants import LIMITS, TENURE
from bench.entrants import PEERS as ENTRANTS
from bench.limits import BarePostgres
from bench.measure import Figures, JobsLost, await_drained
from bench.own import OwnOnPostgres
from bench.peers.pgqueuer import PgQueuer
from bench.questions import QUESTIONS, QUICK, Question
from bench.results import RATE, About, Answer, Results, Row
from bench.run import ask


class Moving:
    """A clock that moves by what is slept."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def board() -> Iterator[Board]:
    with fresh_board(5) as made:
        yield made


def drained(board: Board, left: Callable[[], int], check: Callable[[], None] = lambda: None) -> float:
    clock = Moving()
    return await_drained(board, left, check, clock=clock, sleep=clock.sleep)


# -- a drain counts only what was done and acknowledged


def test_a_drain_ends_when_every_job_ran_and_none_is_left(board: Board) -> None:
    answers = iter([3, 1, 0])
    for number in range(5):
        board.mark(number)
    assert drained(board, lambda: next(answers)) > 1000.0


def test_a_drain_that_loses_a_job_is_noticed(board: Board) -> None:
    for number in (0, 1, 3, 4):
        board.mark(number)
    with pytest.raises(JobsLost, match="1 of 5 jobs never ran"):
        drained(board, lambda: 0)


def test_a_job_that_ran_and_was_not_acknowledged_is_noticed(board: Board) -> None:
    for number in range(5):
        board.mark(number)
    with pytest.raises(Failed, match="2 are left"):
        drained(board, lambda: 2)


def test_a_worker_that_dies_ends_the_wait(board: Board) -> None:
    def check() -> None:
        raise Failed("work: it died")

    with pytest.raises(Failed, match="it died"):
        drained(board, lambda: 5, check)


def test_the_board_is_shared_by_whoever_maps_it(board: Board) -> None:
    other = Board(board.path, place=1)
    for number in range(5):
        (board if number % 2 else other).mark(number)
    other.mark(0)
    assert board.all_ran()
    assert board.missing == 0
    assert board.repeats == 1
    assert board.all_at_work == board.times[1]  # the first job of the process that began last


def test_delays_are_those_from_a_job_on(board: Board) -> None:
    for number in range(4):
        board.sent(number)
        board.mark(number)
    assert len(board.delays(after=2)) == 2
    assert all(0 <= delay < 1 for delay in board.delays(after=0))


# -- who fails or is missing is named, and does not stop the others


class Peer(PgQueuer):
    name = "a peer"

    def version(self) -> str | None:
        return "1"


class Missing(PgQueuer):
    name = "a missing peer"
    distribution, needs = "surely-not-installed", "it needs another Python"


def test_a_failing_or_missing_peer_does_not_stop_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    def measure(_arena: Arena, entrant: Entrant, jobs: int) -> Figures:
        if entrant.role == "peer":
            raise ValueError("its server said no")
        return {RATE: 100.0 * jobs}

    question = Question("drain", measure, pilot=10)
    rows = ask(question, None, [OwnOnPostgres(), Peer(), Missing()], QUICK)  # type: ignore[arg-type]  # no arena is asked
    own, failing, missing = rows
    assert own.figures == {RATE: [100.0 * own.jobs]}
    assert failing.problem == "its server said no"
    assert missing.problem == "surely-not-installed is not installed: it needs another Python"
    assert "a peer: its server said no" in capsys.readouterr().out


def test_everybody_is_measured_in_every_round() -> None:
    asked: list[str] = []

    def measure(_arena: Arena, entrant: Entrant, _jobs: int) -> Figures:
        asked.append(entrant.name)
        return {RATE: float(len(asked))}

    question = Question("drain", measure, size=lambda _scale: 1)
    scale = type(QUICK)(**{name: getattr(QUICK, name) for name in QUICK.__slots__} | {"rounds": 3})
    own, peer = ask(question, None, [OwnOnPostgres(), Peer()], scale)  # type: ignore[arg-type]  # no arena is asked
    assert asked == ["Tenure", "a peer", "a peer", "Tenure", "Tenure", "a peer"]
    assert [len(row.figures[RATE]) for row in (own, peer)] == [3, 3]


def test_a_question_is_not_put_to_who_has_no_such_handlers() -> None:
    question = Question("drain, threads", lambda *_: {}, handler="thread")
    assert question.refusal(BarePostgres()) == "has no thread handlers"


# -- the table tells it all


def results(*rows: Row) -> Results:
    return Results(
        taken_at="2030-01-01",
        command="python -m bench.run",
        rounds=3,
        quick=False,
        stores={"postgresql": "PostgreSQL: durable"},
        entrants={"Tenure": About(version="1", settings="", weaker="", handlers=("async",))},
        answers=[Answer(question="drain, async", store="postgresql", rows=list(rows))],
    )


OWN = Row(entrant="Tenure", role="tenure", jobs=10, figures={RATE: [90.0, 100.0, 500.0]})
SLOW = Row(entrant="slow", role="peer", jobs=10, figures={RATE: [10.0, 20.0, 30.0]})
FAST = Row(entrant="fast", role="peer", jobs=10, figures={RATE: [40.0, 50.0, 60.0]})
GONE = Row(entrant="gone", role="peer", problem="gone is not installed")


@pytest.mark.parametrize(("bound", "met"), [(2.0, True), (2.1, False)])
def test_a_bar_is_held_against_the_fastest_peer(bound: float, met: bool) -> None:
    verdict = judge(
        results(OWN, SLOW, FAST, GONE), Bar(question="drain, async", store="postgresql", than=PEERS, at_least=bound)
    )
    assert (verdict.other, verdict.ratio, verdict.met) == ("fast", 2.0, met)


def test_a_bar_without_its_yardstick_is_not_met() -> None:
    verdict = judge(results(OWN, GONE), Bar(question="drain, async", store="postgresql", than=PEERS, at_least=2.0))
    assert verdict.met is None
    assert verdict.reason == "the fastest peer was not measured"


def test_the_page_says_what_is_missing(tmp_path: Path) -> None:
    page.write(results(OWN, SLOW, GONE), tmp_path)
    text = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "gone: not measured, gone is not installed" in text
    assert "| Tenure | 100 (90.0\N{EN DASH}500) |" in text
    assert "not judged: not asked in this run" in text
    (picture,) = (tmp_path / "performance").glob("*.svg")
    assert f"performance/{picture.name}" in text
    assert "gone" not in picture.read_text(encoding="utf-8")


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    results(OWN, GONE).write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results(OWN, GONE)


def test_every_bar_stands_over_a_question_and_a_limit_that_exist() -> None:
    questions = {question.name for question in QUESTIONS}
    limits = {limit.name for limit in LIMITS}
    assert {bar.question for bar in BARS} <= questions
    assert {bar.than for bar in BARS} <= questions | limits | {PEERS, ""}


def test_every_peer_of_the_requirements_can_be_asked() -> None:
    pinned = Path(__file__).parents[2].joinpath("requirements", "bench.txt").read_text(encoding="utf-8")
    entrants = [*ENTRANTS, *TENURE.values(), *LIMITS]
    assert [entrant.name for entrant in ENTRANTS if f"\n{entrant.distribution}==" not in pinned] == []
    assert len({entrant.key for entrant in entrants}) == len(entrants)
