"""Writers in processes of their own, which stop or kill themselves at a step: python -m tests.fences.files_children."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tenure import Token
from tenure.errors import OutOfSequence, StaleToken, TenureError
from tenure.fences.files import FileFence

SCOPE = "page"
OLD, NEW = "old " * 5000, "new " * 5000


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def steps(act: Callable[[FileFence], None], folder: Path) -> list[str]:
    """Name the steps of an act, by doing it."""
    names: list[str] = []
    act(FileFence(folder, step=names.append))
    return names


def signal_at(place: int, number: int) -> Callable[[str], None]:
    """Make a step that sends this process a signal at its `place`-th call."""
    calls = iter(range(10**6))
    return lambda _: os.kill(os.getpid(), number) if next(calls) == place else None


def in_a_fork(act: Callable[[], None]) -> int:
    """Do something in a fork of this process, which has one thread, and return how that ended."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def old_page(folder: Path) -> FileFence:
    folder.mkdir()
    fence = FileFence(folder)
    fence.write("page", OLD.encode(), Token("job-1", 6), scope=SCOPE)
    fence.raise_to(Token("job-1", 7), scope=SCOPE)
    return fence


def write_new(fence: FileFence) -> None:
    fence.write("page", NEW.encode(), Token("job-1", 7), scope=SCOPE, sequence=3)


def raise_new(fence: FileFence) -> None:
    fence.raise_to(Token("job-1", 8), scope=SCOPE)


def kill_at_every_step(base: Path) -> None:
    """Die by SIGKILL at each step of a write and of an announcement, each time in a folder of its own."""
    for name, act in (("write", write_new), ("raise", raise_new)):
        old_page(base / name)
        for place, step in enumerate(steps(act, base / name)):
            folder = base / f"{name} {place} {step}"
            old_page(folder)

            def die(folder: Path = folder, place: int = place, act: Callable[[FileFence], None] = act) -> None:
                act(FileFence(folder, step=signal_at(place, signal.SIGKILL)))

            assert in_a_fork(die) == signal.SIGKILL


def write_and_stop(folder: Path, generation: int, step: str) -> None:
    """Write one page, stopping at a step, and say how it went."""
    fence = FileFence(folder, step=lambda name: os.kill(os.getpid(), signal.SIGSTOP) if name == step else None)
    try:
        fence.write("page", NEW.encode(), Token("job-1", generation), scope=SCOPE)
    except TenureError as error:
        tell(type(error).__name__)
    else:
        tell("written")


def write_among_others(folder: Path, number: int) -> None:
    """Write rising generations beside others who do the same, and print what was accepted."""
    chance, fence = random.Random(number), FileFence(folder)
    for round_ in range(12):
        token = Token("job-1", 40 * round_ + chance.randint(1, 40))
        value = f"{token.generation:06} by {number}\n" * 2000
        try:
            fence.write("page", value.encode(), token, scope=SCOPE)
        except (StaleToken, OutOfSequence):
            continue
        tell(f"{token.generation} {number}")


def fork_while_locked(folder: Path) -> None:
    """Fork while holding the lock, and see that the copy does not keep the next writer out."""
    keep, let_go = os.pipe()

    def fork(name: str) -> None:
        if name == "locked" and os.fork() == 0:
            os.close(let_go)
            os.read(keep, 1)
            os._exit(0)

    FileFence(folder, step=fork).raise_to(Token("job-1", 7), scope=SCOPE)
    FileFence(folder, patience=0.2).raise_to(Token("job-1", 8), scope=SCOPE)
    os.close(let_go)
    tell("passed")


def main(act: str, folder: str, *rest: str) -> None:
    if act == "kill":
        kill_at_every_step(Path(folder))
    elif act == "stop":
        write_and_stop(Path(folder), int(rest[0]), rest[1])
    elif act == "crowd":
        write_among_others(Path(folder), int(rest[0]))
    else:
        fork_while_locked(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
