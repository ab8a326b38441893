"""A part that fails ends the whole worker, loudly, whatever kind of error it was."""

from __future__ import annotations

import pytest

from tenure.worker.part import Gone, Part


def crash_of(error: BaseException) -> list[BaseException]:
    def main() -> None:
        raise error

    crashes: list[BaseException] = []
    part = Part("bell", main, crashes.append)
    part.start()
    part.join(30.0)
    return crashes


def test_an_error_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    error = ValueError("words")
    assert crash_of(error) == [error]
    assert "the worker's bell failed and the worker stops" in caplog.text


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), GeneratorExit()])
def test_what_would_end_a_program_in_silence_is_told_as_an_error(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    (crash,) = crash_of(error)
    assert isinstance(crash, RuntimeError)
    assert str(crash) == f"the worker's bell was ended by {type(error).__name__}"
    assert crash.__cause__ is error
    assert "the worker's bell failed and the worker stops" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_log_that_fails_hides_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr("tenure.worker.part.log.critical", broken)
    error = ValueError("words")
    assert crash_of(error) == [error]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_in_a_process_that_is_gone_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert crash_of(Gone()) == []
    assert caplog.text == ""
