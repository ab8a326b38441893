"""B30: what is secret is in no output of any command."""

from __future__ import annotations

import json
import traceback

import pytest

from tenure import App
from tenure.cli import safe, views
from tenure.client import Client
from tenure.errors import Unavailable
from tenure.protocol.job import Ending, Failure
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tests.cli.conftest import Run

DECLARED = "declared-secret"
PAYLOADS = ["plain-argument", "nested-argument", "message-text", "progress-text", "result-text"]
HIDDEN_BY_DEFAULT = [DECLARED, *PAYLOADS]


def decline() -> Failure:
    error = RuntimeError(f"message-text {DECLARED}")
    return Failure("RuntimeError", "x.py:1", str(error), "".join(traceback.format_exception(error)))


def spoil(app: App, job: str, *, completes: bool) -> None:
    """Let a run fail with a message, a traceback and progress that tell everything."""
    hold = app.claim(job, owner="A")
    owner = hold.lease.owner
    app.client.progress(owner, hold.token, '"progress-text"')
    failed = Ending(hold.token, Verb.FAIL, failure=decline())
    ending = Ending(hold.token, Verb.COMPLETE, result='"result-text"') if completes else failed
    app.client.settle(owner, [ending])


@pytest.fixture
def jobs(app: App, tenure: Run) -> list[str]:
    given = {"password": [DECLARED], "note": "plain-argument", "more": [{"x": "nested-argument"}]}
    for job in ("fails", "completes"):
        tenure("enqueue", "charge", "-", "--secret", "password", "--id", job, typed=json.dumps(given))
        spoil(app, job, completes=job == "completes")
    return ["fails", "completes"]


@pytest.mark.parametrize("json_too", [[], ["--json"]])
@pytest.mark.parametrize("trace_too", [[], ["--traceback"]])
def test_no_command_shows_a_value_unasked(
    jobs: list[str], tenure: Run, json_too: list[str], trace_too: list[str]
) -> None:
    calls = [
        ["jobs", "list"],
        *(["jobs", "show", job] for job in jobs),
        ["queues"],
        ["workers"],
        ["jobs", "show", "nobody"],
        ["jobs", "retry", *jobs],
        ["jobs", "cancel", "--all", "--yes"],
        ["enqueue", "charge", "note=plain-argument", "plain-argument"],
        ["enqueue", "charge", "{plain-argument"],
        ["prune", "--older-than", "0"],
    ]
    for words in calls:
        told = tenure(*words, *json_too, *trace_too)
        assert not [value for value in HIDDEN_BY_DEFAULT if value in told.output], words


def test_reveal_shows_all_but_what_is_declared_secret(jobs: list[str], tenure: Run) -> None:
    for json_too in ([], ["--json"]):
        told = "".join(tenure("jobs", "show", job, "--reveal", *json_too).output for job in jobs)
        assert [value for value in PAYLOADS if value not in told] == []
        assert DECLARED not in told
        assert "•••" in told
    revealed = json.loads(tenure("jobs", "show", "fails", "--reveal", "--json").stdout)
    assert revealed["failure"]["message"] == "message-text •••"
    assert revealed["history"][0]["failure"]["traceback"] == "RuntimeError: message-text •••\n"


def test_what_cannot_be_read_is_not_shown(app: App, tenure: Run) -> None:
    record = app.client.get(json.loads(tenure("enqueue", "charge", "--json").stdout)["id"])
    broken = type(record)(**{name: getattr(record, name) for name in record.__slots__} | {"arguments": "{nonsense"})
    assert views.payload(broken, reveal=True)["arguments"] == views.UNREADABLE
    declared = type(record)(**{name: getattr(broken, name) for name in broken.__slots__} | {"secret": ("a",)})
    assert views.payload(declared, reveal=True)["arguments"] == views.HIDDEN
    failure = Failure("ValueError", "x.py:1", "message")
    assert views.failure(declared, failure, None, reveal=True) == failure


@pytest.mark.parametrize("words", [["queues"], ["jobs", "list"], ["migrate"], ["recover"], ["enqueue", "t", "x=1"]])
@pytest.mark.parametrize("extra", [[], ["--json"], ["--traceback"], ["--nonsense"]])
def test_the_password_of_a_store_is_never_told(tenure: Run, words: list[str], extra: list[str]) -> None:
    address = "postgresql://someuser:p%40ssword@127.0.0.1:1/x?password=hidden"
    told = tenure(*words, "--store", address, *extra)
    assert told.exit_code == (2 if extra == ["--nonsense"] else 4)
    assert told.stdout == ""
    secrets = ("someuser", "p%40ssword", "p@ssword", "hidden")
    assert not [secret for secret in secrets if secret in told.stderr]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("at postgresql://u:p%40ss@host:1/x now", "at postgresql://host:1/x now"),
        ("at postgresql://u:p@ss/w@host/x", "at postgresql://host/x"),
        ("postgres:/u:pw@host", "postgres:/host"),
        ("host/x?sslmode=require&password=hidden&a=b", "host/x?sslmode=require&password=•••&a=b"),
        ("sqlite:////tmp/a.db", "sqlite:////tmp/a.db"),
    ],
)
def test_addresses_are_shown_without_user_data(text: str, told: str) -> None:
    assert safe.without_user_data(text) == told


def test_the_message_of_a_library_below_a_stores_error_is_left_out(
    tenure: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoting = ValueError('invalid token: "p%4ss"')

    def queues(_: Client) -> None:
        raise Unavailable("the store is away") from quoting

    monkeypatch.setattr(Client, "queues", queues)
    told = tenure("queues", "--traceback").stderr
    assert "ValueError\n" in told
    assert "Unavailable: the store is away" in told
    assert "p%4ss" not in told


def test_what_a_terminal_would_obey_is_escaped(app: App, tenure: Run) -> None:
    job = app.tasks["charge"].enqueue(order=1).id
    hold = app.claim(job, owner="A")
    failure = Failure("Odd", "x.py:1", "\x1b[2Jcleared\x9b", "line\n\x1b]0;title\x07")
    app.client.settle(hold.lease.owner, [Ending(Token(job, 1), Verb.FAIL, reason="\x1b[31m", failure=failure)])
    told = tenure("jobs", "show", job, "--reveal").stdout
    assert not {"\x1b", "\x9b", "\x07"} & set(told)
    assert "\\x1b[2Jcleared\\x9b" in told


def test_a_hidden_message_is_named_with_the_way_to_see_it(jobs: list[str], tenure: Run) -> None:
    assert "(--reveal shows it)" in next(
        line for line in tenure("jobs", "show", jobs[0]).stdout.splitlines() if " message " in line
    )


def test_a_message_that_is_the_reason_too_is_clear_in_both() -> None:
    failure = Failure("BadResult", "", "shop: Expected None, got str", "trace")
    shown = views.hide(failure, failure.message)
    assert shown is not None
    assert (shown.message, shown.traceback) == (failure.message, views.HIDDEN)
    other = views.hide(failure, "another reason")
    assert other is not None
    assert other.message == views.HIDDEN
