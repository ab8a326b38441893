"""Index the standard library with workers that are stopped, continued and killed all the time, and compare the result.

    python examples/stdlib_index/run.py --store sqlite
    python examples/stdlib_index/run.py --store postgres

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.fleet import Fleet, Nemesis, store_answers
from examples.stdlib_index.campaign import Campaign, Report
from examples.stdlib_index.index import Entry, find_modules, read_entry
from examples.stdlib_index.results import digest, open_results, results_answer
from examples.stdlib_index.tasks import app
from tenure import BadSettings, TenureError
from tenure.testing.servers import Postgres

Say = Callable[[str], None]

WORKER = "examples.stdlib_index.worker"
KILLS = 0.25
"""The part of all strikes that kill; the others stop and continue."""

_INTERRUPTED = 130


def main() -> int:
    """Run the example; return 0 if everything held."""
    parser = argparse.ArgumentParser(description="Index the standard library with workers under attack.")
    parser.add_argument("--store", default="sqlite", help="sqlite, postgres (a server of its own), or an address")
    parser.add_argument("--workers", type=_positive, default=3, help="worker processes at a time")
    parser.add_argument("--limit", type=_positive, help="index only so many modules")
    parser.add_argument("--seed", type=int, default=1, help="what the nemesis draws its strikes from")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    began = time.monotonic()
    say: Say = _mute if options.json else lambda text: print(f"{time.monotonic() - began:5.1f} s  {text}", flush=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tenure-example-") as folder,
            _stores(options.store, folder) as (
                store,
                results,
            ),
        ):
            report = run(Path(folder), store, results, options, say)
    except (TenureError, TimeoutError, ChildProcessError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; every process has been ended", file=sys.stderr)
        return _INTERRUPTED
    report.seconds = round(time.monotonic() - began, 1)
    print(json.dumps({"ok": not report.problems, **asdict(report)}) if options.json else _told(report))
    return 1 if report.problems else 0


def run(folder: Path, store: str, results: str, options: argparse.Namespace, say: Say) -> Report:
    """Compute the table in this process, then with workers under attack, and compare."""
    modules = dict(list(find_modules().items())[: options.limit])
    app.use_store(store)
    if "processes" not in app.store.capabilities:
        raise BadSettings(f"several processes cannot share {app.store.name}: name another store")
    app.store.migrate()
    say(f"indexing {len(modules)} modules in this process alone, to compare with")
    report = Report(store=app.store.name, modules=len(modules), digest_expected=digest(_alone(modules)))
    jobs, log = f"index-{secrets.token_hex(4)}", folder / "workers.log"
    say(f"and now with {options.workers} workers under attack, on {report.store}")
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
    report.judge()
    app.close()
    return report


def _alone(modules: dict[str, Path]) -> list[Entry]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the compiler thinks of the standard library's string literals
        return [read_entry(module, path) for module, path in modules.items()]


@contextmanager
def _stores(named: str, folder: str) -> Iterator[tuple[str, str]]:
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


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 upwards")
    return int(text)


def _mute(_text: str) -> None:
    """Say nothing."""


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
