"""The whole run as one HTML file that needs nothing else: the verdicts, and a picture of who did what when."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from tenure.proof.judge import Result, Verdict
from tenure.proof.prove.picture import Picture, swatch
from tenure.proof.prove.story import Stories

if TYPE_CHECKING:
    from tenure.proof.prove.outcome import Proof

_TOLD = 20  # violations of one invariant that are told one by one

_COUNTED = {"faults": "times disturbed"}

_LEGEND = {
    "run": "one run, with its generation",
    "wrote": "a write was accepted",
    "refused": "a late write was refused by the destination",
    "store": "the store refused a late worker",
    "late": "a late write was accepted",
    "pause": "the worker was stopped",
    "kill": "the worker was killed",
    "rival": "a rival took the job",
    "net": "network or store disturbed",
}


def page(proof: Proof) -> str:
    """Write the page."""
    judgement, meta = proof.judgement, proof.history.meta
    stories = Stories(proof.history)
    facts = {
        "store": meta.store,
        "durability": meta.durability,
        "destination": meta.destination,
        "workload": meta.workload,
        "faults": ", ".join(meta.faults) or "none",
        "seed": str(meta.seed),
        **{_COUNTED.get(what, what): f"{count:,}" for what, count in judgement.counts.items()},
    }
    told = {job: "\n".join(stories.tell(job)) for job in stories.disturbed()}
    return Template(_template()).substitute(
        title=f"tenure prove, seed {meta.seed}",
        conclusion=escape(proof.conclusion),
        summary=escape(proof.summary),
        facts="".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items()),
        legend="".join(f"<span>{swatch(kind)} {escape(text)}</span>" for kind, text in _LEGEND.items()),
        picture=Picture(proof.history, late=stories.late_writes(judgement)).draw(),
        stories=escape("\n\n".join("\n".join(story) for story in proof.stories)) or "Nothing was chosen yet.",
        verdicts="".join(map(_verdict, judgement.results)),
        violations="".join(map(_violations, judgement.results)),
        told=json.dumps(told).replace("</", "<\\/").replace("<!--", "<\\!--"),
        **{"class": "good" if judgement.good else "bad"},
    )


def _template() -> str:
    return (files("tenure.proof.prove") / "report.html").read_text(encoding="utf-8")


def _verdict(result: Result) -> str:
    style = "good" if result.verdict is Verdict.KEPT else "" if result.good else "bad"
    told = str(result.verdict) + (f", {len(result.violations):,} times" if result.violations else "")
    told += f": {result.because}" if result.because else ""
    return (
        f'<tr><td>{result.invariant}</td><td>{escape(result.promise)}</td><td class="number">{result.checked:,}</td>'
        f'<td class="{style or "soft"}">{escape(told)}</td></tr>'
    )


def _violations(result: Result) -> str:
    if not result.violations:
        return ""
    lines = "".join(f"<li>{escape(str(violation))}</li>" for violation in result.violations[:_TOLD])
    more = len(result.violations) - _TOLD
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    return f"<h2>{result.invariant}: {escape(str(result.verdict))}</h2><ul>{lines}{rest}</ul>"
