"""python -m tenure.testing.simulation: play histories and say what they reached and what broke.

Exit status 1 when a history is broken, or when a run of the default size reaches not all marks; 2 for a mistake in the
call.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tenure.errors import Misuse
from tenure.proof.history import write
from tenure.testing.simulation.exhaustive import DEPTH, DEVIATIONS, PROGRAMS, replay, search
from tenure.testing.simulation.marks import MARKS
from tenure.testing.simulation.parallel import processors, run_in
from tenure.testing.simulation.runner import ENOUGH, CollectedBetween, Report, run
from tenure.testing.simulation.theatre import STORES, Played, Theatre

_SECONDS = 60.0
_TELL_EVERY = 10.0
_MISTAKE = 2


def main(words: list[str]) -> int:
    """Do what a command line asks for."""
    parser = _parser()
    asked = parser.parse_args(words)
    mistake = _mistake(asked)
    if mistake is not None:
        parser.error(mistake)
    alone = asked.trace or asked.write is not None
    if not alone and not asked.exhaustive:
        return _run(asked)
    theatre = Theatre(asked.store)
    with theatre.open():
        if alone:
            return _replay(theatre, asked)
        with CollectedBetween():
            return _search(theatre, asked)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tenure.testing.simulation", description=(__doc__ or "").strip())
    parser.add_argument("--store", choices=STORES, default="memory", help="the store (default: memory)")
    parser.add_argument(
        "--seconds", type=_seconds, help=f"how long to play (default: {_SECONDS:g}; exhaustive: to the end)"
    )
    parser.add_argument("--first", action="store_true", help="stop at the first broken history")
    parser.add_argument("--histories", type=_some, help="how many histories to play, however long that takes")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first history (default: 1)")
    parser.add_argument(
        "--processes",
        type=_some,
        help="how many histories to play at a time (default: as many as there are processors)",
    )
    parser.add_argument("--exhaustive", action="store_true", help="two workers, one job, every history up to a depth")
    parser.add_argument(
        "--program", choices=list(PROGRAMS), help="exhaustive: what the job does (default: all in turn)"
    )
    parser.add_argument("--depth", type=_count, default=DEPTH, help=f"exhaustive: how many choices (default: {DEPTH})")
    parser.add_argument(
        "--deviations", type=_count, default=DEVIATIONS, help=f"exhaustive: choices that are not plain ({DEVIATIONS})"
    )
    parser.add_argument(
        "--choices", type=_choices, help="exhaustive: the choices of one history, to be played alone, such as 0,0,4"
    )
    parser.add_argument("--trace", action="store_true", help="play one history alone, and tell it")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write that history, for `tenure judge FILE`")
    return parser


def _seconds(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if 0.0 < seconds < math.inf:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, above 0 and finite")


def _count(text: str, least: int = 0) -> int:
    with suppress(ValueError):
        count = int(text)
        if count >= least:
            return count
    raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} upwards")


def _some(text: str) -> int:
    return _count(text, 1)


def _choices(text: str) -> tuple[int, ...]:
    return tuple(_count(choice) for choice in text.split(",") if choice)


def _mistake(asked: argparse.Namespace) -> str | None:
    """Tell what is asked for and would not be done."""
    alone = asked.trace or asked.write is not None
    if alone and (asked.seconds or asked.histories or asked.processes or asked.first):
        return "--trace and --write play one history alone: leave --seconds, --histories, --processes and --first out"
    if asked.program is not None and not asked.exhaustive:
        return "--program is what the job does in a search: add --exhaustive"
    if asked.choices is not None and not (alone and asked.exhaustive):
        return "--choices are those of one history of a search: add --exhaustive, and --trace or --write"
    if asked.exhaustive and (asked.histories or asked.processes):
        return "--histories ends no search, and --processes share none: leave them out, or --exhaustive"
    if asked.write is not None and (asked.write.is_dir() or not asked.write.absolute().parent.is_dir()):
        return f"cannot write {asked.write}: it is a folder, or its folder is not there"
    return None


def _replay(theatre: Theatre, asked: argparse.Namespace) -> int:
    if asked.exhaustive:
        try:
            played = replay(theatre, asked.program or next(iter(PROGRAMS)), asked.choices or (), trace=True)
        except Misuse as error:
            return _refused(f"--choices: {error}")
    else:
        played = theatre.play(asked.seed, trace=True)
    if asked.trace:
        for moment, who, what in played.trace or ():
            say(f"{moment:9.4f}  {who:12}  {what}")
    if asked.write is not None:
        try:
            write(played.history, asked.write)
        except OSError as error:
            return _refused(f"cannot write {asked.write}: {error.strerror}")
    say(f"history {played.seed}, digest {played.digest()[:16]}")
    for violation in played.violations:
        say(f"  BROKEN {violation}")
    return 1 if played.violations else 0


def _refused(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return _MISTAKE


def _run(asked: argparse.Namespace) -> int:
    processes = asked.processes or processors()
    say(
        f"simulating on the {asked.store} store, seeds from {asked.seed} on, in"
        f" {'1 process' if processes == 1 else f'{processes} processes'}"
    )
    report = (_run_here if processes == 1 else partial(run_in, processes))(
        asked.store,
        asked.seed,
        histories=asked.histories,
        seconds=asked.seconds if asked.histories is not None else asked.seconds or _SECONDS,
        most_findings=1 if asked.first else 5,
        tell=_now_and_then(_progress),
    )
    _progress(report)
    _tell_marks(report)
    return _verdict(report)


def _run_here(store: str, seed: int, **limits: Any) -> Report:
    theatre = Theatre(store)
    with theatre.open(), CollectedBetween():
        return run(theatre, seed, **limits)


def _search(theatre: Theatre, asked: argparse.Namespace) -> int:
    status = 0
    for program in [asked.program] if asked.program else PROGRAMS:
        say(
            f"searching on the {asked.store} store: two workers, one job ({program}), every history with at most"
            f" {asked.deviations} deviations among its first {asked.depth} choices"
        )
        report = search(
            theatre,
            program,
            depth=asked.depth,
            deviations=asked.deviations,
            seconds=asked.seconds,
            most_findings=1 if asked.first else 5,
            tell=_now_and_then(_progress),
        )
        _progress(report)
        if not report.whole:
            say("NOT WHOLE: it ended before everything was played")
        status = max(status, _verdict(report))
    return status


def _now_and_then(tell: Callable[[Report], None]) -> Callable[[Report], None]:
    told = 0.0

    def heard(report: Report) -> None:
        nonlocal told
        if report.seconds >= told + _TELL_EVERY:
            told = report.seconds
            tell(report)

    return heard


def _progress(report: Report) -> None:
    reached = len(MARKS) - len(report.missing)
    rate = 60.0 * report.histories / max(report.seconds, 1e-9)
    say(
        f"{report.seconds:6.0f} s  {report.histories:9,} histories  {rate:7,.0f} a minute"
        f" ({report.a_minute:,.0f} of processor time)  {reached} of {len(MARKS)} marks  {len(report.broken)} broken"
    )


def _tell_marks(report: Report) -> None:
    say("\nreached:")
    for mark, meaning in MARKS.items():
        say(f"  {report.reached[mark]:9,}  {mark}: {meaning}")
    for mark in report.missing:
        enough = "" if report.histories >= ENOUGH else f" (only {report.histories} histories, so this does not count)"
        say(f"NOT REACHED: {mark}{enough}")


def _verdict(report: Report) -> int:
    for played, choices in report.broken:
        say(f"\nBROKEN: history {played.seed if report.program is None else report.histories}")
        for violation in played.violations:
            say(f"  {violation}")
        say(f"  replay: python -m tenure.testing.simulation {_which(report, played, choices)} --trace")
    say("nothing broke" if not report.broken else f"{len(report.broken)} histories broke")
    return 0 if report.good else 1


def _which(report: Report, played: Played, choices: tuple[int, ...]) -> str:
    store = "" if report.store == "memory" else f" --store {report.store}"
    if report.program is None:
        return f"--seed {played.seed}{store}"
    return f"--exhaustive --program {report.program} --choices {','.join(map(str, choices)) or '0'}{store}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
