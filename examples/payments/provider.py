"""The provider: a payment service in a process of its own; ``python -m examples.payments.provider NAME``.

POST /invoices/7/payments?cents=1200          charge the card, under the fence of invoice-7, once for each key
POST /keyed/invoices/7/payments?cents=1200    once for each key, without a fence
POST /plain/invoices/7/payments?cents=1200    with neither
POST /invoices/7/transfers?cents=1200         the customer pays at the bank
GET  /invoices/7                              whether the customer has done so
GET  /audit                                   the books, and how many requests had which answer
PUT  /fences/invoice-7                        raise the fence
"""

# ruff: noqa: ARG001 -- `fenced` reads the request that its handlers are given

from __future__ import annotations

import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse

from examples.child import end_with_starter
from examples.payments.books import Books, book, charged, find, is_transferred, payments, remember
from tenure.demo.children import Told, tell
from tenure.fences.http import Call, FencedService
from tenure.fences.http.asgi import FenceResource
from tenure.fences.http.starlette import fenced

books = Books(os.environ["BOOKS"])
service = FencedService("sqlite")
app = FastAPI()
app.mount("/fences", FenceResource(service, books.begin))
answers: Counter[str] = Counter()


def scope_of(request: Request) -> str:
    """Name what a payment would change, so that no request can choose another fence."""
    return f"invoice-{request.path_params['invoice']}"


@app.post("/invoices/{invoice}/payments")
@fenced(service, books.begin, scope=scope_of, ordered=False)
def pay_fenced(request: Request, call: Call, invoice: int, cents: int) -> JSONResponse:
    """Charge the card: mark, answer and payment are committed together, or not at all."""
    return JSONResponse({"payment": book(call.connection, invoice, "card", cents)}, status_code=201)


@app.post("/keyed/invoices/{invoice}/payments")
def pay_keyed(invoice: int, cents: int, idempotency_key: Annotated[str, Header()]) -> JSONResponse:
    """Charge the card, unless it was charged for this key before."""
    with books.begin() as connection:
        earlier = find(connection, idempotency_key)
        if earlier is not None:
            return JSONResponse({"payment": earlier}, 201, {"Idempotency-Replayed": "true"})
        payment = book(connection, invoice, "card", cents)
        remember(connection, idempotency_key, payment)
    return JSONResponse({"payment": payment}, status_code=201)


@app.post("/plain/invoices/{invoice}/payments")
def pay_plain(invoice: int, cents: int) -> JSONResponse:
    """Charge the card."""
    with books.begin() as connection:
        payment = book(connection, invoice, "card", cents)
    return JSONResponse({"payment": payment}, status_code=201)


@app.post("/invoices/{invoice}/transfers")
def transfer(invoice: int, cents: int) -> JSONResponse:
    """Take the customer's money at the bank."""
    with books.begin() as connection:
        payment = book(connection, invoice, "transfer", cents)
    return JSONResponse({"payment": payment}, status_code=201)


@app.get("/invoices/{invoice}")
def look(invoice: int) -> JSONResponse:
    """Tell whether the customer has paid at the bank."""
    with books.begin() as connection:
        return JSONResponse({"transferred": is_transferred(connection, invoice)})


@app.get("/audit")
def audit() -> JSONResponse:
    """Lay the books open."""
    with books.begin() as connection:
        return JSONResponse({"payments": payments(connection), "charged": charged(connection), "answers": answers})


@app.middleware("http")
async def count(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Count the answers to those who want to charge a card."""
    response = await call_next(request)
    if request.url.path.endswith("/payments"):
        repeated = response.headers.get("Idempotency-Replayed") == "true"
        answers["repeated" if repeated else NAMES.get(response.status_code, "failed")] += 1
    return response


NAMES: dict[int, str] = {201: "booked", 412: "refused", 409: "told to ask again"}


def main() -> None:
    """Serve on a free port, tell which one it is, and end with whoever started this process."""
    end_with_starter()
    books.create()
    with books.begin() as connection:
        service.create(connection)
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # until the server takes care of it
    config: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 5}
    tell(Told("listening", sys.argv[1], port=listener.getsockname()[1]))
    uvicorn.Server(uvicorn.Config(app, **config)).run(sockets=[listener])


if __name__ == "__main__":
    main()
