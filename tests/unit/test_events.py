"""Events reach everybody, whatever one subscriber does."""

from __future__ import annotations

import pytest

from tenure.protocol.events import Emitter, Event, Kind


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_subscriber_that_fails_or_exits_stops_nobody(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: Event) -> None:
        raise error

    parent, told = Emitter(), list[Event]()
    emitter = Emitter("ada", parent=parent)
    emitter.subscribe(fails)
    emitter.subscribe(told.append)
    parent.subscribe(told.append)
    emitter.emit(Kind.WORKER_STARTED)
    assert [event.kind for event in told] == [Kind.WORKER_STARTED] * 2
    assert "a subscriber failed on worker started" in caplog.text
