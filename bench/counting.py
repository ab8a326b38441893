"""A store that counts what a worker asks of it: verbs, statements, round trips and the seconds they took."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from tenure.protocol.op import Op
from tenure.store.contract import Driver, Store


class CountingStore:
    """Another store, with everything that its blocking drivers do counted; the rest is passed through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reset()

    def reset(self) -> None:
        """Begin to count anew."""
        self.statements = 0
        self.round_trips = 0
        self.by_verb: Counter[str] = Counter()
        self.statements_by_verb: Counter[str] = Counter()
        self.seconds_by_verb: dict[str, float] = defaultdict(float)

    def __getattr__(self, name: str) -> Any:
        """Pass everything else through."""
        return getattr(self._store, name)

    def connect(self, **settings: Any) -> Driver:
        """Open a counted driver."""
        return _CountingDriver(self, self._store.connect(**settings))

    def dedicated(self, **settings: Any) -> Driver:
        """Open a counted driver."""
        return _CountingDriver(self, self._store.dedicated(**settings))


class _CountingDriver:
    def __init__(self, counts: CountingStore, driver: Driver) -> None:
        self._counts = counts
        self._driver = driver

    def do(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
        name, began = verb.__name__, time.perf_counter()
        try:
            return self._driver.do(self._counted(verb), *args, **kwargs)
        finally:
            self._counts.by_verb[name] += 1
            self._counts.seconds_by_verb[name] += time.perf_counter() - began

    def _counted(self, verb: Callable[..., Op[Any]]) -> Callable[..., Op[Any]]:
        counts = self._counts

        def counted(*args: Any, **kwargs: Any) -> Op[Any]:
            op = verb(*args, **kwargs)
            answer: Any = None
            while True:
                try:
                    request: Any = op.send(answer)
                except StopIteration as stop:
                    return stop.value
                calls = len(getattr(request, "calls", (request,)))
                counts.round_trips += 1
                counts.statements += calls
                counts.statements_by_verb[verb.__name__] += calls
                answer = yield request

        return counted

    def close(self) -> None:
        self._driver.close()
