"""Ports for servers of tests: whoever was given one keeps it, also while nothing listens there."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from random import SystemRandom

import pytest

from tenure.errors import Unavailable
from tenure.testing.proxy import Proxy, free_port, give_back

REFUSED = 7
ASK = f"""
import sys
from tenure.errors import Unavailable
from tenure.testing import proxy

class Drawn:
    def sample(self, *_):
        return [int(sys.argv[1])]

proxy.SystemRandom = Drawn
try:
    proxy.free_port()
except Unavailable:
    sys.exit({REFUSED})
"""


def others_get(port: int) -> bool:
    """Have another process draw this port; whatever it is given goes back at its end."""
    answer = subprocess.run([sys.executable, "-c", ASK, str(port)], check=False, timeout=60).returncode
    assert answer in {0, REFUSED}
    return answer == 0


@pytest.fixture
def port() -> Iterator[int]:
    given = free_port()
    yield given
    give_back(given)


def test_a_port_that_was_given_out_is_its_servers_also_while_that_is_stopped(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemRandom, "sample", lambda *_: [port])
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server:
            # Who closes first leaves a trace for a while, which must not be at this port: nobody could be given it.
            socket.create_connection(("127.0.0.1", port), timeout=30).close()
            with server.accept()[0] as connection:
                assert connection.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)
        with pytest.raises(Unavailable, match="no free TCP port"):
            free_port()
        assert not others_get(port)


def test_a_port_that_was_given_back_goes_to_others(port: int) -> None:
    give_back(port)
    assert others_get(port)
    give_back(port)  # nothing


def test_a_proxy_keeps_its_port_until_it_is_closed() -> None:
    with Proxy("127.0.0.1", 1) as refusing:
        refusing.refuse()
        assert not others_get(refusing.port)
        refusing.accept()
    assert others_get(refusing.port)
