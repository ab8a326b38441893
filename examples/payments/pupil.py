"""A worker of the lesson: ``python -m examples.payments.pupil NAME [MOMENT]``.

It tells of each payment that is about to leave and of each answer, and at MOMENT (``leaving`` or ``answered``) it waits
until it is told to go on: the moment in which the lesson stops or kills it.
"""

from __future__ import annotations

import sys
import threading

import httpx

from examples.payments.tasks import app, way
from tenure.demo.children import PATIENCE, Told, follow_parent, tell
from tenure.protocol.events import Event, Kind

GENEROUS = dict.fromkeys(("connect", "read", "write", "pool"), PATIENCE)


class Pupil:
    """What the worker called `name` tells, and where it waits."""

    def __init__(self, name: str, moment: str) -> None:
        self._name = name
        self._moment = moment
        self._generation = 0
        self.go = threading.Event()

    def leaving(self, request: httpx.Request) -> None:
        """Tell that a payment is about to leave."""
        # The gate has compared the true timeout; a lesson on a busy machine may take its time from here on.
        request.extensions["timeout"] = GENEROUS
        if request.method == "POST":
            self._tell("leaving", "")

    def answered(self, response: httpx.Response) -> None:
        """Tell what was answered."""
        said = response.json()
        if "payment" in said:
            self._tell("answered", f"payment {said['payment']}")
        elif response.is_error:
            self._tell("answered", f"{response.status_code} {said['type']}")

    def happened(self, event: Event) -> None:
        """Tell which generation runs and that it has ended."""
        if event.kind is Kind.JOB_STARTED:
            self._generation = event.generation or 0
        if event.kind is Kind.JOB_COMPLETED:
            self._tell("completed", "")

    def _tell(self, moment: str, text: str) -> None:
        tell(Told(moment, self._name, self._generation, text=text))
        if moment == self._moment:
            self.go.wait(PATIENCE)


def main() -> None:
    """Work until the input ends."""
    follow_parent()
    name, moment = [*sys.argv[1:], ""][:2]
    pupil = Pupil(name, moment)
    way.leaving, way.answered = pupil.leaving, pupil.answered
    app.events.subscribe(pupil.happened)
    worker = app.worker(name=name, threads=1, retention=None)
    worker.start()
    for _ in sys.stdin:
        pupil.go.set()
    worker.stop(grace=0)


if __name__ == "__main__":
    main()
