"""`S3Fence` on a real S3 server: the suite of fences, and what is special to object storage."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure import BadSettings, Effect, Misuse, OutcomeUnknown, OutOfSequence, StaleToken, Token, Unavailable
from tenure.fences import s3
from tenure.fences.rule import LEAP, Mark
from tenure.fences.s3 import S3Fence
from tenure.testing.fences.crowd import *  # noqa: F403
from tenure.testing.fences.rule import *  # noqa: F403
from tenure.testing.proxy import Proxy
from tenure.testing.s3 import REGION, S3Server
from tenure.worker.fencing import is_fence
from tests.fences.s3 import S3Destination
from tests.fences.s3_careless import Careless, serving
from tests.fences.s3_hooks import answer, before, swept
from tests.support.processes import Processes

SCOPE = "report/7"
SIX, SEVEN, EIGHT = (Token("job-1", generation) for generation in (6, 7, 8))
Deed = Callable[[], object]
ONCE: dict[str, Any] = {"retries": {"total_max_attempts": 1}}


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    with S3Server.start() as server:
        yield server


@pytest.fixture(scope="session")
def bucket(server: S3Server) -> str:
    return server.create_bucket()


@pytest.fixture
def destination(server: S3Server, bucket: str) -> Iterator[S3Destination]:
    destination = S3Destination(server, bucket)
    yield destination
    destination.client.close()


@pytest.fixture
def proxy(server: S3Server) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", server.port) as proxy:
        yield proxy


# -- the store must honour conditions


CARELESS = {
    "no If-None-Match": (Careless(heeds=frozenset({"If-Match"})), "there already"),
    "no If-Match": (Careless(heeds=frozenset({"If-None-Match"})), "has changed"),
    "no condition at all": (Careless(heeds=frozenset()), "there already"),
    "looks first and writes later": (Careless(later=True), "writes at once"),
    "has no If-Match": (Careless(cannot="If-Match"), "NotImplemented"),
    "has no If-None-Match": (Careless(cannot="If-None-Match"), "NotImplemented"),
}


def test_a_store_that_honours_conditions_passes_the_check(destination: S3Destination) -> None:
    destination.fence.check()
    assert destination.keys("") == []


def test_the_stand_in_for_careless_stores_passes_when_it_is_careful(server: S3Server) -> None:
    with serving(Careless()) as url:
        fence = S3Fence(server.client(url), "bucket")
        fence.put(SCOPE, b"mine", SEVEN)
        assert fence.read(SCOPE) == b"mine"


@pytest.mark.parametrize(("store", "why"), CARELESS.values(), ids=CARELESS)
def test_a_store_that_would_guard_nothing_is_refused_before_the_first_write(
    server: S3Server, store: Careless, why: str
) -> None:
    with serving(store) as url:
        fence = S3Fence(server.client(url, **ONCE), "bucket")
        deeds: list[Deed] = [lambda: fence.put(SCOPE, b"mine", SEVEN), lambda: fence.raise_to(SEVEN), fence.check]
        for deed in deeds:
            with pytest.raises(BadSettings, match=why):
                deed()
    assert store.objects == {}


# -- lost answers (R30) and conflicts


@pytest.mark.parametrize("retries", [{}, ONCE], ids=["the client repeats", "the client does not repeat"])
def test_a_write_whose_answer_was_lost_is_recognized(
    destination: S3Destination, proxy: Proxy, retries: dict[str, Any]
) -> None:
    client = destination.server.client(proxy.url_for(destination.server.url), **retries)
    before(client, "PutObject", "/manifests/", proxy.drop_reply, times=2)
    fence = destination.fence_with(client)
    fence.raise_to(SEVEN, scope=SCOPE)
    fence.put(SCOPE, b"first", SEVEN, sequence=1)
    assert proxy.counts.replies_dropped == 2
    fence.put(SCOPE, b"second", SEVEN, sequence=2)
    assert fence.read(SCOPE) == b"second"
    assert fence.current(SCOPE) == Mark("job-1", 7, 2)
    with pytest.raises(OutOfSequence):
        fence.put(SCOPE, b"again", SEVEN, sequence=2)


def test_a_write_whose_answer_was_lost_counts_when_its_successor_has_seen_it(
    destination: S3Destination, proxy: Proxy
) -> None:
    client = destination.server.client(proxy.url_for(destination.server.url), **ONCE)
    fence = destination.fence_with(client)

    def lose_and_be_succeeded() -> None:
        proxy.drop_reply()
        before(client, "GetObject", "/manifests/", lambda: destination.raise_to(EIGHT, SCOPE))

    before(client, "PutObject", "/manifests/", lose_and_be_succeeded)
    fence.put(SCOPE, b"old", SEVEN, sequence=1)
    assert destination.read(SCOPE) == "old"
    with pytest.raises(StaleToken):
        fence.put(SCOPE, b"late", SEVEN, sequence=2)


def test_a_write_that_nobody_can_tell_of_is_unknown(destination: S3Destination, proxy: Proxy) -> None:
    client = destination.server.client(proxy.url_for(destination.server.url), **ONCE)

    def lose_for_good() -> None:
        proxy.drop_reply()
        proxy.refuse()

    before(client, "PutObject", "/manifests/", lose_for_good)
    fence = destination.fence_with(client)
    with pytest.raises(OutcomeUnknown):
        fence.put(SCOPE, b"mine", SEVEN)
    proxy.accept()
    assert fence.read(SCOPE) == b"mine"


def test_a_store_that_is_away_is_unavailable(destination: S3Destination, proxy: Proxy) -> None:
    fence = destination.fence_with(destination.server.client(proxy.url_for(destination.server.url), **ONCE))
    proxy.refuse()
    deeds: list[Deed] = [lambda: fence.put(SCOPE, b"mine", SEVEN), lambda: fence.read(SCOPE), fence.sweep]
    for deed in deeds:
        with pytest.raises(Unavailable):
            deed()
    proxy.accept()
    assert fence.read(SCOPE) is None


@pytest.mark.parametrize("status", [409, 412])
def test_a_conflict_is_tried_again_and_a_refusal_looked_at(destination: S3Destination, status: int) -> None:
    before(destination.client, "PutObject", "/manifests/", lambda: answer(status, "Conflict"), times=3)
    destination.write(SEVEN, SCOPE, "mine", 1)
    assert destination.read(SCOPE) == "mine"


def test_who_loses_every_time_is_told_so(destination: S3Destination, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_LONGEST_PAUSE", 0.0)
    before(destination.client, "PutObject", "/manifests/", lambda: answer(412, "PreconditionFailed"), times=1000)
    with pytest.raises(Unavailable, match="faster"):
        destination.write(SEVEN, SCOPE, "mine", 1)
    assert destination.read(SCOPE) is None


def test_a_write_between_look_and_write_is_not_overwritten(destination: S3Destination) -> None:
    """The step between reading the manifest and writing it, in which a check alone would let the late write in."""
    destination.write(SEVEN, SCOPE, "old", 1)
    with destination.again() as other:
        before(destination.client, "PutObject", "/manifests/", lambda: other.write(EIGHT, SCOPE, "new", 1))
        with pytest.raises(StaleToken):
            destination.write(SEVEN, SCOPE, "late", 2)
    assert destination.read(SCOPE) == "new"


# -- what is stored


def test_a_late_writer_does_not_even_store_its_data(destination: S3Destination) -> None:
    destination.raise_to(EIGHT, SCOPE)
    with pytest.raises(StaleToken):
        destination.write(SEVEN, SCOPE, "late", 1)
    assert destination.keys("data/") == []


def test_an_announcement_that_changes_nothing_writes_nothing(destination: S3Destination) -> None:
    destination.raise_to(SEVEN, SCOPE)
    [key] = destination.keys("manifests/")
    found = destination.get(key)
    destination.raise_to(SEVEN, SCOPE)
    assert destination.get(key) == found


def test_every_write_changes_the_manifest_so_that_no_old_etag_comes_back(destination: S3Destination) -> None:
    destination.write(SEVEN, SCOPE, "mine", 1)
    [key] = destination.keys("manifests/")
    found = [destination.get(key)]
    for _ in range(2):
        destination.reset(SCOPE, "back to where it was")
        destination.fence.raise_to(SEVEN, scope=SCOPE)
        found.append(destination.get(key))
    assert len({json.loads(text)["nonce"] for text in found}) == 3


def test_the_token_of_an_effect_numbers_the_write(destination: S3Destination) -> None:
    destination.fence.put(SCOPE, b"second", Effect("job-1", 7, 2))
    with pytest.raises(OutOfSequence):
        destination.fence.put(SCOPE, b"first", Effect("job-1", 7, 1))
    assert destination.fence.current(SCOPE) == Mark("job-1", 7, 2)


def test_a_delete_under_a_token_is_a_write_like_any_other(destination: S3Destination) -> None:
    destination.write(EIGHT, SCOPE, "mine", 1)
    with pytest.raises(StaleToken):
        destination.fence.delete(SCOPE, SEVEN, sequence=9)
    with pytest.raises(OutOfSequence):
        destination.fence.delete(SCOPE, EIGHT, sequence=1)
    assert destination.read(SCOPE) == "mine"
    destination.fence.delete(SCOPE, EIGHT, sequence=2)
    assert destination.read(SCOPE) is None
    assert destination.fence.current(SCOPE) == Mark("job-1", 8, 2)


def test_a_clean_up_of_nothing_stores_nothing(destination: S3Destination) -> None:
    destination.delete(SCOPE)
    destination.reset(SCOPE, "there was none")
    assert (destination.keys(""), destination.resets(SCOPE)) == ([], [])


def test_a_reset_tells_what_it_put_aside_and_when(destination: S3Destination) -> None:
    destination.write(EIGHT, SCOPE, "mine", 3)
    destination.reset(SCOPE, "a test wrote here")
    [entry] = destination.fence.resets(SCOPE)
    assert (entry.scope, entry.mark, entry.reason) == (SCOPE, Mark("job-1", 8, 3), "a test wrote here")
    assert abs(entry.at - time.time()) < 60
    assert destination.fence.current(SCOPE) is None
    assert destination.read(SCOPE) == "mine"


# -- sweeping


def test_a_sweep_takes_what_is_over_and_leaves_what_is_in_force(destination: S3Destination) -> None:
    for sequence in (1, 2, 3):
        destination.write(SEVEN, SCOPE, str(sequence), sequence)
    destination.write(SEVEN, "another", "kept", 1)
    assert destination.fence.sweep() == 0  # nothing is an hour old
    swept(destination, 2)
    assert (destination.read(SCOPE), destination.read("another")) == ("3", "kept")
    destination.delete(SCOPE)
    swept(destination, 1)
    assert len(destination.keys("data/")) == 1


def test_a_sweep_reads_every_page(destination: S3Destination) -> None:
    def small_pages(params: dict[str, Any], **_: Any) -> None:
        params["MaxKeys"] = 2

    destination.client.meta.events.register("provide-client-params.s3.ListObjectsV2", small_pages)
    for sequence in range(1, 7):
        destination.write(SEVEN, SCOPE, str(sequence), sequence)
    swept(destination, 5)


def test_a_sweep_never_takes_what_is_about_to_be_published(destination: S3Destination) -> None:
    destination.write(SEVEN, SCOPE, "old", 1)
    destination.write(SEVEN, SCOPE, "in force", 2)
    with destination.again() as other:
        assert isinstance(other, S3Destination)
        before(destination.client, "PutObject", "/manifests/", lambda: swept(other, 1))
        destination.write(SEVEN, SCOPE, "new", 3)
    assert destination.read(SCOPE) == "new"


def test_a_sweep_that_met_a_bogus_mark_takes_nothing_that_a_reset_lets_through(destination: S3Destination) -> None:
    with destination.again() as other, destination.again() as sweeper:
        assert isinstance(sweeper, S3Destination)

        def sweep() -> None:
            before(sweeper.client, "DeleteObject", "/data/", lambda: other.reset(SCOPE, "it was bogus"))
            swept(sweeper, 1)

        def be_overtaken() -> None:
            other.raise_to(Token("job-1", LEAP), SCOPE)
            before(destination.client, "GetObject", "/manifests/", sweep)

        before(destination.client, "PutObject", "/manifests/", be_overtaken)
        destination.write(SEVEN, SCOPE, "mine", 1)
    assert destination.read(SCOPE) == "mine"


def test_a_reader_that_a_sweep_overtook_reads_what_is_in_force(destination: S3Destination) -> None:
    destination.write(SEVEN, SCOPE, "old", 1)
    with destination.again() as other:
        assert isinstance(other, S3Destination)

        def overtake() -> None:
            other.write(SEVEN, SCOPE, "new", 2)
            swept(other, 1)

        before(destination.client, "GetObject", "/data/", overtake)
        assert destination.read(SCOPE) == "new"


# -- what others did to the bucket


def test_what_is_gone_although_in_force_is_told(destination: S3Destination) -> None:
    destination.write(SEVEN, SCOPE, "mine", 1)
    [key] = destination.keys("data/")
    destination.client.delete_object(Bucket=destination.bucket, Key=destination.prefix + key)
    with pytest.raises(Misuse, match=re.escape(key)):
        destination.read(SCOPE)


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff", b'{"scope": "report/7", "mark": {"job": "j"}}'])
def test_a_manifest_that_cannot_be_read_lets_nothing_through(destination: S3Destination, text: bytes) -> None:
    destination.write(EIGHT, SCOPE, "mine", 1)
    [key] = destination.keys("manifests/")
    destination.put(key, text)
    with pytest.raises(Misuse, match="no manifest"):
        destination.write(SEVEN, SCOPE, "late", 1)
    with pytest.raises(Misuse, match="no manifest"):
        destination.read(SCOPE)
    assert destination.get(key) == text


def test_a_manifest_of_a_later_version_lets_nothing_through(destination: S3Destination) -> None:
    destination.write(EIGHT, SCOPE, "mine", 1)
    [key] = destination.keys("manifests/")
    destination.put(key, json.dumps({**json.loads(destination.get(key)), "seal": True}).encode())
    with pytest.raises(Misuse, match="no manifest that this version reads"):
        destination.write(EIGHT, SCOPE, "mine", 2)


def test_the_manifest_of_another_scope_lets_nothing_through(destination: S3Destination) -> None:
    destination.write(EIGHT, SCOPE, "mine", 1)
    [key] = destination.keys("manifests/")
    destination.write(EIGHT, "another", "mine", 1)
    [other] = set(destination.keys("manifests/")) - {key}
    destination.put(key, destination.get(other))
    with pytest.raises(Misuse, match="another"):
        destination.write(EIGHT, SCOPE, "mine", 2)


def test_wrong_settings_are_told_apart_from_an_outage(server: S3Server, destination: S3Destination) -> None:
    with pytest.raises(BadSettings, match="NoSuchBucket"):
        S3Fence(destination.client, "no-such-bucket").raise_to(SEVEN)
    stranger = server.client(**ONCE)
    stranger.meta.events.register("before-send.s3", lambda request, **_: request.headers.pop("Authorization") and None)
    with pytest.raises(BadSettings, match="AccessDenied"):
        S3Fence(stranger, destination.bucket, probe=False).read(SCOPE)
    with pytest.raises(Misuse, match="older_than"):
        destination.fence.sweep(-1.0)


@pytest.mark.parametrize("body", ["text", 5, [1, 2], None])
def test_only_bytes_are_published(destination: S3Destination, body: Any) -> None:
    with pytest.raises(Misuse, match="written in bytes"):
        destination.fence.put(SCOPE, body, SEVEN)
    assert destination.fence.current(SCOPE) is None
    destination.fence.put(SCOPE, bytearray(b"x"), SEVEN)
    assert destination.fence.read(SCOPE) == b"x"


def test_a_task_may_declare_it(destination: S3Destination) -> None:
    assert is_fence(destination.fence)
    destination.fence.raise_to(SEVEN)
    assert destination.fence.current("job-1") == Mark("job-1", 7, 0)


def test_the_page_runs(server: S3Server, tmp_path: Path) -> None:
    server.client().create_bucket(Bucket="reports")
    page = Path(__file__).parents[2] / "docs" / "fences" / "s3.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    environment = {
        "PYTHONPATH": str(Path(tenure.__file__).parents[1]),
        "AWS_ENDPOINT_URL": server.url,
        "AWS_DEFAULT_REGION": REGION,
        **{name.upper(): value for name, value in server.credentials.items()},
    }
    with Processes(tmp_path) as processes:
        ran = processes.start(
            "/bin/sh", "-c", f"cd {tmp_path} && exec {sys.executable} page.py", environment=environment
        )
        assert ran.wait(60.0) == 0, ran.stderr.read_text()
        assert any("is stale" in line for line in ran.lines())
