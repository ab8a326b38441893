"""`tenure prove`: the acceptance on one's own store and destination, with real processes and real faults."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from tenure.cli.call import Call, command
from tenure.cli.exits import Exit
from tenure.cli.judge import conclusion, document, line, sentences
from tenure.errors import Misuse

if TYPE_CHECKING:
    from tenure.proof.prove.outcome import Proof
    from tenure.proof.prove.plan import Plan


Seconds = Annotated[float, typer.Option("--seconds", metavar="SECONDS", help="How long the faults go on.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="What chance is drawn from.")]
Managed = Annotated[
    Literal["sqlite", "postgres"] | None,
    typer.Option(
        "--managed",
        metavar="sqlite|postgres",
        help="Start a store for the run and remove it afterwards; sqlite where no store is named.",
    ),
]
Destination = Annotated[
    str | None,
    typer.Option(
        "--destination",
        metavar="MODULE:FACTORY",
        help="Your own destination: what the factory returns is written to, one for each thread of a worker.",
    ),
]
Fence = Annotated[bool, typer.Option("--fence/--no-fence", help="With or without the comparison at the destination.")]
Workload = Annotated[
    Literal["update", "mutex"],
    typer.Option(
        "--workload",
        metavar="update|mutex",
        help="Read, compute and write back under a token; or use the bare lease as a lock, which has to fail.",
    ),
]
Faults = Annotated[
    str | None,
    typer.Option(
        "--faults",
        metavar="NAME,…",
        help="What is done to them: pause, kill, rival, cut, delay, duplicate, reorder (these by default), clock; and"
        " to a store that is managed here: crash, disk, jump.",
    ),
]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="Worker processes.")]
LeaseSeconds = Annotated[float, typer.Option("--lease", metavar="SECONDS", help="The lease of each job in seconds.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write the run as one HTML file, with a picture.")
]
Kept = Annotated[Path | None, typer.Option("--history", metavar="FILE", help="Keep the history, for `tenure judge`.")]


@command("store", "json", "traceback")
def prove(
    call: Call,
    *,
    seconds: Seconds = 60.0,
    seed: Seed = 1,
    managed: Managed = None,
    destination: Destination = None,
    fence: Fence = True,
    workload: Workload = "update",
    faults: Faults = None,
    workers: Workers = 4,
    lease: LeaseSeconds = 1.0,
    report: Report = None,
    history: Kept = None,
) -> Exit:
    """Prove the promise on this store: pause, kill and rob real workers, and judge what they were answered.

    Workers update a destination under their tokens while they are stopped beyond their leases, killed and cut off. Then
    the history of every call is judged. Exit code 1 when a promise was broken: with --no-fence that is the point.

    The jobs of a run stay in a queue of its own in the store that was named: use one that you can spare.
    """
    from tenure.proof.prove.plan import USUAL, Plan, read_faults

    plan = Plan(
        seconds=seconds,
        seed=seed,
        workers=workers,
        lease=lease,
        faults=USUAL if faults is None else read_faults(faults),
        workload=workload,
        fence=fence,
        store=call.address,
        managed=managed,
        destination=destination,
    )
    _check_files(report, history)
    with _ended_by_signals() as go_on, tempfile.TemporaryDirectory(prefix="tenure-prove-") as folder:
        proof = _run(call, plan, Path(folder), go_on)
        go_on()
        _keep(proof, Path(folder), report, history)
    call.screen.emit(_told(proof))
    _say(call, proof, {"picture": report, "history": history})
    return Exit.DONE if proof.judgement.good else Exit.REFUSED


def _check_files(report: Path | None, history: Path | None) -> None:
    """Refuse files that cannot be written, before a run is played for them."""
    for path in (report, history):
        if path is not None and not path.absolute().parent.is_dir():
            raise Misuse(f"cannot write {path}: No such file or directory")
        if path is not None and path.is_dir():
            raise Misuse(f"cannot write {path}: Is a directory")
    if report is not None and history is not None and report.resolve() == history.resolve():
        raise Misuse(f"--report and --history both name {report}: one would be written over the other")


@contextmanager
def _ended_by_signals() -> Iterator[Callable[[], None]]:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C does, so that nothing stays behind.

    Yields what raises KeyboardInterrupt once that was asked: what a signal raises itself is lost inside a finalizer.
    What comes while the rest is cleared away does nothing, but for Ctrl-C: who insists is there to see what stays.
    """
    if threading.current_thread() is not threading.main_thread():  # where Python cannot handle signals
        yield lambda: None
        return
    asked = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    handled = [number for number, handler in before.items() if handler not in {signal.SIG_IGN, None}]

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        for number in handled:
            signal.signal(number, before[number] if number == signal.SIGINT else _ignore)
        asked.set()
        raise KeyboardInterrupt

    def go_on() -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield go_on
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Go on clearing away: a second signal would leave the rest behind."""


def _run(call: Call, plan: Plan, folder: Path, go_on: Callable[[], None]) -> Proof:
    from tenure.proof.prove.apart import prove as run

    passed = 0
    with call.screen.progress("proving", total=int(plan.seconds)) as advance:

        def progress(seconds: float) -> None:
            nonlocal passed
            go_on()
            advance(int(seconds) - passed)
            passed = int(seconds)

        return run(plan, folder, progress=progress)


def _keep(proof: Proof, folder: Path, report: Path | None, history: Path | None) -> None:
    if history is not None:
        _write(history, (folder / "history.jsonl").read_bytes())
    if report is not None:
        from tenure.proof.prove.report import page

        _write(report, page(proof).encode())


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise Misuse(f"cannot write {path}: {error.strerror}") from error


def _told(proof: Proof) -> dict[str, Any]:
    return {
        **document(proof.judgement),
        "seed": proof.plan.seed,
        "store": proof.history.meta.store,
        "destination": proof.history.meta.destination,
        "workload": proof.history.meta.workload,
        "faults": proof.plan.faults,
        "seconds": round(proof.seconds, 1),
        "jobs": proof.jobs,
        "refused_writes": proof.refused_writes,
        "refused_by_store": proof.refused_ends,
        "stories": proof.stories,
        "conclusion": proof.conclusion,
    }


def _say(call: Call, proof: Proof, files: dict[str, Path | None]) -> None:
    screen, judgement = call.screen, proof.judgement
    for note in judgement.notes:
        screen.say(f"note: {note}")
    screen.table(("", "PROMISE", "CHECKED", "VERDICT"), map(line, judgement.results), empty="")
    screen.say("", *sentences(judgement))
    for story in proof.stories:
        screen.say(*story, "")
    screen.say(proof.summary, conclusion(judgement), proof.conclusion)
    for what, path in files.items():
        if path is not None:
            screen.say(f"the {what} of the run is in {path}")
