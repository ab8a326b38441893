"""`play`: set the stage, let the story run, tell it as it goes, and judge it."""

from __future__ import annotations

import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tenure.app import App
from tenure.demo.children import Cast, Stalled
from tenure.demo.destinations import DEFAULT, load
from tenure.demo.destinations.place import Destination, Stage, Way, unheard
from tenure.demo.events import Summary
from tenure.demo.held import holding
from tenure.demo.story import Story
from tenure.demo.task import PAGE, register
from tenure.demo.telling import JsonTeller, PlainTeller, Teller
from tenure.errors import BadSettings, Misuse, Unavailable
from tenure.worker.context import Job

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""

_PROBE = 0.25


def play(store: str | None = None, *, destination: str = DEFAULT, fence: bool = True, json: bool = False) -> int:
    """Play the founding example on `store`, tell it on the standard output; return 0 if all was as it should be.

    Without a store's address it is played on a SQLite file in a temporary folder. With `fence` off, it is the damage at
    the destination that must be seen. With `json`, each event is one JSON line and the last line is
    ``{"summary": {…}}``. Raises BadSettings for a store or destination that cannot be used, Unavailable for one that
    does not answer.
    """
    teller: Teller = JsonTeller() if json else PlainTeller()
    kind = load(destination)
    try:
        with _termination_as_interrupt(), tempfile.TemporaryDirectory(prefix="tenure-demo-") as folder:
            address = store or f"sqlite:///{folder}/store.db"
            with Cast(Path(folder), {"TENURE_STORE": address}) as cast:
                stage = Stage(cast, Path(folder), address, fence)
                summary = _play(stage, destination, kind, teller)
    except KeyboardInterrupt:
        teller.broken_off("interrupted")
        return INTERRUPTED
    except Stalled as stalled:
        teller.broken_off(str(stalled))
        return 1
    teller.end(summary)
    return 0 if summary.ok else 1


def _play(stage: Stage, destination: str, kind: Destination, teller: Teller) -> Summary:
    with closing(App(stage.store)) as app:
        if "processes" not in app.store.capabilities:
            store = app.store.name
            raise BadSettings(f"the demo plays in several processes, and {store} lives in one: name another store")
        app.store.migrate()
        queue = f"demo-{secrets.token_hex(4)}"
        job = register(app, _elsewhere).options(queue=queue).enqueue(page=PAGE).id
        with kind.place(stage) as place:
            straight = Way(destination, place.address, stage.fence)
            teller.begin(app.store.name, job, f"{destination}, {place.described}", fence=stage.fence)
            with holding(place, straight) as held, kind.page(straight, unheard) as page:
                answers = partial(_answers, stage.store, job)
                story = Story(stage.cast, app.client, job, queue, straight, page, held, answers)
                for event in story.play():
                    teller.event(event)
                return story.summary(app.store.name)


def _answers(address: str, job: str) -> bool:
    app = App(address, timeout=_PROBE)
    try:
        # Enqueuing an id again changes nothing, but has to be let in as every change has.
        register(app, _elsewhere).options(id=job).enqueue(page=PAGE)
    except Unavailable:
        return False
    finally:
        app.close()
    return True


def _elsewhere(job: Job, _page: str) -> str:
    raise Misuse(f"job {job.id} is run by the workers of the play, not by its director")


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the play as Ctrl-C does, so that no process is left behind; only a main thread may do this."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
