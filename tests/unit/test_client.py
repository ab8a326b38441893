"""What a client asks before it asks the store."""

from __future__ import annotations

import asyncio

import pytest

from tenure import App, Filter, Misuse, State

VERBS = ("cancel", "discard", "release", "retry")


@pytest.mark.parametrize("verb", VERBS)
def test_one_id_alone_is_not_taken_for_its_letters(verb: str) -> None:
    app = App("memory://")

    @app.task
    def work() -> None: ...

    job = work.enqueue().id
    with pytest.raises(Misuse, match=r"\[job\]"):
        getattr(app.client, verb)(job)
    with pytest.raises(Misuse, match=r"\[job\]"):
        asyncio.run(getattr(app.aclient, verb)(job))
    with pytest.raises(Misuse, match=r"\[job\]"):
        Filter(ids=job)  # type: ignore[arg-type]
    assert app.client.get(job).state is State.AVAILABLE
    assert app.client.cancel([job])[0].moved
    app.close()
