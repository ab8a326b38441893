"""What the clients promise: httpx, blocking and asynchronous, and requests, against a real server."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import requests
from requests.adapters import HTTPAdapter
from starlette.responses import RedirectResponse, Response

from tenure import App, BadToken, Effect, Hold, LeaseLost, Misuse, OutOfSequence, StaleToken, Unavailable
from tenure.fences.http import client_httpx, client_requests, fencing_headers
from tenure.fences.http.client import Holder, is_repeat
from tenure.fences.http.problems import LONGEST_PROBLEM, PROBLEM_JSON, RequestInProgress, problem
from tenure.testing.job import FakeJob
from tests.fences.http_clients import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.http_clients import CHARGE, Requests, Server, Zombie, value_of


def test_a_request_carries_token_scope_number_and_key(sender: Any, server: Server) -> None:
    job = FakeJob(generation=7)
    sender.send(server.url + "/echo", sender.mark(job, "charge", scope="account/7"))
    sender.send(server.url + "/echo", sender.mark(job, "mail"))
    first, second = server.echo.seen
    expected = fencing_headers(Effect("job-1", 7, 1), "account/7", job.idempotency_key("charge"))
    assert {name: first[name.lower()] for name in expected} == expected
    assert second["fencing-scope"] == "job-1"
    assert int(second["fencing-sequence"]) > int(first["fencing-sequence"])


def test_r33_the_same_request_sent_again_keeps_number_and_key_and_is_told_as_a_repeat(
    sender: Any, server: Server
) -> None:
    job = FakeJob()
    first = sender.send(value_of(server), sender.mark(job, "charge", scope="account/7"))
    again = sender.again()
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, CHARGE)
    assert (is_repeat(first), is_repeat(again)) == (False, True)
    assert server.values.written() == ["charge"]


def test_r33_a_repeat_takes_no_new_number(sender: Any, server: Server) -> None:
    job = FakeJob()
    sender.send(server.url + "/echo", sender.mark(job, "one"))
    sender.again()
    first, again = server.echo.seen
    assert again["fencing-sequence"] == first["fencing-sequence"]
    sender.send(server.url + "/echo", sender.mark(job, "one"))  # another request, although it does the same
    assert int(server.echo.seen[2]["fencing-sequence"]) > int(first["fencing-sequence"])


def test_r40_the_next_run_repeats_the_effect_and_gets_the_first_answer(sender: Any, server: Server) -> None:
    job = FakeJob()
    first = sender.send(value_of(server), sender.mark(job, "charge", scope="account/7"))
    later = job.next_run()
    again = sender.send(value_of(server), sender.mark(later, "charge", scope="account/7"))
    assert is_repeat(again)
    assert again.json() == first.json()
    with pytest.raises(StaleToken) as refused:
        sender.send(value_of(server), sender.mark(Zombie(job, 99), "mail", scope="account/7"))
    assert (refused.value.generation, refused.value.current) == (job.generation, later.generation)
    assert server.values.written() == ["charge"]


def test_r19_nothing_is_sent_when_the_lease_is_shorter_than_the_request_may_take(sender: Any, server: Server) -> None:
    job = FakeJob(lease=10)
    job.advance(4)
    assert sender.send(server.url + "/echo", sender.mark(job, "one"), timeout=5.0).status_code == 200
    job.advance(1)
    with pytest.raises(LeaseLost, match="may take 5 s"):
        sender.send(server.url + "/echo", sender.mark(job, "two"), timeout=5.0)
    with pytest.raises(LeaseLost):
        sender.again()
    job.lose()
    with pytest.raises(LeaseLost):
        sender.send(server.url + "/echo", sender.mark(job, "three"), timeout=0.1)
    assert len(server.echo.seen) == 1


def test_r19_a_repeat_passes_the_gate_anew(sender: Any, server: Server) -> None:
    job = FakeJob()
    sender.send(server.url + "/echo", sender.mark(job, "one"))
    job.lose()
    with pytest.raises(LeaseLost):
        sender.again()
    assert len(server.echo.seen) == 1


@pytest.mark.parametrize("phase", ["connect", "read"])
def test_a_request_without_a_timeout_is_refused(sender: Any, server: Server, phase: str) -> None:
    phases = {"connect": 5.0, "read": 5.0} | {phase: None}
    timeout = (
        (phases["connect"], phases["read"])
        if isinstance(sender, Requests)
        else httpx.Timeout(5.0, connect=phases["connect"], read=phases["read"])
    )
    for none in (None, timeout):
        with pytest.raises(Misuse, match="timeout"):
            sender.send(server.url + "/echo", sender.mark(FakeJob(), "one"), timeout=none)
    assert server.echo.seen == []


def test_the_longest_phase_of_a_timeout_counts(sender: Any, server: Server) -> None:
    job = FakeJob(lease=10)
    timeout = (1.0, 60.0) if isinstance(sender, Requests) else httpx.Timeout(1.0, read=60.0)
    with pytest.raises(LeaseLost, match="may take 60 s"):
        sender.send(server.url + "/echo", sender.mark(job, "one"), timeout=timeout)


def test_r37_a_write_without_a_token_is_not_sent(sender: Any, server: Server) -> None:
    with pytest.raises(Misuse, match="no fencing token"):
        sender.send(server.url + "/echo")
    assert server.echo.seen == []
    assert sender.send(server.url + "/echo", method="GET").status_code == 200


def test_a_token_in_the_headers_passes_and_its_refusal_is_told(sender: Any, server: Server) -> None:
    headers = fencing_headers(Effect("job-1", 8, 1), "account/7", "one")
    assert sender.send(value_of(server), headers=headers).status_code == 201
    headers = fencing_headers(Effect("job-1", 7, 1), "account/7", "two")
    with pytest.raises(StaleToken) as refused:
        sender.send(value_of(server), headers=headers)
    assert (refused.value.job, refused.value.generation, refused.value.current) == ("job-1", 7, 8)


def test_refusals_come_back_as_the_errors_of_the_rule(sender: Any, server: Server) -> None:
    job, url = FakeJob(generation=7), value_of(server)
    first = sender.mark(job, "charge", scope="account/7")
    sender.send(url, first)
    with pytest.raises(Misuse, match="another request"):
        sender.send(url, first, json={"value": "other"})
    with pytest.raises(OutOfSequence) as refused:
        sender.send(url, headers=fencing_headers(Effect(job.id, 7, 1), "account/7", "new"))
    assert (refused.value.sequence, refused.value.highest) == (1, 1)
    with pytest.raises(BadToken, match="account/8"):
        sender.send(url, sender.mark(job, "two", scope="account/8"))
    with pytest.raises(BadToken, match="Idempotency-Key"):
        sender.send(url, headers=fencing_headers(Effect(job.id, 7, 3), "account/7"))
    server.answer(_response(RequestInProgress("try again")))
    with pytest.raises(Unavailable, match="try again"):
        sender.send(server.url + "/echo", sender.mark(job, "three"))
    assert server.values.written() == ["charge"]


def _response(error: Any) -> Response:
    answer = problem(error)
    return Response(answer.body, answer.status, dict(answer.headers))


NOT_OURS = {
    "another problem": Response(b'{"type": "out-of-stock", "status": 412}', 412, media_type=PROBLEM_JSON),
    "no problem": Response(b'{"type": "stale-fencing-token", "status": 412}', 412, media_type="application/json"),
    "another status": Response(b'{"type": "stale-fencing-token"}', 409, media_type=PROBLEM_JSON),
    "no JSON": Response(b"{", 412, media_type=PROBLEM_JSON),
    "no object": Response(b"[[]]", 412, media_type=PROBLEM_JSON),
    "deep": Response(b"[" * 60_000, 412, media_type=PROBLEM_JSON),
    "a failure": Response(b"oh", 503),
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_other_answers_are_left_to_the_caller(sender: Any, server: Server, case: str) -> None:
    expected = NOT_OURS[case]
    server.answer(expected)
    answer = sender.send(server.url + "/echo", sender.mark(FakeJob(), "one"))
    assert (answer.status_code, answer.content) == (expected.status_code, expected.body)


def test_a_problem_that_says_nonsense_is_still_a_refusal(sender: Any, server: Server) -> None:
    told = json.dumps({"type": "https://pay.example/problems/stale-fencing-token", "current": "all"}).encode()
    server.answer(Response(told, 412, media_type=PROBLEM_JSON))
    with pytest.raises(StaleToken) as refused:
        sender.send(server.url + "/echo", sender.mark(FakeJob(), "one"))
    assert refused.value.current is None


def test_a_problem_without_end_is_not_read(sender: Any, server: Server) -> None:
    server.answer(Response(b" " * (LONGEST_PROBLEM + 1), 412, media_type=PROBLEM_JSON))
    with pytest.raises(Misuse, match="bytes of explanation"):
        sender.send(server.url + "/echo", sender.mark(FakeJob(), "one"))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("follow", [False, True])
def test_a_write_is_not_sent_on_to_another_address(sender: Any, server: Server, status: int, follow: bool) -> None:
    server.answer(RedirectResponse(server.url + "/elsewhere?secret=1", status))
    with pytest.raises(Misuse, match="elsewhere") as refused:
        sender.send(server.url + "/echo", sender.mark(FakeJob(), "one"), follow=follow)
    assert "secret" not in str(refused.value)
    assert [seen["path"] for seen in server.echo.seen] == ["/echo"]


def test_what_a_write_has_made_is_read_without_its_token(sender: Any, server: Server) -> None:
    server.answer(RedirectResponse(server.url + "/elsewhere", 303))
    answer = sender.send(server.url + "/echo", sender.mark(FakeJob(), "one"), follow=True)
    assert answer.json() == {"value": "echo"}
    assert [(seen["method"], seen["path"]) for seen in server.echo.seen] == [("PUT", "/echo"), ("GET", "/elsewhere")]
    assert not {"fencing-token", "idempotency-key", "fencing-job"} & server.echo.seen[1].keys()


def test_an_answer_can_be_streamed(server: Server) -> None:
    job = FakeJob()
    with httpx.Client(transport=client_httpx.FencedTransport(httpx.HTTPTransport(verify=False))) as client:
        marked = client_httpx.fenced(job, "one")
        with client.stream("PUT", server.url + "/echo", extensions=marked, json=CHARGE) as response:
            assert b"".join(response.iter_bytes()) == b'{"value":"echo"}'


def test_requests_authenticates_inside_and_never_repeats_by_itself(server: Server) -> None:
    with requests.Session() as session:
        session.mount("http://127.0.0.1", client_requests.FencedAdapter())
        for auth in (("user", "secret"), requests.auth.HTTPBasicAuth("user", "secret")):
            mark = client_requests.fenced(FakeJob(), "one", auth=auth)
            session.put(server.url + "/echo", json=CHARGE, auth=mark, timeout=5)
            assert server.echo.seen[-1]["authorization"].startswith("Basic ")
        adapter = session.get_adapter(server.url)
        assert isinstance(adapter, HTTPAdapter)
        assert adapter.max_retries.total == 0


def test_a_lease_without_a_job_names_its_effects_itself(sender: Any, server: Server) -> None:
    app = App("memory://")
    with app.lease("nightly-report", duration=30) as lease:
        sender.send(server.url + "/echo", sender.mark(lease, key="report of 30 November"))
        assert server.echo.seen[0]["idempotency-key"] == '"report of 30 November"'
        assert server.echo.seen[0]["fencing-job"] == "nightly-report"
        with pytest.raises(Misuse, match="knows no steps"):
            sender.mark(lease, "report")
        for arguments in ({}, {"step": "one", "key": "two"}):
            with pytest.raises(Misuse, match="name what"):
                sender.mark(lease, **arguments)
    hold: Hold = app.claim("another", owner="me", duration=30)
    holder: Holder = hold
    sender.send(server.url + "/echo", sender.mark(holder, key="another"))
