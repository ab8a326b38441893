"""The parts of `tenure prove`: the recorded store, the reference destination, the plan."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tenure.app import App
from tenure.errors import BadSettings, OutcomeUnknown, OutOfSequence, StaleToken, Unavailable
from tenure.fences.rule import Mark
from tenure.proof.history import Call, Calm, History, Line, Meta
from tenure.proof.prove import runner
from tenure.proof.prove.places import (
    HOST,
    Reference,
    Reply,
    Request,
    Server,
    Service,
    check_place,
    names_in,
    open_place,
)
from tenure.proof.prove.plan import FAULTS, Plan, read_faults
from tenure.proof.prove.recorded import recorded, skewed
from tenure.proof.recorder import Recorder
from tenure.protocol.job import Claimer, Ending, Failure, NewJob, Turn, Wanted
from tenure.protocol.lease import Effect, Token, trusted_until
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op
from tenure.store.contract import Driver
from tenure.store.memory import MemoryStore
from tenure.testing.proxy import Proxy
from tests.proof.places import refuse_late

PATIENCE = 30.0
ME = Claimer("owner-1", "A")
WANTED = Wanted(("q",), ("t",), 5)


# -- the recorded store


class Bench:
    """A memory store whose answers are written into `lines`, on a clock that the test moves."""

    def __init__(self, rate: float = 1.0) -> None:
        self.lines: list[Line] = []
        self.time = 100.0
        self.memory = MemoryStore()
        recorder = Recorder(self.lines.append, "p", clock=lambda: self.time)
        self.app = App(recorded(self.memory, recorder, rate))
        self.driver = self.app.store.dedicated(timeout=1.0)
        self.app.client.enqueue([NewJob("j", "t", queue="q", lease=10.0)])

    def turn(self, endings: list[Ending], wanted: list[Wanted]) -> Turn:
        turn = self.driver.do(self.app.store.verbs.turn, ME, endings, wanted, careful=False)
        assert isinstance(turn, Turn)
        return turn

    def calls(self) -> list[Call]:
        """What the history says in the end: the answers, and the questions without one."""
        return History.of([Meta(), *self.lines]).calls  # type: ignore[list-item]  # calls are all that was written


def test_a_claim_is_written_before_it_is_sent_and_when_it_was_answered() -> None:
    bench = Bench()
    bench.turn([], [WANTED])
    asked, answered = (line for line in bench.lines if isinstance(line, Call))
    assert (asked.call, asked.outcome, asked.answered, asked.owner) == ("claim", "unknown", None, "owner-1")
    assert (answered.job, answered.generation, answered.outcome, answered.lease) == ("j", 1, "ok", 10.0)
    assert answered.deadline == pytest.approx(trusted_until(100.0, 10.0))
    assert len(bench.calls()) == 1


def test_a_claim_of_nothing_was_answered_too() -> None:
    bench = Bench()
    bench.turn([], [WANTED])
    bench.turn([], [WANTED])
    assert [(call.outcome, call.job) for call in bench.calls()] == [("ok", "j"), ("ok", None)]


def test_a_late_end_is_written_down_with_what_it_met() -> None:
    bench = Bench()
    bench.turn([], [WANTED])
    bench.app.client.release(["j"])
    bench.turn([Ending(Token("j", 1), Verb.COMPLETE, result='"mine"')], [])
    end = bench.calls()[-1]
    assert (end.call, end.outcome, end.generation, end.result) == ("complete", "stale", 1, '"mine"')
    assert end.current == 2
    release = bench.calls()[-2]
    assert (release.call, release.outcome, release.owner) == ("release", "ok", None)


@pytest.mark.parametrize(
    ("told", "detail"),
    [
        ({"failure": Failure("ValueError", "here", "bad column", "Traceback")}, "ValueError: bad column"),
        ({"failure": Failure("ValueError", "here", "bad column"), "reason": "by hand"}, "by hand"),
        ({}, ""),
    ],
)
def test_a_failed_run_is_written_down_with_its_error(told: dict[str, Any], detail: str) -> None:
    bench = Bench()
    bench.turn([], [WANTED])
    bench.turn([Ending(Token("j", 1), Verb.FAIL, **told)], [])
    assert [(call.call, call.detail) for call in bench.calls()[1:]] == [("fail", detail)]


def test_a_repeated_end_gets_the_first_result() -> None:
    bench = Bench()
    bench.turn([], [WANTED])
    for result in ('"first"', '"second"'):
        bench.turn([Ending(Token("j", 1), Verb.COMPLETE, result=result)], [])
    assert [(call.outcome, call.result) for call in bench.calls()[1:]] == [("ok", '"first"'), ("already", '"first"')]


def test_renewals_are_written_one_by_one_with_their_new_deadline() -> None:
    bench = Bench(rate=2.0)
    bench.turn([], [WANTED])
    bench.time += 3.0
    bench.app.client.renew("owner-1", [Token("j", 1), Token("k", 1)])
    kept, refused = bench.calls()[1:]
    assert (kept.call, kept.job, kept.outcome, kept.lease) == ("renew", "j", "ok", 10.0)
    assert kept.deadline == pytest.approx(103.0 + trusted_until(0.0, 10.0) / 2.0)  # a fast clock stops believing early
    assert (refused.job, refused.outcome, refused.lease) == ("k", "stale", None)
    bench.app.client.renew("owner-1", [Token("j", 1)], 30.0)
    assert (bench.calls()[-1].call, bench.calls()[-1].lease) == ("extend", 30.0)


@pytest.mark.parametrize(("error", "outcome"), [(Unavailable("away"), "fail"), (OutcomeUnknown("cut"), "unknown")])
def test_what_was_not_answered_stays_a_question(error: Exception, outcome: str) -> None:
    class Broken:
        def do(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
            raise error

    class BrokenStore:
        verbs = MemoryStore().verbs

        def dedicated(self, *, timeout: float) -> Driver:
            return Broken()  # type: ignore[return-value]  # nobody closes it

    lines: list[Line] = []
    store = recorded(BrokenStore(), Recorder(lines.append, "p"))  # type: ignore[arg-type]  # all that is used of one
    with pytest.raises(type(error)):
        store.dedicated(timeout=1.0).do(
            store.verbs.turn, ME, [Ending(Token("j", 1), Verb.COMPLETE)], [WANTED], careful=False
        )
    calls = History.of([Meta(), *lines]).calls  # type: ignore[list-item]  # calls are all that was written
    assert [(call.call, call.outcome) for call in calls] == [("complete", outcome), ("claim", outcome)]


def test_a_skewed_clock_is_wrong_as_told() -> None:
    assert skewed(lambda: 10.0, 3600.0, 0.5)() == 3605.0


# -- the reference destination


@pytest.fixture
def service() -> Service:
    return Service(fence=True)


@pytest.fixture
def place(service: Service) -> Iterator[Reference]:
    with Server(service) as server:
        place = Reference(server.port, PATIENCE)
        yield place
        place.close()


def test_a_late_write_is_refused_and_the_log_tells_what_was_applied(service: Service, place: Reference) -> None:
    place.raise_to(Token("j", 1), "s")
    place.write(Effect("j", 1, 1), "s", '["a"]', 1)
    place.raise_to(Token("j", 2), "s")
    with pytest.raises(StaleToken) as refused:
        place.write(Effect("j", 1, 2), "s", '["a", "late"]', 2)
    assert refused.value.current == 2
    with pytest.raises(StaleToken):
        place.raise_to(Token("j", 1), "s")
    place.write(Effect("j", 2, 1), "s", '["a", "b"]', 1)
    with pytest.raises(OutOfSequence) as repeated:
        place.write(Effect("j", 2, 1), "s", '["a", "b"]', 1)
    assert (repeated.value.sequence, repeated.value.highest) == (1, 1)
    assert place.read("s") == '["a", "b"]'
    told = [(line.act, line.generation, line.before, line.after) for line in service.log]
    assert told == [
        ("raise", 1, None, None),
        ("apply", 1, "nothing", "a"),
        ("raise", 2, None, None),
        ("apply", 2, "a", "b"),
    ]


def test_without_the_fence_everything_is_applied() -> None:
    service = Service(fence=False)
    service.answer(Request("raise", "s", "j", 2))
    for generation in (2, 1):
        assert service.answer(Request("apply", "s", "j", generation, 1, f'["g{generation}"]')) == Reply(
            f'["g{generation}"]'
        )
    assert [line.generation for line in service.log] == [2, 1]


def test_a_lost_answer_is_unknown_and_the_next_call_connects_anew(service: Service) -> None:
    with Server(service) as server, Proxy(HOST, server.port) as proxy:
        place = Reference(proxy.port, PATIENCE)
        place.raise_to(Token("j", 1), "s")
        proxy.drop_reply()
        with pytest.raises(OutcomeUnknown):
            place.write(Effect("j", 1, 1), "s", '["a"]', 1)
        assert place.read("s") == '["a"]'
        proxy.refuse()
        proxy.cut()
        with pytest.raises(OutcomeUnknown):
            place.read("s")
        with pytest.raises(Unavailable):
            place.read("s")
        place.close()


def test_nothing_comes_between_comparison_and_write() -> None:
    service = Service(fence=True)
    compared, overtaken = threading.Event(), threading.Event()

    class Slow(dict[str, Mark]):
        """Marks between whose reading and writing there is time for somebody else."""

        def get(self, key: str, default: Any = None) -> Any:
            mark = super().get(key, default)
            if not compared.is_set():
                compared.set()
                overtaken.wait(0.3)
            return mark

    service._marks = Slow()
    late = threading.Thread(target=service.answer, args=(Request("apply", "s", "j", 1, 1, '["late"]'),))
    late.start()
    assert compared.wait(PATIENCE)
    service.answer(Request("apply", "s", "j", 2, 1, '["new"]'))
    overtaken.set()
    late.join()
    assert [line.generation for line in service.log] == [1, 2]
    assert service.answer(Request("read", "s")).value == '["new"]'


@pytest.mark.parametrize("cut", [1, 20, None])
def test_a_request_that_was_not_ended_is_no_request(
    cut: int | None, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[BaseException | None] = []
    monkeypatch.setattr(socketserver.BaseServer, "handle_error", lambda *_: errors.append(sys.exc_info()[1]))
    request = msgspec.json.encode(Request("apply", "s", "j", 1, 1, '["a"]'))
    with Server(service) as server, socket.create_connection((HOST, server.port), timeout=PATIENCE) as connection:
        connection.sendall(request[:cut])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert (errors, service.log) == ([], [])


@pytest.mark.parametrize("value", [None, "no list", '{"a": 1}', "3"])
def test_a_value_that_is_no_list_has_lost_all_writes(value: str | None) -> None:
    assert names_in(value) == []


# -- the end of a run


@dataclass
class Machine:
    """A clock that goes on where somebody sleeps, and how long it stands still at each sleep."""

    stills: list[float]
    now: float = 100.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds + (self.stills.pop(0) if self.stills else 0.0)


def calmed(monkeypatch: pytest.MonkeyPatch, machine: Machine, over: float) -> tuple[list[float], float]:
    """End a run whose jobs are over at a moment; tell when calm began, each time, and when it was waited for."""
    lines: list[Line] = []
    monkeypatch.setattr(runner, "boot_clock", lambda: machine.now)
    monkeypatch.setattr(runner, "time", machine)
    run: Any = object.__new__(runner._Run)
    run.plan, run.queue = Plan(lease=1.0), "q"
    run._note = Recorder(lines.append, "run", clock=lambda: machine.now)
    left = [SimpleNamespace(queue="q")]
    run._app = SimpleNamespace(client=SimpleNamespace(queues=lambda: left if machine.now < over else []))
    run._calm_down(SimpleNamespace(look_after=lambda: None))
    return [line.at for line in lines if isinstance(line, Calm)], machine.now


def test_who_is_over_in_time_is_not_waited_for_any_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    calms, ended = calmed(monkeypatch, Machine([]), over=103.0)
    assert calms == [100.0]
    assert ended == pytest.approx(103.0, abs=0.1)


def test_who_is_not_over_in_time_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calms, ended = calmed(monkeypatch, Machine([0.5, 0.9]), over=inf)
    assert calms == [100.0]
    assert ended == pytest.approx(112.0, abs=0.1)


def test_calm_begins_anew_where_the_machine_has_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    calms, ended = calmed(monkeypatch, Machine([0.0, 20.0, 0.0, 2.0]), over=130.0)
    assert calms == pytest.approx([100.0, 120.1, 122.2])
    assert ended == pytest.approx(130.0, abs=0.1)


def test_a_machine_that_never_stands_fast_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    calms, _ = calmed(monkeypatch, Machine([2.0] * 1000), over=inf)
    assert len(calms) == runner._CALMS


# -- plans


def test_faults_are_read_from_names_between_commas() -> None:
    assert read_faults("kill, pause") == ("pause", "kill")
    assert read_faults("steal,pause") == ("pause", "rival")
    assert read_faults(",".join(FAULTS)) == FAULTS


@pytest.mark.parametrize("text", ["", " , "])
def test_no_faults_at_all_are_refused(text: str) -> None:
    with pytest.raises(BadSettings, match="no fault is named"):
        read_faults(text)


@pytest.mark.parametrize("lease", [1.0, 60.0])
def test_a_lease_may_last_as_long_as_the_run(lease: float) -> None:
    assert Plan(lease=lease).seconds == 60.0
    with pytest.raises(BadSettings, match="let a run take several leases"):
        Plan(lease=lease + 0.5, seconds=lease)


def test_a_destination_that_is_not_opened_in_time_is_named() -> None:
    with pytest.raises(BadSettings, match=r"tests\.proof\.places:hanging was not open within 0\.01 s"):
        check_place("tests.proof.places:hanging", 0.01)


def test_what_is_refused_as_late_is_what_the_rule_refuses() -> None:
    refuse_late(Token("j", 2), 1, met=1, highest=5)
    refuse_late(Token("j", 2), 2, met=2, highest=1)
    with pytest.raises(StaleToken) as late:
        refuse_late(Token("j", 1), 9, met=2, highest=1)
    assert late.value.current == 2
    with pytest.raises(OutOfSequence) as overtaken:
        refuse_late(Token("j", 2), 1, met=2, highest=3)
    assert (overtaken.value.sequence, overtaken.value.highest) == (1, 3)


def test_a_destination_in_the_current_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "found_here.py").write_text("from tests.proof.places import Careless as made\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLACES", str(tmp_path))
    assert open_place("found_here:made").read("nothing") is None
