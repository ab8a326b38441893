"""Part: enqueuing, reading back, names, sizes, listings."""

from __future__ import annotations

import random
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from tenure.errors import NotFound
from tenure.ids import new_job_id, new_job_ids
from tenure.protocol.job import Enqueued, Failure, Filter, JobRecord, NewJob, QueueCounts
from tenure.protocol.lifecycle import State, Verb
from tenure.protocol.names import LONGEST, check_name
from tenure.testing.conformance.bench import QUEUE, TASK, Bench, new_job

ODD_NAMES = (
    "it's",
    'say "hi"',
    "'; DROP TABLE job; --",
    "a:b",
    "a/b/../c",
    "..",
    "two words",
    " padded ",
    "100%",
    "%s %(x)s",
    ":name ::text",
    "$1 ? {} \\",
    "123",
    "-1",
    "null",
    "ключ 钥匙 🔑",
    "x" * LONGEST,
)
"""Names that are odd but legal (case B29)."""

DISTINCT_NAMES = ("A", "a", "\u00e9", "e\u0301", "1", "01", "1.0", "a ", " a", "ß", "ss")
"""Names that some comparison somewhere takes for equal; here each is a name of its own."""

ODD_TEXTS = (
    '{"a":  [1, 2.50,1e3, 12345678901234567890]}',
    '{"b":1,"a":2,"a":3}',
    '{"nul": "\\u0000", "quote": "\'", "percent": "%s", "emoji": "🔑", "escaped": "\\ud83d\\ude00"}',
    '"' + "x" * 1_000_000 + '"',
)
"""JSON that comes back as it went in, byte for byte."""

UNTOUCHED = (
    "worker",
    "lease_remaining",
    "claimed_at",
    "result",
    "progress",
    "ended",
    "ended_at",
    "reason",
    "failure",
    "lost_generation",
    "lost_worker",
    "finished_at",
)
"""What nothing has happened to yet in a new job."""

COUNTED = {"generation", "attempts", "takeovers"}


@pytest.mark.parametrize("others", [[], [new_job(), new_job()]], ids=["alone", "among others"])
def test_a_job_reads_back_as_it_was_described(bench: Bench, others: list[NewJob]) -> None:
    run_at = datetime(2040, 2, 29, 12, 30, 15, 250_000, tzinfo=UTC)
    described = new_job(
        task="ship",
        arguments='{"order":7}',
        queue="mail",
        priority=-3,
        run_at=run_at,
        delay=1.5,
        max_attempts=4,
        max_takeovers=2,
        lease=12.5,
        timeout=60.0,
        unique_key="order 7",
        secret=("card", "pin"),
        trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    jobs = [described, *others]
    assert bench.do(bench.verbs.enqueue, jobs) == [Enqueued(job.id, created=True) for job in jobs]
    stored = bench.get(described.id)
    told = {field.name for field in fields(JobRecord)} & set(described.__struct_fields__) - {"run_at"}
    for name in sorted(told):
        assert getattr(stored, name) == getattr(described, name), name
    for name in UNTOUCHED:
        assert getattr(stored, name) is None, name
    assert told | set(UNTOUCHED) | COUNTED | {"run_at", "state", "enqueued_at", "now"} == set(stored.__slots__)
    assert (stored.state, stored.generation, stored.attempts, stored.takeovers) == (State.AVAILABLE, 0, 0, 0)
    assert stored.run_at == run_at + timedelta(seconds=1.5)
    assert stored.phase == "scheduled"
    assert stored.run_at.utcoffset() == timedelta(0)


def test_a_claim_carries_what_the_worker_needs(bench: Bench) -> None:
    job = bench.enqueue(
        arguments='{"n":1}', priority=9, max_attempts=7, lease=12.5, timeout=60.0, trace="t", max_takeovers=5
    )
    claimed = bench.worker().claim_one()
    assert (claimed.task, claimed.queue, claimed.priority, claimed.arguments) == (TASK, QUEUE, 9, '{"n":1}')
    assert (claimed.lease, claimed.timeout, claimed.trace, claimed.max_attempts) == (12.5, 60.0, "t", 7)
    assert (claimed.attempts, claimed.takeovers, claimed.lost_generation, claimed.lost_worker) == (0, 0, None, None)
    assert 0 <= bench.get(job).run_at.timestamp() * 1000 - claimed.run_at_ms <= 1


def test_a_moment_is_the_stores_own(bench: Bench) -> None:
    before = bench.store.now()
    job = bench.get(bench.enqueue(delay=10.0))
    slack = timedelta(seconds=1)
    assert before - slack <= job.enqueued_at <= job.now <= bench.store.now() + slack
    assert abs(job.run_at - job.enqueued_at - timedelta(seconds=10)) <= timedelta(milliseconds=2)
    bench.shift(3600.0)
    assert bench.store.now() - before >= timedelta(seconds=3600)
    assert bench.get(job.id).now - job.now >= timedelta(seconds=3600)


def test_a_repeated_id_is_stored_once(bench: Bench) -> None:
    first = new_job(arguments='{"n":1}')
    again = new_job(id=first.id, arguments='{"n":2}')
    assert bench.do(bench.verbs.enqueue, [first]) == [Enqueued(first.id, created=True)]
    before = bench.snapshot(first.id)
    assert bench.do(bench.verbs.enqueue, [again]) == [Enqueued(first.id, created=False)]
    before.assert_same(bench.snapshot(first.id))


def test_a_repeated_id_is_known_when_the_job_is_over(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    worker.complete(worker.claim_one())
    assert bench.do(bench.verbs.enqueue, [new_job(id=job)]) == [Enqueued(job, created=False)]
    assert worker.claim() == []


def test_an_id_repeated_in_one_call_is_stored_once(bench: Bench) -> None:
    job, other = new_job(), new_job()
    stored = bench.do(bench.verbs.enqueue, [job, other, job])
    assert [(one.id, one.created) for one in stored] == [(job.id, True), (other.id, True), (job.id, False)]


def test_bulk_answers_and_claims_come_in_order(bench: Bench) -> None:
    jobs = [new_job(id=job) for job in new_job_ids(500)]
    shuffled = random.Random(7).sample(jobs, len(jobs))
    at = bench.store.now() - timedelta(seconds=60)
    stored = bench.do(bench.verbs.enqueue, [new_job(id=job.id, run_at=at) for job in shuffled])
    assert stored == [Enqueued(job.id, created=True) for job in shuffled]
    assert [claimed.id for claimed in bench.worker().claim(len(jobs))] == [job.id for job in jobs]


def test_nothing_asked_is_nothing_done(bench: Bench) -> None:
    worker = bench.worker()
    job = bench.enqueue()
    assert bench.do(bench.verbs.enqueue, []) == []
    assert bench.do(bench.verbs.settle, worker.owner, []) == []
    assert worker.renew() == []
    assert bench.operate(Verb.CANCEL) == []
    assert worker.claim(queues=()) == []
    assert worker.claim(tasks=()) == []
    assert worker.claim(0) == []
    assert bench.get(job).state is State.AVAILABLE


def test_a_unique_key_is_held_by_one_live_job(bench: Bench) -> None:
    first = bench.enqueue(unique_key="k")
    worker = bench.worker()
    assert _enqueue(bench, unique_key="k") == Enqueued(first, created=False)
    held = worker.claim_one()
    assert _enqueue(bench, unique_key="k") == Enqueued(first, created=False)
    worker.complete(held)
    second = _enqueue(bench, unique_key="k")
    assert second.created
    assert _enqueue(bench, unique_key="k") == Enqueued(second.id, created=False)
    bench.move(Verb.CANCEL, second.id)
    third = _enqueue(bench, unique_key="k")
    assert third.created
    bench.move(Verb.DISCARD, third.id)
    assert _enqueue(bench, unique_key="k").created


def test_a_unique_key_is_the_tasks_own(bench: Bench) -> None:
    bench.enqueue(unique_key="k")
    assert _enqueue(bench, unique_key="k", task="other").created
    assert _enqueue(bench, unique_key="K").created
    assert _enqueue(bench).created
    assert _enqueue(bench).created


def test_a_unique_key_holds_within_one_call(bench: Bench) -> None:
    jobs = [new_job(unique_key="k"), new_job(unique_key="k"), new_job(unique_key="other")]
    stored = bench.do(bench.verbs.enqueue, jobs)
    assert [(one.id, one.created) for one in stored] == [(jobs[0].id, True), (jobs[0].id, False), (jobs[2].id, True)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_works_everywhere(bench: Bench, name: str) -> None:
    check_name("name", name)
    bench.enqueue(id=name, task=name, queue=name, unique_key=name)
    assert _enqueue(bench, task=name, unique_key=name) == Enqueued(name, created=False)
    worker = bench.worker(name)
    [held] = worker.claim(queues=(name,), tasks=(name,))
    assert (held.id, held.task, held.queue) == (name, name, name)
    assert worker.record(held, name, '"done"').verdict == "done"
    assert bench.do(bench.verbs.recall_step, name, name) == '"done"'
    [found] = bench.do(bench.verbs.find, Filter(ids=(name,), queue=name, task=name), limit=2)
    assert (found.id, found.worker, found.unique_key) == (name, name, name)
    assert [entry.queue for entry in bench.do(bench.verbs.queues)] == [name]
    assert worker.end(held, Verb.FAIL, reason=name).verdict == "done"
    assert [(entry.job, entry.worker, entry.reason) for entry in bench.history(name)] == [(name, name, name)]


def test_names_are_compared_exactly(bench: Bench) -> None:
    for name in DISTINCT_NAMES:
        bench.enqueue(id=name, task=name, queue=name)
        bench.enqueue(unique_key=name)
    for name in DISTINCT_NAMES:
        [held] = bench.worker().claim(2, queues=(name,), tasks=(name,))
        assert held.id == name
    listed = bench.do(bench.verbs.find, Filter(ids=DISTINCT_NAMES), limit=50, newest_first=False)
    assert [job.id for job in listed] == sorted(DISTINCT_NAMES)


@pytest.mark.parametrize("text", ODD_TEXTS, ids=("numbers", "keys", "characters", "a million"))
def test_json_comes_back_as_it_went_in(bench: Bench, text: str) -> None:
    job = bench.enqueue(arguments=text)
    worker = bench.worker()
    held = worker.claim_one()
    assert held.arguments == text
    worker.progress(held, text)
    worker.record(held, "step", text)
    worker.complete(held, text)
    stored = bench.get(job)
    assert (stored.arguments, stored.progress, stored.result) == (text, text, text)
    assert bench.do(bench.verbs.recall_step, job, "step") == text
    assert worker.complete(held, "null").result == text


def test_an_unknown_job_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound) as refusal:
        bench.get("no such job")
    assert refusal.value.job == "no such job"
    assert bench.history("no such job") == []
    assert bench.do(bench.verbs.recall_step, "no such job", "step") is None


def test_a_listing_goes_page_by_page_in_order_of_id(bench: Bench) -> None:
    ids = sorted(bench.enqueue() for _ in range(7))
    assert _pages(bench, newest_first=False) == [ids[0:3], ids[3:6], ids[6:]]
    newest = ids[::-1]
    assert _pages(bench, newest_first=True) == [newest[0:3], newest[3:6], newest[6:]]


def test_b30_a_listing_leaves_out_what_may_be_large_or_private(bench: Bench) -> None:
    job = bench.enqueue(arguments='{"n":1}')
    worker = bench.worker()
    held = worker.claim_one()
    worker.progress(held, '"half"')
    worker.end(held, Verb.FAIL, failure=Failure("ValueError", 'shop.py:7 in "pay"', "card 4000 é", "Traceback …"))
    for newest_first in (True, False):
        [listed] = bench.do(bench.verbs.find, Filter(), limit=10, newest_first=newest_first)
        assert (listed.arguments, listed.progress) == ("", None)
        assert listed.failure == Failure("ValueError", 'shop.py:7 in "pay"', "", "")
    shown = bench.get(job)
    assert (shown.arguments, shown.progress) == ('{"n":1}', '"half"')
    assert shown.failure == Failure("ValueError", 'shop.py:7 in "pay"', "card 4000 é", "Traceback …")


def test_a_filter_means_jobs_that_match_in_every_field(bench: Bench) -> None:
    mail = bench.enqueue(queue="mail", task="send")
    other = bench.enqueue(queue="mail", task="other")
    held = bench.enqueue(queue="web", task="send")
    bench.worker().claim(queues=("web",), tasks=("send",))
    assert _found(bench, Filter()) == {mail, other, held}
    assert _found(bench, Filter(queue="mail")) == {mail, other}
    assert _found(bench, Filter(task="send")) == {mail, held}
    assert _found(bench, Filter(state=State.RUNNING)) == {held}
    assert _found(bench, Filter(ids=(mail, held, "none"))) == {mail, held}
    assert _found(bench, Filter(queue="mail", task="send", state=State.AVAILABLE)) == {mail}
    assert _found(bench, Filter(ids=())) == set()
    assert _found(bench, Filter(queue="mail", state=State.RUNNING)) == set()


def test_queues_count_live_jobs_by_phase(bench: Bench) -> None:
    for _ in range(5):
        bench.enqueue(queue="mail", lease=10.0)
    bench.enqueue(queue="mail", delay=600.0)
    bench.enqueue(queue="web")
    worker = bench.worker()
    [early] = worker.claim(queues=("mail",))
    bench.shift(11.0)
    late, over = worker.claim(2, queues=("mail",), takeovers=False)
    worker.complete(over)
    assert bench.do(bench.verbs.queues) == [
        QueueCounts("mail", due=2, scheduled=1, running=1, expired=1),
        QueueCounts("web", due=1, scheduled=0, running=0, expired=0),
    ]
    assert (bench.get(early.id).phase, bench.get(late.id).phase) == ("expired", "running")


def test_a_bell_rings_for_new_work(bench: Bench) -> None:
    bell = bench.store.bell()
    assert (bell is not None) == ("bell" in bench.store.capabilities)
    if bell is None:
        return
    assert not bell.wait(0.0)
    job = bench.enqueue()
    assert bell.wait(10.0)
    bench.worker().claim_one()
    bench.move(Verb.RELEASE, job)
    assert bell.wait(10.0)
    bell.wake()
    assert not bell.wait(10.0)
    bell.close()


def _enqueue(bench: Bench, **fields: object) -> Enqueued:
    [stored] = bench.do(bench.verbs.enqueue, [new_job(**{"id": new_job_id(), **fields})])
    return stored


def _found(bench: Bench, which: Filter) -> set[str]:
    return {job.id for job in bench.do(bench.verbs.find, which, limit=100)}


def _pages(bench: Bench, *, newest_first: bool) -> list[list[str]]:
    pages: list[list[str]] = []
    after: str | None = None
    while page := bench.do(bench.verbs.find, Filter(), limit=3, after=after, newest_first=newest_first):
        pages.append([job.id for job in page])
        after = page[-1].id
    return pages
