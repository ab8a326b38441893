"""Index the standard library with workers that are stopped, continued and killed all the time, and compare the result.

    python examples/stdlib_index/run.py --store sqlite
    python examples/stdlib_index/run.py --store postgres

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.fleet import Fleet, Nemesis, store_answers
from examples.program import Say, options_of, play
from examples.stdlib_index.campaign import Campaign, Report
from examples.stdlib_index.index import Entry, find_modules, read_entry
from examples.stdlib_index.results import digest, open_results, results_answer
from examples.stdlib_index.tasks import app
from tenure import BadSettings
from tenure.testing.servers import Postgres

WORKER = "examples.stdlib_index.worker"
KILLS = 0.25
"""The part of all strikes that kill; the others stop and continue."""


def main() -> int:
    """Run the example; return 0 if everything held."""
    parser = options_of(
        "Index the standard library with workers under attack.", limit=None, limited="index only so many modules"
    )
    parser.add_argument("--store", default="sqlite", help="sqlite, postgres (a server of its own), or an address")
    options = parser.parse_args()
    return play(partial(run, options), _told, as_json=options.json)


def run(options: argparse.Namespace, folder: Path, say: Say) -> Report:
    """Compute the table in this process, then with workers under attack, and compare."""
    modules = dict(list(find_modules().items())[: options.limit])
    with _stores(options.store, folder) as (store, results):
        app.use_store(store)
        if "processes" not in app.store.capabilities:
            raise BadSettings(f"several processes cannot share {app.store.name}: name another store")
        app.store.migrate()
        say(f"indexing {len(modules)} modules in this process alone, to compare with")
        report = Report(store=app.store.name, modules=len(modules), digest_expected=digest(_alone(modules)))
        say(f"and now with {options.workers} workers under attack, on {report.store}")
        attack(modules, report, store, results, options=options, log=folder / "workers.log", say=say)
        report.judge()
        app.close()
    return report


def attack(
    modules: dict[str, Path],
    report: Report,
    store: str,
    results: str,
    *,
    options: argparse.Namespace,
    log: Path,
    say: Say,
) -> None:
    """Let workers index the modules while they are stopped and killed, and note what came of it."""
    jobs = f"index-{secrets.token_hex(4)}"
    with open_results(results) as table:
        table.create()
        campaign = Campaign(modules, jobs, table, report)
        environment = {"TENURE_STORE": store, "RESULTS": results}
        with Fleet(options.workers, WORKER, jobs, environment=environment, log=log) as fleet:
            nobody_locked: Callable[[], bool] = lambda: store_answers(app) and results_answer(results)  # noqa: E731
            campaign.run(Nemesis(fleet, app, options.seed, kills=KILLS, nobody_locked=nobody_locked), say)
            report.workers = fleet.started
        campaign.look()
        report.digest, report.applied_once = digest(table.entries()), table.applied_once()
    if unfinished := campaign.unfinished():
        report.problems.append(f"{unfinished} jobs did not complete; the workers said: {log.read_text()[-3000:]}")


def _alone(modules: dict[str, Path]) -> list[Entry]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the compiler thinks of the standard library's string literals
        return [read_entry(module, path) for module, path in modules.items()]


@contextmanager
def _stores(named: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Give the addresses of the store and of the results; a server that is started for them ends with the block."""
    if named == "postgres":
        with Postgres.start() as server:
            yield server.create_database(), server.create_database()
    elif named == "sqlite":
        yield f"sqlite:///{folder}/store.db", f"sqlite:///{folder}/results.db"
    else:
        yield named, f"sqlite:///{folder}/results.db"


def _told(report: Report) -> str:
    refused = f"{report.refused_by_destination} by the destination, {report.refused_by_store} by the store"
    lines = [
        "",
        f"store                {report.store}",
        f"modules              {report.modules}, applied exactly once: {'yes' if report.applied_once else 'NO'}",
        f"workers              {report.workers} processes; {report.stops} stops, {report.kills} kills",
        f"takeovers            {report.takeovers}",
        f"late writes refused  {refused}",
        f"one process alone    sha256 {report.digest_expected}",
        f"workers under attack sha256 {report.digest}",
        f"seconds              {report.seconds}",
        "",
        *(f"FAILED: {problem}" for problem in report.problems),
    ]
    return "\n".join([*lines, *([] if report.problems else ["The tables are equal, byte for byte."])])


if __name__ == "__main__":
    sys.exit(main())
