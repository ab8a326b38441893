"""Have 500 invoices paid by workers that are stopped and killed, over a network that repeats and loses requests.

    python examples/payments/run.py
    python examples/payments/run.py --no-fence

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.child import path_for_children
from examples.fleet import Fleet, Nemesis, store_answers
from examples.payments.campaign import Campaign, Report
from examples.payments.network import Courier, Weather, storm
from examples.payments.tasks import LEASE, app
from examples.program import Say, options_of, play
from tenure.demo.children import Cast
from tenure.testing.proxy import Proxy

KILLS = 0.3
"""The part of all strikes that kill; the others stop and continue."""


def main() -> int:
    """Run the example; return 0 if it showed what it is there to show."""
    parser = options_of("Have invoices paid by workers under attack.", limit=500, limited="how many invoices")
    parser.add_argument("--no-fence", action="store_true", help="without token and key, to see the damage")
    options = parser.parse_args()
    return play(partial(run, options), told, as_json=options.json)


def run(options: argparse.Namespace, folder: Path, say: Say) -> Report:
    """Start provider, network and workers, have every invoice paid, and look into the books."""
    report = Report(fence=not options.no_fence, invoices=options.limit)
    say(f"{report.invoices} invoices, {options.workers} workers, {'a fence' if report.fence else 'NO fence'}")
    store, log = folder / "store.db", folder / "workers.log"
    app.use_store(f"sqlite:///{store}")
    app.store.migrate()
    with Cast(folder, {"BOOKS": f"{folder}/books.db", "PYTHONPATH": path_for_children()}) as cast:
        port = cast.start("provider", "examples.payments.provider").expect("listening").port
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as provider:
            campaign = Campaign(store, provider, report)
            attack(campaign, report, port, options=options, log=log, say=say)
            campaign.look()
    if unfinished := campaign.unfinished():
        report.problems.append(f"{unfinished} jobs did not complete; the workers said: {log.read_text()[-3000:]}")
    report.judge()
    app.close()
    return report


def attack(campaign: Campaign, report: Report, port: int, *, options: argparse.Namespace, log: Path, say: Say) -> None:
    """Let workers do what the campaign hands out, while everything goes wrong that can."""
    weather = Weather(options.seed, longest=2 * LEASE)
    with Courier(port, weather) as courier, Proxy("127.0.0.1", courier.port) as proxy:
        environment = {"TENURE_STORE": app.store.name, "PROVIDER": f"http://127.0.0.1:{proxy.port}"}
        with (
            Fleet(options.workers, "examples.payments.worker", environment=environment, log=log) as fleet,
            storm(proxy, options.seed),
        ):
            nemesis = Nemesis(fleet, app, options.seed, kills=KILLS, nobody_locked=lambda: store_answers(app))
            campaign.run(nemesis, lambda: note(report, fleet, nemesis, weather, proxy), say)
        courier.drain()  # what comes very late counts too


def note(report: Report, fleet: Fleet, nemesis: Nemesis, weather: Weather, proxy: Proxy) -> None:
    """Note what was done to workers and requests so far."""
    report.workers, report.stops, report.kills = fleet.started, nemesis.stops, nemesis.kills
    report.duplicated, report.delayed = weather.duplicated, weather.delayed
    report.replies_dropped = proxy.counts.replies_dropped
    report.cut = proxy.counts.cut - report.replies_dropped


def told(report: Report) -> str:
    """Tell a report in words."""
    once = report.paid_once == report.invoices
    lines = [
        "",
        f"invoices           {report.invoices}, each paid exactly once: {'yes' if once else 'NO'}",
        f"paid twice or more {report.paid_more_than_once}",
        f"cents              {report.cents_due} due, {report.cents_charged} charged",
        f"workers            {report.workers} processes; {report.stops} stops, {report.kills} kills",
        f"network            {report.duplicated} requests duplicated, {report.delayed} delayed",
        f"                   {report.replies_dropped} answers swallowed, {report.cut} connections cut",
        f"takeovers          {report.takeovers}",
        f"refused as stale   {report.refused}",
        f"repeated           {report.repeated}, answered from the store",
        f"seconds            {report.seconds}",
        "",
    ]
    if report.problems:
        return "\n".join([*lines, *(f"FAILED: {problem}" for problem in report.problems)])
    if report.fence:
        return "\n".join([*lines, f"{report.invoices} payments, each applied exactly once."])
    many = f"Without key and token {report.paid_more_than_once} invoices were paid more than once."
    return "\n".join([*lines, f"{many} That is the point of this run."])


if __name__ == "__main__":
    sys.exit(main())
