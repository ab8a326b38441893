"""Invoices are paid under attack, and the tutorial shows what its lessons print; only counts depend on chance."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from examples.payments.campaign import PORTION, SEEN, Campaign, Report, cents_of, note_books
from examples.payments.network import ONCE, TWICE, Courier, Fate
from examples.payments.run import told
from examples.payments.tasks import app

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "payments"
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
RUN = [sys.executable, str(EXAMPLE / "run.py")]
PATIENCE = 110.0

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ python examples/payments/(\S+)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LESSONS = [(words.split(), shown) for script, words, shown in CONSOLE.findall(TUTORIAL) if script == "lesson.py"]
REPORTS = [shown for script, _, shown in CONSOLE.findall(TUTORIAL) if script == "run.py"]


def play(*options: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run([*RUN, *options, "--json"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_every_payment_is_applied_exactly_once_whatever_happens() -> None:
    status, report = play("--limit", "40")
    assert report["problems"] == []
    assert (status, report["ok"]) == (0, True)
    assert (report["paid_once"], report["paid_more_than_once"], report["paid_never"]) == (40, 0, 0)
    assert report["cents_charged"] == report["cents_due"] == sum(map(cents_of, range(1, 41)))
    assert min(report["refused"], report["repeated"], report["takeovers"], report["replies_dropped"]) >= SEEN
    assert min(report["stops"], report["kills"], report["duplicated"], report["delayed"], report["cut"]) >= 1


def test_without_key_and_token_cards_are_charged_twice() -> None:
    status, report = play("--limit", "25", "--no-fence")
    assert (status, report["ok"], report["problems"]) == (0, True, [])
    assert report["paid_more_than_once"] >= SEEN
    assert report["cents_charged"] > report["cents_due"]
    assert (report["refused"], report["repeated"]) == (0, 0)


def test_an_interrupt_ends_every_process() -> None:
    # Whoever runs these tests in the background may have had SIGINT ignored; a shell's foreground does not.
    with subprocess.Popen(
        RUN,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 -- no other thread runs here
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if " process " in line:
                break
        children = [int(child) for child in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
        assert len(children) == 4  # the provider and three workers
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=30)
    assert run.returncode == 130
    assert said.endswith("interrupted; every process has been ended\n")  # behind what a finalizer may have lost
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []


def test_no_more_is_handed_out_while_the_last_portion_waits(tmp_path: Path) -> None:
    """Workers that take long to start, on a busy machine, would else find all of it at once."""
    app.use_store(f"sqlite:///{tmp_path}/store.db")
    app.store.migrate()
    nobody: Any = None
    campaign = Campaign(tmp_path / "store.db", nobody, Report(fence=True, invoices=20 * PORTION))
    for portions in (1, 2):
        campaign._hand_out()
        campaign._hand_out()
        assert len(campaign._records()) == portions * PORTION
        app.client.cancel([record.id for record in campaign._records()])
    app.close()


# -- what a report says


def books(*paid: tuple[int, int], **answers: int) -> dict[str, Any]:
    rows = [(invoice, "card", cents) for invoice, cents in paid]
    return {"payments": rows, "charged": sum(cents for _, cents in paid), "answers": answers}


def enough(*, fence: bool = True) -> Report:
    report = Report(fence, invoices=2)
    for count in ("takeovers", "stops", "kills", "duplicated", "delayed", "replies_dropped", "cut"):
        setattr(report, count, SEEN)
    return report


def test_two_payments_that_are_as_they_should_be_are_no_problem() -> None:
    report = enough()
    note_books(report, books((1, cents_of(1)), (2, cents_of(2)), refused=SEEN, repeated=SEEN))
    report.judge()
    assert report.problems == []


@pytest.mark.parametrize(
    ("paid", "problems"),
    [
        (
            [(1, 107), (2, 114), (2, 114)],
            ["1 invoices were paid more than once", "335 cents were charged instead of 221"],
        ),
        ([(1, 107)], ["1 invoices were not paid", "107 cents were charged instead of 221"]),
        ([(1, 114), (2, 107)], ["2 payments were of another sum than their invoices"]),
    ],
)
def test_what_does_not_hold_is_a_problem(paid: list[tuple[int, int]], problems: list[str]) -> None:
    report = enough()
    note_books(report, books(*paid, refused=SEEN, repeated=SEEN))
    report.judge()
    assert report.problems == problems


@pytest.mark.parametrize(
    "count", ["refused", "repeated", "takeovers", "stops", "kills", "duplicated", "delayed", "replies_dropped", "cut"]
)
def test_a_run_that_has_not_seen_each_trouble_has_shown_nothing(count: str) -> None:
    report = enough()
    note_books(report, books((1, cents_of(1)), (2, cents_of(2)), refused=SEEN, repeated=SEEN))
    setattr(report, count, 0)
    report.judge()
    (problem,) = report.problems
    assert "has not shown enough" in problem


def test_a_run_without_a_fence_that_did_no_damage_has_shown_nothing() -> None:
    report = enough(fence=False)
    note_books(report, books((1, cents_of(1)), (2, cents_of(2))))
    report.judge()
    assert report.problems == ["this run has not shown enough (invoices that were paid more than once: 0)"]


# -- the network


class Counting(BaseHTTPRequestHandler):
    """A provider that only counts."""

    bodies: ClassVar[list[bytes]]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served() -> Any:
    class Handler(Counting):
        bodies: ClassVar[list[bytes]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.server_address[1], Handler.bodies
        server.shutdown()


@pytest.mark.parametrize(("fate", "times"), [(ONCE, 1), (TWICE, 2), ((0.0, 0.05, 0.05), 3), ((0.05,), 1)])
def test_a_request_is_delivered_as_fate_has_it_and_answered_once(served: Any, fate: Fate, times: int) -> None:
    port, bodies = served
    with Courier(port, lambda _: fate) as courier:
        with socket.create_connection(("127.0.0.1", courier.port), 10) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\n")
            connection.sendall(b"pay")
            with connection.makefile("rb") as stream:
                answer = stream.read()
        courier.drain()
    assert answer.count(b"201 Created") == 1
    assert bodies == [b"pay"] * times


def test_half_a_request_is_not_delivered(served: Any) -> None:
    port, bodies = served
    with Courier(port, lambda _: ONCE) as courier:
        with socket.create_connection(("127.0.0.1", courier.port), 10) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\npa")
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        courier.drain()
    assert bodies == []


# -- the tutorial


def test_the_tutorial_quotes_the_example() -> None:
    sources = [path.read_text(encoding="utf-8") for path in EXAMPLE.glob("*.py")]
    quoted = PYTHON.findall(TUTORIAL)
    assert len(quoted) >= 5
    assert [block for block in quoted if not any(f"\n{block}" in source for source in sources)] == []


@pytest.mark.parametrize(("words", "shown"), LESSONS, ids=["-".join(words) for words, _ in LESSONS])
def test_a_lesson_goes_as_the_tutorial_shows(words: list[str], shown: str) -> None:
    command = [sys.executable, str(EXAMPLE / "lesson.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (shown, "", 0)


def test_every_trouble_is_shown_with_and_without_what_stops_it() -> None:
    shown = {tuple(words): lines.splitlines()[-1] for words, lines in LESSONS}
    assert {words for words, last in shown.items() if last == "invoice 7 is paid 2 TIMES"} == {
        ("kill", "plain"),
        ("stop", "keyed"),
        ("duplicate", "plain"),
    }
    assert {words for words, last in shown.items() if last == "invoice 7 is paid once"} == {
        ("kill", "keyed"),
        ("stop", "fenced"),
        ("duplicate", "fenced"),
        ("all", "fenced"),
    }


def test_reports_look_as_the_tutorial_shows_them() -> None:
    def without_numbers(text: str) -> list[str]:
        return [re.sub(r"\d+(\.\d+)?", "N", line) for line in text.strip().splitlines()]

    fenced = Report(fence=True, invoices=500, paid_once=500)
    plain = Report(fence=False, invoices=500, paid_more_than_once=9)
    assert [without_numbers(shown) for shown in REPORTS] == [
        without_numbers(told(report)) for report in (fenced, plain)
    ]
