"""How the options of `tenure worker` are read, and how its log looks."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tenure import App
from tenure.cli.logs import JsonFormatter, LineFormatter, configure_logging
from tenure.cli.worker import doubtful_queues, split_names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([], ()),
        (["a"], ("a",)),
        (["a,b", "c", "a"], ("a", "b", "c")),
        ([r"a\,b,c"], ("a,b", "c")),
        (["a b; DROP"], ("a b; DROP",)),
        (["a,"], ("a", "")),
    ],
)
def test_queues_are_split_at_commas(given: list[str], names: tuple[str, ...]) -> None:
    assert split_names(given) == names


def test_a_queue_whose_name_looks_mistyped_is_told() -> None:
    app = App("memory://")
    app.task(queue="billing")(print_nothing)
    worker = app.worker(queues=("biling", "default", "nightly", "billing"))
    [doubt] = doubtful_queues(worker)
    assert doubt == "no task of this app goes to the queue biling by itself: did you mean billing?"


def print_nothing() -> None:
    """Do nothing."""


@pytest.fixture
def loud() -> logging.LogRecord:
    error = ValueError("hunter22")
    info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("tenure", logging.WARNING, __file__, 1, "two\nlines at %s", ("pg://u:pw@host",), info)
    record.created = datetime(2030, 1, 31, 9, 0, tzinfo=UTC).timestamp()
    return record


def test_a_record_is_one_line_without_the_message_of_an_error(loud: logging.LogRecord) -> None:
    line = LineFormatter().format(loud)
    assert line.startswith("2030-01-31T09:00:00.000Z WARNING tenure two lines at pg://host [ValueError at ")
    assert "hunter22" not in line
    assert "\n" not in line
    told = json.loads(JsonFormatter().format(loud))
    assert (told["at"], told["level"], told["logger"]) == ("2030-01-31T09:00:00.000Z", "WARNING", "tenure")
    assert "hunter22" not in told["message"]


@pytest.fixture
def levels() -> Iterator[logging.Logger]:
    root, ours = logging.getLogger(), logging.getLogger("tenure")
    before = (root.level, ours.level)
    yield root
    root.setLevel(before[0])
    ours.setLevel(before[1])


def test_logging_is_set_up_unless_the_app_did(levels: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "handlers", [])  # pytest adds its own when a test begins
    configure_logging("warning", as_json=False)
    (handler,) = levels.handlers
    assert isinstance(handler.formatter, LineFormatter)
    configure_logging("debug", as_json=True)
    assert levels.handlers == [handler]
    assert levels.level == logging.WARNING
    assert logging.getLogger("tenure").level == logging.DEBUG


def test_only_tenure_goes_to_debug(levels: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "handlers", [])
    configure_logging("debug", as_json=False)
    assert (levels.level, logging.getLogger("tenure").level) == (logging.INFO, logging.DEBUG)
