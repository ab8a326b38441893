"""A bad network between client and service: answers get lost, requests come late, twice, or in the wrong order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests

from tenure import OutcomeUnknown, OutOfSequence, StaleToken
from tenure.fences.http import HTTPFence, client_httpx, client_requests, fencing_headers
from tenure.fences.http.client import is_repeat
from tenure.testing.job import FakeJob
from tenure.testing.proxy import Proxy
from tests.fences.http import TIMEOUT, SQLiteValues, Uvicorn, fenced_client
from tests.fences.http_clients import Zombie
from tests.support.processes import wait_for

SCOPE = "account/7"
PATH = f"/values?scope={SCOPE}"


@dataclass
class Place:
    """A service, the bad network in front of one worker, and the good one in front of another."""

    values: SQLiteValues
    proxy: Proxy
    direct: str

    @property
    def through_proxy(self) -> str:
        return self.proxy.url_for(self.direct)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[SQLiteValues, Uvicorn]]:
    values = SQLiteValues(Path())
    with Uvicorn(values.app()) as server:
        yield values, server


@pytest.fixture
def place(served: tuple[SQLiteValues, Uvicorn], tmp_path: Path) -> Iterator[Place]:
    values, server = served
    values.file = tmp_path / "values.db"
    values.create()
    with Proxy("127.0.0.1", server.port) as proxy:
        yield Place(values, proxy, server.url)


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def write(url: str, holder: Any, step: str, value: str, **options: Any) -> httpx.Response:
    with fenced_client(url) as client:
        marked = client_httpx.fenced(holder, step, scope=SCOPE)
        return client.put(PATH, extensions=marked, json={"value": value}, **options)


def raise_to(url: str, job: FakeJob) -> None:
    with httpx.Client(verify=False) as client:
        HTTPFence(client, url + "/fences").raise_to(job.token, scope=SCOPE)


def test_a_lost_answer_is_asked_for_again(place: Place) -> None:
    job = FakeJob(lease=300)
    with fenced_client(place.through_proxy) as client:
        marked = client_httpx.fenced(job, "charge", scope=SCOPE)
        request = client.build_request("PUT", PATH, extensions=marked, json={"value": "a"})
        place.proxy.drop_reply()
        with pytest.raises(httpx.TransportError):
            client.send(request)
        wait_for(place.values.written, 10, "the effect")
        answer = client.send(request)
    assert is_repeat(answer)
    assert answer.json() == {"value": "a"}
    assert place.values.written() == ["a"]


def test_a_lost_answer_is_asked_for_again_with_requests(place: Place) -> None:
    with requests.Session() as session:
        session.mount("http://127.0.0.1", client_requests.FencedAdapter())
        mark = client_requests.fenced(FakeJob(lease=300), "charge", scope=SCOPE)
        place.proxy.drop_reply()
        put: Callable[[], requests.Response] = lambda: session.put(  # noqa: E731 -- the same call twice
            place.through_proxy + PATH, auth=mark, json={"value": "a"}, timeout=10
        )
        with pytest.raises(requests.ConnectionError):
            put()
        wait_for(place.values.written, 10, "the effect")
        assert is_repeat(put())
    assert place.values.written() == ["a"]


@pytest.mark.parametrize("written", [False, True])
def test_r32_a_delayed_write_comes_after_the_raise_and_is_refused(
    place: Place, background: ThreadPoolExecutor, written: bool
) -> None:
    """Held until the new owner has read, and again until it has written: it lands in neither case."""
    job = FakeJob(lease=300)
    write(place.direct, job, "first", "old")
    place.proxy.hold("server")
    late = background.submit(write, place.through_proxy, Zombie(job, 2), "second", "late")
    wait_for(lambda: place.proxy.counts.accepted, 10, "the late write to be on its way")
    later = job.next_run()
    raise_to(place.direct, later)
    read = place.values.read(SCOPE)
    if written:
        write(place.direct, later, "third", "new")
    place.proxy.release("server")
    with pytest.raises(StaleToken) as refused:
        late.result(20)
    assert (refused.value.generation, refused.value.current) == (job.generation, later.generation)
    assert (read, place.values.read(SCOPE)) == ("old", "new" if written else "old")


def test_r32_without_the_raise_the_delayed_write_lands_on_what_was_read(
    place: Place, background: ThreadPoolExecutor
) -> None:
    job = FakeJob(lease=300)
    write(place.direct, job, "first", "old")
    place.proxy.hold("server")
    late = background.submit(write, place.through_proxy, Zombie(job, 2), "second", "late")
    wait_for(lambda: place.proxy.counts.accepted, 10, "the late write to be on its way")
    job.next_run()
    assert place.values.read(SCOPE) == "old"
    place.proxy.release("server")
    assert late.result(20).status_code == 201
    assert place.values.read(SCOPE) == "late"


def test_r31_around_the_fence_the_delayed_write_does_its_damage(place: Place, background: ThreadPoolExecutor) -> None:
    job = FakeJob(lease=300)
    place.proxy.hold("server")

    def unfenced() -> httpx.Response:
        with httpx.Client(verify=False, base_url=place.through_proxy, timeout=TIMEOUT) as client:
            return client.put(PATH.replace("values", "unfenced"), json={"value": "late"})

    late: Future[httpx.Response] = background.submit(unfenced)
    wait_for(lambda: place.proxy.counts.accepted, 10, "the late write to be on its way")
    later = job.next_run()
    raise_to(place.direct, later)
    write(place.direct, later, "third", "new")
    place.proxy.release("server")
    assert late.result(20).status_code == 204
    assert place.values.read(SCOPE) == "late"


def test_r33_a_duplicated_request_is_carried_out_once(place: Place) -> None:
    """The same bytes on five connections, let go at once, as a network that repeats would do."""
    job = FakeJob(lease=300)
    with job.effect() as token:
        fields = fencing_headers(token, SCOPE, job.idempotency_key("charge"))
    body = b'{"value": "a"}'
    lines = [f"PUT {PATH} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}"]
    message = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in fields.items()), "", ""]).encode() + body
    place.proxy.hold("server")
    answers: list[bytes] = []

    def send() -> None:
        with socket.create_connection(("127.0.0.1", place.proxy.port), 20) as connection:
            connection.sendall(message)
            with connection.makefile("rb") as stream:
                answers.append(stream.read())

    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_for(lambda: place.proxy.counts.accepted == 5, 10, "five connections")
    place.proxy.release("server")
    for thread in threads:
        thread.join(20)
    assert [answer.split(b" ", 2)[1] for answer in answers] == [b"201"] * 5
    assert sum(b"idempotency-replayed: true" in answer for answer in answers) == 4
    assert place.values.written() == ["a"]


def test_r33_a_write_that_was_overtaken_on_its_way_is_refused(place: Place, background: ThreadPoolExecutor) -> None:
    job = FakeJob(lease=300)
    place.proxy.hold("server")
    first = background.submit(write, place.through_proxy, Zombie(job, 1), "first", "first")
    wait_for(lambda: place.proxy.counts.accepted, 10, "the first write to be on its way")
    write(place.direct, job, "second", "second")
    place.proxy.release("server")
    with pytest.raises(OutOfSequence):
        first.result(20)
    assert place.values.read(SCOPE) == "second"


def test_r30_a_raise_whose_answer_is_lost_is_unknown_and_harmless_to_repeat(place: Place) -> None:
    job = FakeJob(lease=300, generation=8)
    with httpx.Client(verify=False) as client:
        fence = HTTPFence(client, place.through_proxy + "/fences")
        place.proxy.drop_reply()
        with pytest.raises(OutcomeUnknown):
            fence.raise_to(job.token)
        fence.raise_to(job.token)
        mark = fence.current(job.id)
        assert mark is not None
        assert mark.generation == 8
