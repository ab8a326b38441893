"""Open reports of `tenure prove` in a headless browser, from their files, and see that a person can read them.

python -m tests.browser              exit status 1 when something is missing, 2 without a browser
python -m tests.browser --keep DIR   keep the reports, their histories and a picture of each
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenure.proof.history import History, read
from tests.browser.chromium import BrowserError, Page, browser

SECONDS = 15


@dataclass(frozen=True, slots=True)
class Play:
    """One run of `tenure prove`: its name, its further options, its exit status, and the class of its verdict."""

    name: str
    options: tuple[str, ...]
    status: int
    verdict: str


PLAYS = (Play("fence", (), 0, "good"), Play("no-fence", ("--no-fence",), 1, "bad"))


def main() -> int:
    """Look at a report of each kind; return 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(description="Open reports of `tenure prove` in a headless browser.")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the reports, histories and pictures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenure-reports-") as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        try:
            findings = [f"{play.name}: {finding}" for play in PLAYS for finding in look(play, place)]
        except BrowserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    for finding in findings:
        print(f"WRONG: {finding}")
    return 1 if findings else 0


def look(play: Play, place: Path) -> list[str]:
    """Make the report of one run, open it from its file, and say what is wrong with it."""
    report, kept = place / f"{play.name}.html", place / f"{play.name}.jsonl"
    command = ["prove", f"--seconds={SECONDS}", "--managed=sqlite", f"--report={report}", f"--history={kept}"]
    ended = subprocess.run(
        [sys.executable, "-m", "tenure", *command, *play.options], capture_output=True, text=True, check=False
    )
    if ended.returncode != play.status:
        return [f"exit status {ended.returncode}, not {play.status}:\n{ended.stdout}{ended.stderr}"]
    history = read([kept])
    with browser() as page:
        page.open(report)
        findings = [*drawn(page, history), *chosen(page), *verdict(page, play), *alone(page, report)]
        page.picture(place / f"{play.name}.png")
        bars = count(page, ".run")
    print(f"{play.name}: {bars} runs drawn, {len(page.complaints)} complaints of the browser, {len(findings)} wrong")
    return findings


def count(page: Page, selector: str) -> int:
    """Count what can be seen in the picture."""
    found = f"[...document.querySelectorAll({json.dumps(f'.picture {selector}')})]"
    return int(page.value(f"{found}.filter(each => each.getBoundingClientRect().width > 0).length"))


def drawn(page: Page, history: History) -> Iterator[str]:
    """Compare the picture with the history: a lane for each worker, a bar for each run, a sign for each fault."""
    workers = {call.process for call in history.calls if call.process != "run"}
    if set(page.value("[...document.querySelectorAll('.picture .name')].map(each => each.textContent)")) != workers:
        yield f"the lanes are not those of {', '.join(sorted(workers))}"
    claimed = {
        (call.process, call.job, call.generation)
        for call in history.calls
        if call.process in workers and call.job is not None and (call.call, call.outcome) == ("claim", "ok")
    }
    told = {"run": len(claimed)}
    for what in ("pause", "kill"):
        told[what] = sum(fault.what == what and fault.whom in workers for fault in history.faults)
    for sign, number in told.items():
        if (seen := count(page, f".{sign}")) != number or not number:
            yield f"{seen} signs for {number} of the kind {sign}"
    titles = page.value("[...document.querySelectorAll('.picture .run title')].map(each => each.textContent)")
    for process, job, generation in sorted(claimed, key=str):
        begins = f"{process}: job {job}, generation {generation}, "
        if not any(title.startswith(begins) for title in titles):
            yield f"no bar says {begins!r} and when"


def chosen(page: Page) -> Iterator[str]:
    """Choose a run of a job that was disturbed, as a person would, and read its story."""
    job = page.value("Object.keys(told)[0]")
    runs = f'.run[data-job="{job}"]'
    page.click(f".picture {runs}")
    if count(page, f"{runs}.same") != count(page, runs) or not count(page, ".same"):
        yield f"not all runs of {job} stand out after one was chosen"
    if page.value("document.getElementById('story').textContent") != page.value(f"told[{json.dumps(job)}]"):
        yield f"the story is not that of {job}, which was chosen"


def verdict(page: Page, play: Play) -> Iterator[str]:
    """See that the verdict looks as it is."""
    looks = page.value("document.querySelector('.verdict').className")
    if looks != f"verdict {play.verdict}":
        yield f"the verdict, which is {play.verdict}, looks like {looks!r}"


def alone(page: Page, report: Path) -> Iterator[str]:
    """See that the page fetches nothing but itself, and that the browser has nothing to complain about."""
    yield from page.complaints
    own = {report.resolve().as_uri(), "data:,"}
    yield from (f"it fetches {url}" for url in page.fetched if url not in own)


if __name__ == "__main__":
    sys.exit(main())
