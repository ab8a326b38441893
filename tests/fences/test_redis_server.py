"""Redis and Valkey servers from wheels."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tenure.errors import Misuse, Unavailable
from tenure.testing import process
from tenure.testing import redis as servers
from tenure.testing.proxy import free_port
from tenure.testing.redis import Redis
from tests.fences.redis_fixtures import RELEASES_HERE
from tests.support.processes import gone


@pytest.mark.parametrize("release", RELEASES_HERE)
def test_every_installed_release_is_durable_private_and_takes_settings(release: str) -> None:
    with Redis.start(
        release, settings={"databases": 3, "maxmemory-policy": "volatile-ttl", "lua-time-limit": 77}
    ) as server:
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        with redis.Redis.from_url(server.url) as client:
            told = client.config_get("*")
            wanted = {"appendonly": "yes", "appendfsync": "always", "bind": "127.0.0.1", "databases": "3"}
            assert told | wanted | {"maxmemory-policy": "volatile-ttl", "lua-time-limit": "77"} == told
        for password in (None, "wrong"):
            stranger = redis.Redis(port=server.port, password=password, retry=Retry(NoBackoff(), 0))
            with stranger, pytest.raises(redis.AuthenticationError):
                stranger.ping()
    assert not server.folder.exists()


def test_the_releases_are_what_they_say() -> None:
    versions = {}
    for release in RELEASES_HERE:
        with Redis.start(release) as server, redis.Redis.from_url(server.url) as client:
            told = client.info("server")
            versions[release] = str(told.get("valkey_version", told["redis_version"])).split(".")[0]
    assert versions.items() <= {"valkey": "9", "redis": "8", "older": "6"}.items()
    assert "valkey" in versions


def test_what_was_answered_survives_kill_stop_and_restart() -> None:
    with Redis.start() as server:
        for act in (server.kill, server.stop, server.restart):
            with redis.Redis.from_url(server.url) as client:
                client.incr("count")
            pid = server.pid
            act()
            assert gone(pid)
            if not server.running:
                with pytest.raises(Unavailable, match="is not running"):
                    assert server.pid
                server.stop()
                server.kill()
                server.restart()
        with redis.Redis.from_url(server.url) as client:
            assert client.get("count") == b"3"


def test_a_folder_of_ones_own_is_kept_and_started_again(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with Redis.start(folder=folder) as first, redis.Redis.from_url(first.url) as client:
        client.set("a", 1)
    with Redis.start(folder=folder) as second, redis.Redis.from_url(second.url) as client:
        assert client.get("a") == b"1"
    assert folder.exists()


def test_a_bad_start_names_the_culprit_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Unavailable, match="no-such-setting"):
        Redis.start(settings={"no-such-setting": 1})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Misuse, match=r"release '2\.0' is neither one of valkey, redis, older"):
        Redis.start("2.0")
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(Misuse, match="holds files of others"):
        Redis.start(folder=tmp_path)
    monkeypatch.setitem(servers.RELEASES, "valkey", ("package_that_is_absent", ""))
    with pytest.raises(Misuse, match="needs the package package-that-is-absent"):
        Redis.start()


def test_another_port_is_taken_if_the_first_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with Redis.start() as first:
        ports = iter((first.port, first.port, free_port()))
        monkeypatch.setattr(process, "free_port", lambda: next(ports))
        with Redis.start() as second, redis.Redis.from_url(second.url) as client:
            assert second.port != first.port
            assert client.ping()
