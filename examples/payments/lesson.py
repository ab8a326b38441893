"""The lessons of the tutorial: one invoice, one trouble, one way to have it paid, and what is in the books afterwards.

    python examples/payments/lesson.py kill plain
    python examples/payments/lesson.py stop fenced

Nothing is left to chance here: each worker waits in the moment that matters until the lesson has struck.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.child import path_for_children
from examples.fleet import store_answers
from examples.payments.network import ONCE, TWICE, Courier, Fate
from examples.payments.tasks import app, pay_fenced, pay_keyed, pay_plain
from tenure import Task
from tenure.demo.children import PATIENCE, Cast, Child, Stalled

INVOICE, CENTS = 7, 1200
JOB = f"invoice-{INVOICE}"
LEASE = 3.0
"""Seconds; long enough that no worker loses its lease because this machine is busy."""

TASKS: dict[str, Task[..., ..., Any]] = {"plain": pay_plain, "keyed": pay_keyed, "fenced": pay_fenced}
_INTERRUPTED = 130


@dataclass(slots=True)
class Lesson:
    """The stage of a lesson: where the workers are, the provider's address, what becomes of the next payments."""

    cast: Cast
    provider: str
    fates: list[Fate]

    def kill(self) -> None:
        """Kill a worker after it has charged the card, before it can say so; another takes the job over."""
        a = self._worker("A", "answered")
        self._told(a, "leaving")
        self._told(a, "answered")
        self._kill(a)
        self._finish(self._worker("B"))

    def stop(self) -> None:
        """Stop a worker that is about to charge the card; the customer pays at the bank; another takes the job over."""
        a = self._worker("A", "leaving")
        self._told(a, "leaving")
        self._stop(a)
        httpx.post(f"{self.provider}/invoices/{INVOICE}/transfers?cents={CENTS}").raise_for_status()
        say("meanwhile the customer pays at the bank")
        self._finish(self._worker("B"))
        self._go_on(a)

    def duplicate(self) -> None:
        """Deliver a request twice."""
        self._repeat()
        a = self._worker("A")
        self._told(a, "leaving")
        a.expect("completed")
        say("A completes the job")

    def all(self) -> None:
        """Do everything to one job: its request is duplicated, one worker is killed, one is stopped."""
        self._repeat()
        a = self._worker("A", "answered")
        self._told(a, "leaving")
        self._told(a, "answered")
        self._kill(a)
        b = self._worker("B", "leaving")
        self._told(b, "leaving")
        self._stop(b)
        self._finish(self._worker("C"))
        self._go_on(b)

    def _repeat(self) -> None:
        self.fates.append(TWICE)
        say("the network is going to deliver the first payment twice")

    def _worker(self, name: str, moment: str = "") -> Child:
        return self.cast.start(name, "examples.payments.pupil", *filter(None, [moment]))

    def _told(self, worker: Child, event: str) -> None:
        say(_SENTENCES[event].format(told=worker.expect(event)))

    def _kill(self, worker: Child) -> None:
        worker.kill()
        say(f"{worker.name} is killed (SIGKILL)")

    def _stop(self, worker: Child) -> None:
        """Stop a worker outside any transaction: in SQLite it would keep its lock, and everybody waiting."""
        deadline = time.monotonic() + PATIENCE
        worker.stop()
        while not store_answers(app):
            if time.monotonic() > deadline:
                raise Stalled(f"{worker.name} held a lock whenever it was stopped")
            worker.go_on()
            store_answers(app)  # waits for it to finish its transaction
            worker.stop()
        say(f"{worker.name} is stopped (SIGSTOP) for longer than its lease")

    def _go_on(self, worker: Child) -> None:
        worker.go_on()
        worker.say("go")
        say(f"{worker.name} is continued (SIGCONT) and sends its request")
        self._told(worker, "answered")

    def _finish(self, worker: Child) -> None:
        told = worker.expect("completed")
        result = app.client.get(JOB).result
        say(f"{told.who} completes the job under generation {told.generation}, with the result {result}")


_SENTENCES = {
    "leaving": "{told.who} runs the job under generation {told.generation} and is about to charge the card",
    "answered": "{told.who} is answered: {told.text}",
}


def main() -> int:
    """Give one lesson."""
    parser = argparse.ArgumentParser(description="One invoice, one trouble, one way to have it paid.")
    parser.add_argument("trouble", choices=["kill", "stop", "duplicate", "all"])
    parser.add_argument("way", choices=list(TASKS))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="tenure-lesson-") as folder:
            give(Path(folder), options.trouble, TASKS[options.way])
    except Stalled as stalled:
        print(f"failed: {stalled}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; every process has been ended", file=sys.stderr)
        return _INTERRUPTED
    return 0


def give(folder: Path, trouble: str, task: Task[..., ..., Any]) -> None:
    """Set the stage, let the trouble happen, and look into the books."""
    store = f"sqlite:///{folder}/store.db"
    app.use_store(store)
    app.store.migrate()
    task.options(id=JOB, lease=LEASE).enqueue(invoice=INVOICE, cents=CENTS)
    path = path_for_children()
    fates: list[Fate] = []
    with Cast(folder, {"PYTHONPATH": path, "BOOKS": f"{folder}/books.db"}) as behind:
        port = behind.start("provider", "examples.payments.provider").expect("listening").port
        with Courier(port, lambda request: fates.pop() if fates and request[:4] == b"POST" else ONCE) as courier:
            workers = {"PYTHONPATH": path, "TENURE_STORE": store, "PROVIDER": f"http://127.0.0.1:{courier.port}"}
            with Cast(folder, workers) as cast:
                getattr(Lesson(cast, f"http://127.0.0.1:{port}", fates), trouble)()
            courier.drain()
        look(httpx.get(f"http://127.0.0.1:{port}/audit").raise_for_status().json())
    app.close()


def look(books: dict[str, Any]) -> None:
    """Tell what the provider's books say."""
    paid = [f"{cents} cents by {means}" for _, means, cents in books["payments"]]
    counts = ", ".join(f"{count} {answer}" for answer, count in sorted(books["answers"].items()))
    say(f"in the books: {', '.join(paid)}; requests to charge the card: {counts}")
    say(f"invoice {INVOICE} is paid {'once' if len(paid) == 1 else f'{len(paid)} TIMES'}")


def say(text: str) -> None:
    """Tell what has happened."""
    print(text, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
