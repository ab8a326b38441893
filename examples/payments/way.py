"""The way from a worker to the provider: a transport that has itself interrupted in the worst moments."""

from __future__ import annotations

from collections.abc import Callable

import httpx


def _pass(_: object) -> None:
    """Let it pass."""


class Way(httpx.BaseTransport):
    """Sends requests; whoever runs a worker may hook in before each one leaves, and after its answer has come.

    What a `FencedTransport` hands on to it has passed the gate.
    """

    def __init__(self) -> None:
        self._network = httpx.HTTPTransport()
        self.leaving: Callable[[httpx.Request], object] = _pass
        self.answered: Callable[[httpx.Response], object] = _pass

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        self.leaving(request)
        response = self._network.handle_request(request)
        response.read()
        self.answered(response)
        return response

    def close(self) -> None:
        """Close the connections."""
        self._network.close()
