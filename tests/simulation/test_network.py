"""What can happen to a message, and what who asked is told of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.errors import NotFound, OutcomeUnknown, TenureError, Unavailable
from tenure.testing.simulation.network import CALM, Answer, Members, Network, Weather
from tenure.testing.simulation.threads import Scheduler, Stage


class Asker(Members):
    """A process that asks once and keeps what it was told, and when."""

    def __init__(self, weather: Weather, chance: Callable[[], float] = lambda: 0.5) -> None:
        super().__init__("asker")
        stage = Stage()
        self.scheduler = stage.scheduler = Scheduler(stage.bodies, lambda: 0.0)
        self.network = Network(self.scheduler, chance, weather)
        self.done: list[float] = []
        self.again = 0
        self.told: object = None
        self.told_at = 0.0

    def failed(self, error: Exception) -> None:
        raise error

    def act(self) -> Answer:
        self.done.append(self.scheduler.now)
        return True, "done"

    def ask(self, act: Callable[[], Answer] | None = None) -> Asker:
        self.scheduler.spawn(self, "asker", lambda: self._ask(act or self.act))
        self.scheduler.run(100.0)
        return self

    def _ask(self, act: Callable[[], Answer]) -> None:
        try:
            self.told = self.network.ask("ask", self.to_store, act, 1.0, again=self._again)
        except TenureError as error:
            self.told = error
        self.told_at = self.scheduler.now

    def _again(self) -> None:
        self.again += 1


def test_an_answer_comes_back() -> None:
    asker = Asker(CALM).ask()
    assert asker.told == "done"
    assert 0.0 < asker.done[0] < asker.told_at < 0.01
    assert asker.network.under_way == 0


def test_a_refusal_comes_back() -> None:
    asker = Asker(CALM).ask(lambda: (False, NotFound("j1")))
    assert isinstance(asker.told, NotFound)


def test_a_lost_request_does_nothing_and_its_outcome_is_unknown() -> None:
    asker = Asker(Weather(lost=1.0)).ask()
    assert isinstance(asker.told, OutcomeUnknown)
    assert asker.done == []
    assert asker.told_at == pytest.approx(1.0, abs=0.01)


def test_a_lost_answer_leaves_the_outcome_unknown() -> None:
    asker = Asker(Weather(mute=1.0)).ask()
    assert isinstance(asker.told, OutcomeUnknown)
    assert len(asker.done) == 1


def test_a_request_that_comes_twice_is_done_twice() -> None:
    asker = Asker(Weather(twice=1.0)).ask()
    assert asker.told == "done"
    assert (len(asker.done), asker.again) == (2, 1)
    assert asker.done[1] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("chance", "late"), [(0.4, True), (0.9, False)])
def test_what_is_too_slow_is_done_and_unknown(chance: float, late: bool) -> None:
    asker = Asker(Weather(slow=1.0, longest=4.0), chance=lambda: chance).ask()
    assert isinstance(asker.told, OutcomeUnknown)
    assert len(asker.done) == 1
    assert (asker.done[0] > 1.0) is late


def test_a_cut_link_is_refused_or_silent() -> None:
    refused = Asker(CALM, chance=lambda: 0.4)
    refused.to_store.out = 1
    assert isinstance(refused.ask().told, Unavailable)
    silent = Asker(CALM, chance=lambda: 0.6)
    silent.to_store.out = 1
    assert isinstance(silent.ask().told, OutcomeUnknown)
    assert refused.done == silent.done == []


def test_a_link_that_is_cut_meanwhile_loses_what_is_under_way() -> None:
    asker = Asker(CALM)
    asker.scheduler.at(0.0005, lambda: setattr(asker.to_store, "out", 1))
    assert isinstance(asker.ask().told, OutcomeUnknown)
    assert asker.done == []


def test_a_link_can_lose_answers_only() -> None:
    asker = Asker(CALM)
    asker.to_store.back = 1
    assert isinstance(asker.ask().told, OutcomeUnknown)
    assert len(asker.done) == 1


def test_a_dead_process_leaves_its_messages_under_way() -> None:
    asker = Asker(CALM)
    asker.scheduler.at(0.0005, lambda: setattr(asker, "dead", True))
    asker.ask()
    assert (len(asker.done), asker.told) == (1, None)
