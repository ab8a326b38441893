"""The choice of the outbox under `kill -9` and `SIGSTOP` at every point, with real workers on SQLite and PostgreSQL.

All cells of a store are played at once: a worker each, which dies at its point, and then one that takes over.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import tenure
from tenure import App, Filter, JobRecord, State, Unavailable
from tenure.fences import outbox
from tenure.testing.servers import Postgres
from tests.fences import outbox as program
from tests.fences.outbox import RESCUE, TASKS
from tests.support.processes import Child, Processes, wait_for
from tests.system import journal
from tests.system.journal import Journal

PATIENCE = 60.0
PATH = f"{Path(tenure.__file__).parents[1]}:{Path(__file__).parents[2]}"

SENDERS = {
    "at-most-once, before the mark": (1, State.COMPLETED),
    "at-most-once, after the mark": (0, State.DISCARDED),
    "at-most-once, before the send": (0, State.DISCARDED),
    "at-most-once, after the send": (1, State.DISCARDED),
    "at-most-once, frozen before the send": (1, State.DISCARDED),
    "at-most-once, async, after the send": (1, State.DISCARDED),
    "at-least-once, before the send": (1, State.COMPLETED),
    "at-least-once, after the send": (2, State.COMPLETED),
    "at-least-once, before the mark": (2, State.COMPLETED),
    "at-least-once, after the mark": (1, State.COMPLETED),
    "at-least-once, frozen before the send": (2, State.COMPLETED),
    "at-least-once, async, before the send": (1, State.COMPLETED),
    # Without the outbox the same crash does what nobody chose.
    "plain, after the send": (2, State.COMPLETED),
    "plain, frozen before the send": (2, State.COMPLETED),
}
"""How often each message is sent, and how it ends, when its first worker dies or stands still at that point."""

PRODUCERS = {
    "produce, before the commit": (1, 2),
    "produce, after the commit": (1, 2),
    "produce and finish, before the commit": (1, 2),
    "produce and finish, after the commit": (1, 1),
    "produce plainly, after the commit": (2, 2),
}
"""How often each message is sent, and how often its producer runs."""

CELLS = (*SENDERS, *PRODUCERS)
FROZEN = [cell for cell in SENDERS if "frozen" in cell]


class Play:
    """All cells on one store."""

    def __init__(self, address: str, folder: Path, processes: Processes) -> None:
        self.app = App(address)
        self.address = address
        self.journal = Journal(folder)
        self.still: set[str] = set()
        self.processes = processes
        self.app.store.migrate()
        program.app.use_store(address)
        for cell in CELLS:
            task = TASKS[cell.rpartition(", ")[0]].options(queue=cell)
            if cell in SENDERS and not cell.startswith("plain"):
                outbox.send(None, cell, task)
            else:
                task.options(id=cell).enqueue()
        outbox.send(None, "apart", program.apart)
        self.victims = self.start(*CELLS)

    def start(self, *arguments: str) -> Child:
        environment = {"PYTHONPATH": PATH, "TENURE_STORE": self.address, journal.VARIABLE: str(self.journal.path)}
        return self.processes.python("-m", "tests.fences.outbox", *arguments, environment=environment)

    def missing(self) -> set[str]:
        return {*CELLS} - {line["cell"] for line in self.journal.find("reached")}

    def at_points(self) -> bool:
        """Tell whether every worker has come to its point; stop those that wait there, at once: their leases go on."""
        missing = self.missing()
        for cell in FROZEN:
            if cell not in self.still | missing and self.stands_still(cell):
                self.still.add(cell)
        return not missing and len(self.still) == len(FROZEN)

    def stands_still(self, cell: str) -> bool:
        """Stop a worker, and not in the middle of a transaction: SQLite has one writer, and all others would wait."""
        pid = self.pid(cell)
        os.kill(pid, signal.SIGSTOP)
        stat = Path(f"/proc/{pid}/stat")
        wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", PATIENCE, f"process {pid} to stop")
        with closing(self.app.store.connect(timeout=0.2)) as driver:
            try:
                driver.do(self.app.store.verbs.forget, "nobody")
            except Unavailable:
                os.kill(pid, signal.SIGCONT)
                return False
        return True

    def pid(self, cell: str) -> int:
        [line] = self.journal.find("reached", cell=cell)
        pid: int = line["pid"]
        return pid

    def await_ends(self) -> None:
        """Wait until all jobs have ended, the producers' messages included; then wake those who stand still."""
        wait_for(lambda: not self.unfinished(), PATIENCE, "all jobs to end")
        for cell in FROZEN:
            self.journal.go(cell)
            os.kill(self.pid(cell), signal.SIGCONT)
        for cell in FROZEN:
            wait_for(partial(self.journal.count, "mail", pid=self.pid(cell)), PATIENCE, "the late sender to send")

    def unfinished(self) -> list[str]:
        live = (State.AVAILABLE, State.RUNNING)
        return [job.id for state in live for job in self.app.client.find(Filter(state=state))]

    def mails(self, key: str) -> int:
        return self.journal.count("mail", key=key)

    def job(self, cell: str) -> JobRecord:
        return self.app.client.get(cell)


def await_points(plays: dict[str, Play]) -> None:
    try:
        wait_for(
            lambda: {play.at_points() for play in plays.values()} == {True},
            PATIENCE,
            "every worker to come to its point",
        )
    except AssertionError as late:
        told = {store: (play.missing(), play.victims.stderr.read_text()[-3000:]) for store, play in plays.items()}
        raise AssertionError(told) from late


@pytest.fixture(scope="module")
def plays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Play]]:
    """Play on both stores at once: most of the time is spent in waiting for leases to end."""
    folders = {store: tmp_path_factory.mktemp(store) for store in ("sqlite", "postgres")}
    with Postgres.start("18") as server, Processes(tmp_path_factory.mktemp("processes")) as processes:
        addresses = {"sqlite": f"sqlite:///{folders['sqlite']}/jobs.db", "postgres": server.create_database()}
        plays = {store: Play(addresses[store], folders[store], processes) for store in folders}
        await_points(plays)
        for play in plays.values():
            play.start(RESCUE, *CELLS)
        for play in plays.values():
            play.await_ends()
        yield plays
        for play in plays.values():
            play.app.close()
        program.app.close()


@pytest.fixture(params=["sqlite", "postgres"])
def play(request: pytest.FixtureRequest, plays: dict[str, Play]) -> Play:
    return plays[request.param]


@pytest.mark.parametrize("cell", SENDERS)
def test_a_message_is_sent_as_often_as_its_choice_says(play: Play, cell: str) -> None:
    mails, state = SENDERS[cell]
    assert play.mails(cell) == mails
    job = play.job(cell)
    assert job.state is state
    if state is State.DISCARDED:
        assert "may have been sent" in (job.reason or "")
    assert job.generation > 1


@pytest.mark.parametrize("cell", PRODUCERS)
def test_a_producer_that_dies_leaves_one_message(play: Play, cell: str) -> None:
    mails, runs = PRODUCERS[cell]
    assert play.mails(f"{cell}:receipt") == mails
    assert play.journal.count("produce", job=cell) == runs
    assert play.job(cell).state is State.COMPLETED


def test_a_sender_may_have_a_process_of_its_own(play: Play) -> None:
    assert play.mails("apart") == 1
    assert play.job("apart").state is State.COMPLETED
