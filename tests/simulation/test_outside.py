from __future__ import annotations

import importlib
import logging
import random
from typing import Any

import pytest

from tenure.errors import BadSettings, Misuse
from tenure.testing.simulation import Theatre
from tenure.testing.simulation.outside import seams, simulated
from tenure.testing.simulation.threads import Stage


def seen() -> dict[str, Any]:
    names = [*seams(Stage(), random.Random()), "tenure.worker.worker:Lease"]
    return {name: getattr(importlib.import_module(name.split(":")[0]), name.split(":")[1]) for name in names}


def test_everything_is_put_back() -> None:
    before = seen()
    level = logging.getLogger("tenure").level
    with Theatre().open() as theatre:
        theatre.play(1)
        inside = seen()
        assert all(inside[name] is not before[name] for name in before)
    assert seen() == before
    assert logging.getLogger("tenure").level == level


def test_everything_is_put_back_after_an_error() -> None:
    before = seen()
    with pytest.raises(LookupError), Theatre().open():
        raise LookupError
    assert seen() == before


def test_one_simulation_at_a_time() -> None:
    with Theatre().open(), pytest.raises(Misuse, match="one at a time"), Theatre().open():
        pass


def test_a_name_that_is_not_there_any_more_is_an_error() -> None:
    before = seen()
    replacements = {**seams(Stage(), random.Random()), "tenure.worker.worker:no_such_name": None}
    with pytest.raises(AttributeError, match="no_such_name"), simulated(replacements):
        pass
    assert seen() == before


def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(BadSettings, match="no store 'oracle'"):
        Theatre("oracle")
