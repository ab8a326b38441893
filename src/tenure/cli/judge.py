"""`tenure judge`: whether a recorded run kept the promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tenure.cli.call import Call, command
from tenure.cli.exits import Exit

if TYPE_CHECKING:
    from tenure.proof.judge import Judgement, Result

_TOLD = 5  # violations of one invariant that people are told one by one


@command("json", "traceback")
def judge(
    call: Call,
    *,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="The history of one run, or one file from each of its processes."),
    ],
) -> Exit:
    """Judge a recorded run: every invariant, how often it was checked, and what broke it, in words.

    Exit code 1 when anything was broken, or not broken where the run says that it must be.
    """
    from tenure.proof.history import read
    from tenure.proof.judge import judge as judge_history

    judgement = judge_history(read(files))
    call.screen.emit(document(judgement))
    for note in judgement.notes:
        call.screen.say(f"note: {note}")
    call.screen.table(("", "PROMISE", "CHECKED", "VERDICT"), map(line, judgement.results), empty="")
    call.screen.say("", *sentences(judgement), conclusion(judgement))
    return Exit.DONE if judgement.good else Exit.REFUSED


def document(judgement: Judgement) -> dict[str, Any]:
    """Write the judgement out for machines."""
    return {
        "good": judgement.good,
        "counts": judgement.counts,
        "invariants": judgement.results,
        "notes": judgement.notes,
    }


def line(result: Result) -> tuple[object, ...]:
    """Lay one invariant out as a row of the table."""
    told = str(result.verdict)
    if result.violations:
        told += f", {_times(len(result.violations))}"
    elif result.because:
        told += f": {result.because}"
    style = "dim" if not result.checked else "yellow" if result.good else "bold red"
    verdict = Text(told, style="green" if told == "kept" else style)
    return result.invariant, result.promise, f"{result.checked:,}", verdict


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def sentences(judgement: Judgement) -> list[str]:
    """Tell the violations, the first few of each invariant."""
    lines: list[str] = []
    for result in judgement.results:
        lines += [f"{result.invariant} {violation}" for violation in result.violations[:_TOLD]]
        more = len(result.violations) - _TOLD
        if more > 0:
            lines.append(f"{result.invariant} … and {more:,} more; --json tells all")
    return [*lines, ""] if lines else []


def conclusion(judgement: Judgement) -> str:
    """Say in one sentence what the run has shown."""
    met = ", ".join(f"{count:,} {what}" for what, count in judgement.counts.items() if count)
    verdict = "every promise that was asserted was kept" if judgement.good else "NOT every promise was kept"
    return f"{verdict}; the run met {met or 'nothing'}"
