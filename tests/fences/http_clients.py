"""A server that tells what it was sent, and the libraries that send.

Star-imported, since pytest finds fixtures by name.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tenure import Effect
from tenure.fences.http import client_httpx, client_requests
from tenure.testing.job import FakeJob
from tests.fences.http import SQLiteValues, Uvicorn

CHARGE = {"value": "charge"}


@dataclass
class Echo:
    """What a server has been told, and what it is to answer next."""

    seen: list[dict[str, str]]
    script: list[Response]

    def app(self, values: SQLiteValues) -> Starlette:
        async def echo(request: Request) -> Response:
            self.seen.append({"method": request.method, "path": request.url.path, **request.headers})
            return self.script.pop(0) if self.script else JSONResponse({"value": "echo"})

        methods = ["GET", "PUT", "POST"]
        routes = [Route(path, echo, methods=methods) for path in ("/echo", "/echo/{rest}", "/elsewhere")]
        return Starlette(routes=[*routes, Mount("/", values.app())])


@dataclass
class Server:
    url: str
    values: SQLiteValues
    echo: Echo

    def answer(self, *answers: Response) -> None:
        self.echo.script[:] = answers


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    values, echo = SQLiteValues(Path()), Echo([], [])
    with Uvicorn(echo.app(values)) as server:
        yield Server(server.url, values, echo)


@pytest.fixture
def server(one_server: Server, tmp_path: Path) -> Server:
    one_server.values.file = tmp_path / "values.db"
    one_server.values.create()
    one_server.echo.seen.clear()
    one_server.echo.script.clear()
    return one_server


Timeout = float | tuple[float | None, ...] | None
FENCED: dict[str, Any] = {"timeout": 5.0}


class Sender(ABC):
    """One library: `send` makes and sends a request, `again` sends the last one once more, as it is."""

    last: Any

    @abstractmethod
    def send(self, url: str, fenced: Any = None, **options: Any) -> Any: ...

    @abstractmethod
    def again(self) -> Any: ...


class Httpx(Sender):
    mark = staticmethod(client_httpx.fenced)
    last: httpx.Request

    def __init__(self) -> None:
        inner = httpx.HTTPTransport(verify=False, retries=0)
        self.client = httpx.Client(transport=client_httpx.FencedTransport(inner))

    def build(self, url: str, fenced: Any, method: str = "PUT", timeout: Any = 5.0, **options: Any) -> httpx.Request:
        options.setdefault("json", CHARGE if method == "PUT" else None)
        self.last = self.client.build_request(method, url, extensions=fenced, timeout=timeout, **options)
        return self.last

    def send(self, url: str, fenced: Any = None, follow: bool = False, **options: Any) -> Any:
        return self.client.send(self.build(url, fenced, **options), follow_redirects=follow)

    def again(self) -> Any:
        return self.client.send(self.last)

    def close(self) -> None:
        self.client.close()


class AsyncHttpx(Httpx):
    def __init__(self) -> None:
        super().__init__()
        inner = httpx.AsyncHTTPTransport(verify=False, retries=0)
        self.asynchronous = httpx.AsyncClient(transport=client_httpx.AsyncFencedTransport(inner))
        self.runner = asyncio.Runner()

    def send(self, url: str, fenced: Any = None, follow: bool = False, **options: Any) -> Any:
        return self.runner.run(self.asynchronous.send(self.build(url, fenced, **options), follow_redirects=follow))

    def again(self) -> Any:
        return self.runner.run(self.asynchronous.send(self.last))

    def close(self) -> None:
        super().close()
        self.runner.run(self.asynchronous.aclose())
        self.runner.close()


class Requests(Sender):
    mark = client_requests.fenced

    def __init__(self) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.mount("http://127.0.0.1", client_requests.FencedAdapter())

    def send(
        self,
        url: str,
        fenced: Any = None,
        follow: bool = False,
        method: str = "PUT",
        timeout: Any = 5.0,
        **options: Any,
    ) -> Any:
        options.setdefault("json", CHARGE if method == "PUT" else None)
        self.last = self.session.prepare_request(requests.Request(method, url, auth=fenced, **options))
        return self.session.send(self.last, timeout=timeout, allow_redirects=follow)

    def again(self) -> Any:
        return self.session.send(self.last, timeout=5)

    def close(self) -> None:
        self.session.close()


SENDERS: dict[str, Callable[[], Any]] = {"httpx": Httpx, "httpx asynchronous": AsyncHttpx, "requests": Requests}


@pytest.fixture(params=SENDERS)
def sender(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = SENDERS[request.param]()
    yield made
    made.close()


def value_of(server: Server) -> str:
    return f"{server.url}/values?scope=account/7"


class Zombie:
    """A run whose clock does not tell it that its lease has ended: its gate stays open."""

    def __init__(self, job: FakeJob, sequence: int) -> None:
        self._job = job
        self._token = Effect(job.id, job.generation, sequence)

    def effect(self, seconds: float = 0.0) -> AbstractContextManager[Effect]:
        return nullcontext(self._token)

    def idempotency_key(self, step: str) -> str:
        return self._job.idempotency_key(step)
