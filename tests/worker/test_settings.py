"""Settings that cannot work are refused at the start, with the numbers named (R17, case B01 c)."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import App, BadSettings, Misuse
from tenure.protocol.lease import LONGEST, SHORTEST, beat_interval
from tenure.worker.settings import Settings


def an_app(**options: Any) -> App:
    app = App("memory://")

    @app.task(**options)
    def work() -> None:
        """Do nothing."""

    return app


BAD: list[tuple[dict[str, Any], str]] = [
    ({"queues": ()}, "queues is empty: name at least one queue to serve"),
    ({"queues": "default"}, "queues is 'default': it must be a tuple of texts"),
    ({"queues": ("",)}, "a queue's name '' is refused"),
    ({"queues": ("a\nb",)}, "a queue's name 'a\\\\nb' is refused"),
    ({"slots": 0}, "slots is 0: at least 1"),
    ({"threads": -1}, "threads is -1: at least 1"),
    ({"processes": 0}, "processes is 0: at least 1"),
    ({"grace": -1.0}, "grace is -1 s: 0 or more"),
    ({"patience": -0.5}, "patience is -0.5 s: 0 or more"),
    ({"retention": 0.0}, "retention is 0 s: above 0, or None to keep finished jobs for ever"),
    ({"name": ""}, "a worker's name '' is refused"),
]


@pytest.mark.parametrize(("given", "said"), BAD, ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_a_bad_setting_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=f"^{said}"):
        Settings(**given)


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(BadSettings, match=r"a worker has no setting concurency; there are queues, slots, threads"):
        an_app().worker(concurency=3)


@pytest.mark.parametrize("given", [{"slots": "4"}, {"grace": None}, {"threads": 1.5}])
def test_a_setting_of_the_wrong_kind_is_refused_by_name(given: dict[str, Any]) -> None:
    [name] = given
    with pytest.raises(BadSettings, match=f"^{name} is "):
        an_app().worker(**given)


def test_a_worker_without_a_task_is_refused() -> None:
    with pytest.raises(BadSettings, match="this app has no task"):
        App("memory://").worker()


# -- leases that could not be kept


@pytest.mark.parametrize(
    ("lease", "settings", "said"),
    [
        (30.0, {"beat": 30.0}, r"beat is 30 s and task work has a lease of 30 s: .* at most 10 s, or a longer lease"),
        (30.0, {"beat": 31.0}, r"beat is 31 s and task work has a lease of 30 s"),
        (30.0, {"beat": 10.1}, r"beat is 10\.1 s and task work has a lease of 30 s"),
        (
            30.0,
            {"request_timeout": 18.5},
            r"task work has a lease of 30 s, renewed every 10 s, leaving 18\.4 s .* may take 18\.5 s\. Use .* 30\.1 s",
        ),
        (1.0, {"request_timeout": 5.0}, r"task work has a lease of 1 s, renewed every 0\.333 s"),
    ],
)
def test_b01_a_lease_that_cannot_be_kept_is_refused_with_the_numbers(
    lease: float, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadSettings, match=said):
        an_app(lease=lease).worker(**settings)


@pytest.mark.parametrize("beat", [0.0, -1.0])
def test_a_beat_that_is_no_pause_is_refused(beat: float) -> None:
    with pytest.raises(BadSettings, match=f"beat is {beat:g} s"):
        an_app().worker(beat=beat)


@pytest.mark.parametrize("request_timeout", [0.0, -1.0])
def test_a_request_timeout_that_leaves_no_time_is_refused(request_timeout: float) -> None:
    with pytest.raises(BadSettings, match=f"request_timeout is {request_timeout:g} s"):
        an_app().worker(request_timeout=request_timeout)


@pytest.mark.parametrize("lease", [SHORTEST / 2, 0.0, -1.0, LONGEST + 1])
def test_b01_a_lease_outside_its_bounds_is_refused(lease: float) -> None:
    with pytest.raises(BadSettings, match=f"the lease is {lease:g} s: a lease lasts 1 to 86400 s"):
        an_app(lease=lease)


@pytest.mark.parametrize("lease", [SHORTEST, 2.0, 30.0, LONGEST])
def test_every_allowed_lease_can_be_kept_by_default(lease: float) -> None:
    limit = Settings().request_limit([("work", lease)])
    assert 0 < limit <= min(5.0, lease / 2)
    assert Settings(beat=beat_interval(lease)).request_limit([("work", lease)]) == limit


def test_the_shortest_lease_of_all_tasks_bounds_a_request() -> None:
    assert Settings().request_limit([("long", 600.0), ("short", 2.0)]) == 1.0


def test_without_a_task_a_request_has_the_usual_bound() -> None:
    assert Settings().request_limit([]) == 5.0


def test_every_queue_that_a_task_names_is_served_by_default() -> None:
    app = an_app(queue="billing")
    assert app.worker().queues == ("billing", "default")
    assert app.worker(queues=("mail",)).queues == ("mail",)
