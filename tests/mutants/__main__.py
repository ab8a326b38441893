"""Run every mutant of the table, one a core, and print which test catches it; exit status 1 when one survives.

python -m tests.mutants                 all of them
python -m tests.mutants floor sqlite    those whose name contains one of the words
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parent.parent.parent
LIMIT = 300.0  # seconds for the tests of one mutant
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one mutant: the test that failed, or None for a survivor."""

    test: str | None
    seconds: float


def main(words: list[str]) -> int:
    """Run the mutants whose name contains one of `words`, or all."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    survivors = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (mutant, caught) in enumerate(zip(chosen, pool.map(run, chosen), strict=True), 1):
            verdict = f"caught by {caught.test}" if caught.test else "SURVIVED"
            print(f"{number:3}/{len(chosen)} {mutant.name:48} {caught.seconds:5.1f} s  {verdict}", flush=True)
            if caught.test is None:
                survivors.append(mutant)
    print(f"\n{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    for mutant in survivors:
        print(f"survived: {mutant.name}: {mutant.guard}")
    return 1 if survivors or not chosen else 0


def run(mutant: Mutant) -> Caught:
    """Apply one mutant to a copy of the package and run the tests that should notice."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tenure-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        mutate(copy / "tenure" / mutant.file, mutant)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            *mutant.tests,
        ]
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Caught("the time limit", time.monotonic() - began)
    failed = _FAILED.search(done.stdout)
    if done.returncode not in {0, 1}:
        raise SystemExit(
            f"{mutant.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return Caught(failed.group(1) if failed else None, time.monotonic() - began)


def mutate(file: Path, mutant: Mutant) -> None:
    """Replace the guard; a text that is not there any more, or stands there twice, is a mistake in the table."""
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
