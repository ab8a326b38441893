"""`Spawned`: a child process as its worker sees it: started, talked to, killed with all that it started, and reaped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tenure.worker.channel import Channel, FromChild, FromWorker, from_child
from tenure.worker.child import IGNORED
from tenure.worker.shared import SharedEnd, shared_memory

# The paths come first: what is imported may live in any of them, Tenure itself too.
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from tenure.worker.child import main; main()"
_LEAVE = 1.0  # seconds that an idle child has to end in an orderly way


class Spawned:
    """One child process, the leader of a process group of its own; made by `Spawner`."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        memory = shared_memory()
        self.end = SharedEnd(memory)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", _PROGRAM, *map(str, (theirs.fileno(), memory, os.getpid())), _paths()],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), memory),
                process_group=0,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(memory)
        self.served = False  # whether a run has ended in it
        self._socket = ours
        self._channel = Channel(ours.fileno(), from_child)
        self._lock = threading.Lock()
        self._killed = False

    def send(self, message: FromWorker) -> None:
        """Send a message; to a child that is gone it goes nowhere, and `receive` tells."""
        try:
            self._channel.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> FromChild | None:
        """Wait for a message; None when the process is gone."""
        return self._channel.receive()

    def idle(self) -> bool:
        """Whether the process, of which no word is expected, can be given work."""
        return not self._killed and not self._channel.pending()

    def kill(self) -> None:
        """Kill the process and what it started, at once; any thread may."""
        with self._lock:
            # Once only: after it is reaped, which follows, its number may be another's.
            if not self._killed:
                self._killed = True
                with suppress(PermissionError):  # what macOS answers when nobody in the group is alive
                    os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self) -> int:
        """Await the end of a process whose channel has ended, and return its exit status, negative for a signal."""
        self.kill()
        status = self._process.wait()
        self._socket.close()
        return status

    def retire(self) -> None:
        """Ask an idle process to end in an orderly way, and see to it that it does."""
        if self.idle():
            self._socket.shutdown(socket.SHUT_WR)
            self._channel.pending(_LEAVE)
        self.reap()


class Spawner:
    """Starts processes from one thread, which lives until `close`.

    The kernel kills a child when the *thread* that started it ends (prctl(2), PR_SET_PDEATHSIG), so it must be one that
    lasts. In it those signals are blocked that a child must not get before it can ignore them: it inherits that.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(
            1, "tenure-spawner", initializer=signal.pthread_sigmask, initargs=(signal.SIG_BLOCK, IGNORED)
        )

    def spawn(self) -> Spawned:
        """Start a process; raises OSError when the host has no room for it."""
        return self._thread.submit(Spawned).result()

    def close(self) -> None:
        """End the thread, and with it every process that is left."""
        self._thread.shutdown()


def _paths() -> str:
    return json.dumps(sys.path)
