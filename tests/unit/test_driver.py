"""The drivers of sessions: what is repeated, for how long, and what the caller hears (R30)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from tenure.errors import OutcomeUnknown, StaleToken, Unavailable
from tenure.protocol.op import Op, Request, ask
from tenure.store.driver import Again, AsyncDriver, SyncDriver


class Question(Request[str]):
    """Something to ask."""


def verb() -> Op[str]:
    return (yield from ask(Question()))


class Scene:
    """Sessions whose requests are answered, or fail, by a script; a clock that moves by what is slept."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.now = 0.0
        self.ended: list[str] = []

    def answer(self, _: Request[Any]) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.now += 0.1
        if isinstance(answer, Exception):
            raise answer
        return answer

    @contextmanager
    def session(self) -> Iterator[Callable[[Request[Any]], Any]]:
        try:
            yield self.answer
        except BaseException:
            self.ended.append("rolled back")
            raise
        self.ended.append("committed")

    @asynccontextmanager
    async def asession(self) -> AsyncIterator[Callable[[Request[Any]], Any]]:
        async def answer(request: Request[Any]) -> Any:
            return self.answer(request)

        with self.session():
            yield answer

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def sync(self, **settings: Any) -> str:
        driver = SyncDriver(self.session, timeout=1.0, clock=lambda: self.now, sleep=self.sleep, **settings)
        return driver.do(verb)

    def asynchronous(self, **settings: Any) -> str:
        driver = AsyncDriver(self.asession, timeout=1.0, clock=lambda: self.now, **settings)
        return asyncio.run(driver.do(verb))


both = pytest.mark.parametrize("drive", [Scene.sync, Scene.asynchronous])
Drive = Callable[..., str]


@both
def test_a_conflict_is_repeated_until_it_is_resolved(drive: Drive) -> None:
    scene = Scene(Again("busy"), Again("busy"), "done")
    assert drive(scene) == "done"
    assert scene.ended == ["rolled back", "rolled back", "committed"]


@both
def test_a_conflict_that_lasts_is_told_in_the_end(drive: Drive) -> None:
    scene = Scene(Again("busy"))
    with pytest.raises(Unavailable, match="busy"):
        drive(scene)
    assert 2 < scene.asked < 12


@both
def test_what_was_not_done_is_told_at_once(drive: Drive) -> None:
    scene = Scene(Unavailable("away"))
    with pytest.raises(Unavailable, match="away"):
        drive(scene)
    assert scene.asked == 1


@both
def test_a_refusal_is_never_repeated(drive: Drive) -> None:
    scene = Scene(StaleToken("j", 7))
    with pytest.raises(StaleToken):
        drive(scene, repeat_unknown=True)
    assert scene.asked == 1


@both
def test_r28_a_lost_answer_is_not_repeated_unless_that_is_harmless(drive: Drive) -> None:
    scene = Scene(OutcomeUnknown("cut"), "done")
    with pytest.raises(OutcomeUnknown):
        drive(scene)
    assert scene.asked == 1


@both
def test_a_lost_answer_is_repeated_where_that_is_harmless(drive: Drive) -> None:
    scene = Scene(OutcomeUnknown("cut"), Unavailable("restarting"), "done")
    assert drive(scene, repeat_unknown=True) == "done"


@both
def test_r30_an_answer_once_lost_stays_unknown(drive: Drive) -> None:
    scene = Scene(OutcomeUnknown("cut"), Unavailable("away"))
    with pytest.raises(OutcomeUnknown, match="cut"):
        drive(scene, repeat_unknown=True)
