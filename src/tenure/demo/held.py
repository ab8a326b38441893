"""How A's two writes are held back, and delivered after all: by a proxy each or, without a network, by A itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from msgspec.structs import replace

from tenure.demo.children import PATIENCE, Child, Stalled
from tenure.demo.destinations.place import Place, Way
from tenure.testing.proxy import Proxy

ACTS = 2
"""The first write is held until B has read the page, the second until B has written it."""

_LOOK = 0.01


class Held(Protocol):
    """What keeps the writes back."""

    ways: tuple[Way, ...]
    """How A is to send them, the one of each act."""
    told: str
    """What has become of them, in words."""
    by_sender: bool
    """Whether their sender has to be awake for their delivery."""

    def hold(self) -> None:
        """Hold back what is sent from now on."""
        ...

    def deliver(self, act: int, sender: Child) -> None:
        """Deliver the write of an act and wait until the destination has answered it; raises Stalled."""
        ...


@contextmanager
def holding(place: Place, straight: Way) -> Iterator[Held]:
    """Stand between A and a destination."""
    if place.port is None:
        yield _Steps(straight)
        return
    with ExitStack() as stack:
        yield _Network(straight, [stack.enter_context(Proxy("127.0.0.1", place.port)) for _ in range(ACTS)])


class _Network:
    """A proxy for each write: its bytes have left A and wait there, whatever becomes of A."""

    told = "on their way; the network holds both back"
    by_sender = False

    def __init__(self, straight: Way, proxies: list[Proxy]) -> None:
        self._proxies = proxies
        self.ways = tuple(replace(straight, slow=proxy.port) for proxy in proxies)

    def hold(self) -> None:
        for proxy in self._proxies:
            proxy.hold("server")

    def deliver(self, act: int, sender: Child) -> None:
        proxy = self._proxies[act]
        before = proxy.counts.bytes_to_client
        proxy.release("server")
        deadline = time.monotonic() + PATIENCE
        while proxy.counts.bytes_to_client == before:
            if time.monotonic() > deadline:
                raise Stalled(f"the destination did not answer {sender.name} within {PATIENCE:g} s")
            time.sleep(_LOOK)


class _Steps:
    """A itself waits before the last step of each write, and takes it when it is told."""

    told = "both prepared; stopped before the step that makes them"
    by_sender = True

    def __init__(self, straight: Way) -> None:
        self.ways = (straight,) * ACTS

    def hold(self) -> None:
        """Do nothing: A holds them."""

    def deliver(self, act: int, sender: Child) -> None:
        sender.say(f"deliver {act}")
        sender.expect("answered")
