"""The app and its tasks: to have an invoice paid in three ways, of which one is safe."""

from __future__ import annotations

import os

import httpx

from examples.payments.way import Way
from tenure import App, Backoff, Job
from tenure.fences.http import HTTPFence
from tenure.fences.http.client_httpx import FencedTransport, fenced

PROVIDER = os.environ.get("PROVIDER", "http://provider.invalid")
LEASE, TIMEOUT = 1.2, 0.5
"""Seconds; short, so that a run of the example can wait for many of them to end."""

SOON = Backoff(first=0.2, factor=1)
_ALONE = {"Connection": "close"}  # one request a connection, so that the network can take them one by one

app = App()
way = Way()
plain = httpx.Client(transport=way, base_url=PROVIDER, timeout=TIMEOUT, headers=_ALONE)
provider = httpx.Client(transport=FencedTransport(way), base_url=PROVIDER, timeout=TIMEOUT, headers=_ALONE)
FENCE = HTTPFence(provider, f"{PROVIDER}/fences", timeout=TIMEOUT)


@app.task(lease=LEASE, backoff=SOON)
def pay_plain(invoice: int, cents: int) -> str:
    """Have an invoice paid: the plain way."""
    answer = plain.post(f"/plain/invoices/{invoice}/payments", params={"cents": cents})
    return f"payment {number_in(answer)}"


@app.task(lease=LEASE, backoff=SOON)
def pay_keyed(job: Job, invoice: int, cents: int) -> str:
    """Have an invoice paid: as a step, with an idempotency key."""
    if is_transferred(invoice):
        return "nothing to charge"
    key = job.idempotency_key("charge")
    return f"payment {job.step('charge', charge_keyed, invoice, cents, key)}"


def charge_keyed(invoice: int, cents: int, key: str) -> int:
    """Charge the card, once for each key."""
    address, fields = f"/keyed/invoices/{invoice}/payments", {"Idempotency-Key": f'"{key}"'}
    answer = plain.post(address, params={"cents": cents}, headers=fields)
    return number_in(answer)


@app.task(lease=LEASE, backoff=SOON, fences=[FENCE])
def pay_fenced(job: Job, invoice: int, cents: int) -> str:
    """Have an invoice paid: as a step, with an idempotency key, behind a fence."""
    if is_transferred(invoice):
        return "nothing to charge"
    return f"payment {job.step('charge', charge_fenced, job, invoice, cents)}"


def charge_fenced(job: Job, invoice: int, cents: int) -> int:
    """Charge the card, under the token of this run and with the key of this step."""
    address = f"/invoices/{invoice}/payments"
    answer = provider.post(address, params={"cents": cents}, extensions=fenced(job, "charge"))
    return number_in(answer)


def is_transferred(invoice: int) -> bool:
    """Ask whether the customer has paid at the bank meanwhile."""
    answer = provider.get(f"/invoices/{invoice}")
    return bool(answer.raise_for_status().json()["transferred"])


def number_in(answer: httpx.Response) -> int:
    """Read the number of the payment."""
    return int(answer.raise_for_status().json()["payment"])
