"""MariaDB servers for tests: found or unpacked, reached with a password only, and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
import pytest

from tenure import Misuse, Unavailable
from tenure.testing import mariadb, process
from tenure.testing.mariadb import Installation, MariaDB, unpack
from tenure.testing.proxy import free_port
from tests.fences.sql_servers import mariadb as shared_server


def test_it_is_durable_and_its_password_is_needed() -> None:
    server = shared_server()
    with pymysql.connect(**server.arguments("mysql")) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@innodb_flush_log_at_trx_commit, @@bind_address, @@character_set_server")
        assert cursor.fetchone() == (1, "127.0.0.1", "utf8mb4")
        cursor.execute("SELECT User FROM mysql.global_priv WHERE User NOT IN ('tenure', 'mariadb.sys')")
        assert cursor.fetchall() == ()
    for wrong in ({"password": "another"}, {"password": ""}, {"user": "root", "password": ""}):
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            pymysql.connect(**server.arguments("mysql") | wrong)


def test_it_tells_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb, "UNPACKED", tmp_path / "nowhere")
    monkeypatch.setattr(mariadb, "_ELSEWHERE", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Misuse, match="-m tenure.testing.mariadb"):
        MariaDB.start()
    with pytest.raises(Misuse, match="only where there is apt-get"):
        unpack(tmp_path / "unpacked")
    assert mariadb.main() == 1


def test_it_finds_another_port_where_its_own_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = iter([shared_server().port, free_port()])
    monkeypatch.setattr(process, "free_port", lambda: next(ports))
    with MariaDB.start() as server:
        assert server.port != shared_server().port
        assert server.create_database()
    assert not server.folder.exists()


def test_what_is_committed_survives_kill_stop_and_another_start(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with MariaDB.start(folder=folder) as first:
        database = first.create_database()
        asked(first, database, "CREATE TABLE note (number int)")
        for number, end in enumerate((first.kill, first.stop)):
            asked(first, database, f"INSERT INTO note VALUES ({number})")
            end()
            first.restart()
    with MariaDB.start(folder=folder) as second:
        assert asked(second, database, "SELECT number FROM note ORDER BY number") == ((0,), (1,))


def asked(server: MariaDB, database: str, statement: str) -> Any:
    connection = pymysql.connect(**server.arguments(database), autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_a_server_that_does_not_start_is_told_with_its_log(tmp_path: Path) -> None:
    found = Installation.find()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mariadbd"
    program.write_text('#!/bin/sh\ncase "$*" in *--bootstrap*) exit 0;; esac\necho "[ERROR] no luck today"\nexit 1\n')
    program.chmod(0o755)
    with pytest.raises(Unavailable, match="no luck today"):
        MariaDB.start(installation=Installation(program, found.base))
    program.write_text("#!/bin/sh\necho no tables >&2\nexit 3\n")
    with pytest.raises(Unavailable, match=r"could not make its tables \(3\): no tables"):
        MariaDB.start(installation=Installation(program, found.base))
    with pytest.raises(Misuse, match="is not whole"):
        MariaDB.start(installation=Installation(program, tmp_path))


APT = """#!/bin/sh
echo "$*" >>{log}
case "$*" in
*" update") touch {fresh};;
*) [ -e {fresh} ] || {{ echo "E: Unable to locate package" >&2; exit 100; }}
   [ ! -e {gone} ] || {{ echo "E: Failed to fetch" >&2; exit 100; }}
   for option; do case "$option" in Dir::Cache::archives=*) cp {package} "${{option#*=}}/";; esac; done;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/sbin" && cp "$2" "$3/usr/sbin/mariadbd"
"""


def test_packages_are_unpacked_with_lists_of_ones_own_where_the_systems_do_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {name: tmp_path / name for name in ("log", "fresh", "gone", "package")}
    names["package"] = names["package"].with_suffix(".deb")
    names["package"].write_text("a server")
    for name, script in (("apt-get", APT.format(**names)), ("dpkg-deb", DPKG)):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    unpack(tmp_path / "mariadb")
    assert (tmp_path / "mariadb" / "usr" / "sbin" / "mariadbd").read_text() == "a server"
    first, update, second = names["log"].read_text().splitlines()
    assert first.endswith("--download-only install mariadb-server-core")
    assert "Dir::State::Lists=" not in first
    assert update.endswith("update")
    assert "Dir::State::Lists=" in second
    names["gone"].touch()
    with pytest.raises(Misuse, match="Failed to fetch"):
        unpack(tmp_path / "mariadb")
    assert (tmp_path / "mariadb" / "usr" / "sbin" / "mariadbd").is_file()
    names["gone"].unlink()
    (tmp_path / "full").touch()
    with pytest.raises(Misuse, match="could not be unpacked"):
        unpack(tmp_path / "full" / "mariadb")
