"""Whether this system lets a process mount a file system of its own, as the fault `disk` of `tenure prove` needs it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

MAKE_ONE = """
import sys
from pathlib import Path
from tenure.proof.prove.volume import Volume
volume = Volume(Path(sys.argv[1]))
"""


def in_a_room(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that has mounted `volume` at a folder."""
    command = [sys.executable, "-c", MAKE_ONE + script, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@cache
def no_room_of_its_own() -> bool:
    """Tell whether it does not."""
    with TemporaryDirectory() as folder:
        ran = in_a_room("", Path(folder))
    assert ran.returncode == 0 or "this system lets you mount none" in ran.stderr, ran.stderr
    return ran.returncode != 0
