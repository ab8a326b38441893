"""What the processes of an example have in common: they end with whoever started them, and tell the nemesis."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def path_for_children() -> str:
    """Tell where modules are found, for $PYTHONPATH: here, and where this process finds them."""
    here = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def end_with_starter() -> None:
    """End by SIGTERM, and so after the running jobs, when the process that started this one is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # reaches a stopped process too
    threading.Thread(target=_end_with_input, daemon=True).start()


def tell_nemesis(job: str) -> None:
    """Tell the one who stops and kills workers that now would be the worst moment."""
    os.write(sys.stdout.fileno(), f"{job}\n".encode())


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
