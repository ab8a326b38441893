"""The example indexes a part of the standard library under attack; only its counts depend on chance."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from examples.stdlib_index.campaign import PORTION, REFUSALS, TAKEOVERS, Campaign, Report
from examples.stdlib_index.index import Entry, find_modules, read_entry
from examples.stdlib_index.results import dump, open_results, results_answer
from examples.stdlib_index.tasks import app

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "stdlib_index" / "run.py"


def test_workers_under_attack_write_the_same_table_as_one_process_alone() -> None:
    command = [sys.executable, str(SCRIPT), "--store", "sqlite", "--limit", "40", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["problems"] == []
    assert (done.returncode, report["ok"], report["modules"]) == (0, True, 40)
    assert report["digest"] == report["digest_expected"]
    assert report["applied_once"]
    assert report["takeovers"] >= TAKEOVERS
    assert report["refused_by_destination"] + report["refused_by_store"] >= REFUSALS


def test_no_more_is_handed_out_while_the_last_portion_waits(tmp_path: Path) -> None:
    """Workers that take long to start, on a busy machine, would else find all of it at once."""
    app.use_store(f"sqlite:///{tmp_path}/store.db")
    app.store.migrate()
    modules = {f"module {number}": tmp_path for number in range(3 * PORTION)}
    nobody: Any = None
    campaign = Campaign(modules, "q", nobody, Report("sqlite", len(modules), digest_expected="a"))
    for portions in (1, 2):
        campaign._hand_out()
        campaign._hand_out()
        assert len(campaign._records()) == portions * PORTION
        app.client.cancel([record.id for record in campaign._records()])
    app.close()


def test_a_report_says_what_does_not_hold() -> None:
    report = Report("sqlite", 1, digest_expected="a", digest="b", applied_once=False, takeovers=1)
    report.judge()
    assert report.problems == [
        "the table differs from that of a single process",
        "not every module was applied exactly once",
        "too few takeovers (1) or refused writes (0) were seen",
    ]


def test_an_entry_counts_what_is_in_a_module(tmp_path: Path) -> None:
    path = tmp_path / "shop.py"
    path.write_text(
        '"""Sells.\n\nMore."""\nimport os.path\nfrom json import loads\nclass A:\n    def f(self): "does"\n'
    )
    assert read_entry("shop", path) == Entry("shop", 7, 1, 1, 2, "json os", "Sells.")


def test_every_module_is_found_and_no_test_of_one() -> None:
    found = find_modules()
    assert {"json", "json.decoder", "turtle", "xml.etree.ElementTree"} <= set(found)
    assert not [name for name in found if name.startswith("test.") or ".tests." in name]
    assert list(found) == sorted(found)


def test_the_dump_has_one_order_and_a_held_lock_is_seen(tmp_path: Path) -> None:
    first, second = Entry("a", 1, 0, 0, 0, "", ""), Entry("b", 2, 0, 0, 0, "", "")
    assert dump([second, first]) == dump([first, second])
    address = f"sqlite:///{tmp_path}/results.db"
    assert results_answer(address)
    with open_results(address) as results, results.transaction():
        assert not results_answer(address)
