"""`Effects`: what a test puts in the place of a destination, to see which effects a handler carries out and when."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from tenure.errors import BadToken, Refused
from tenure.protocol.lease import Token

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class EffectCall:
    """One call of a recorded function.

    `number` counts the effects of one run, `token` is that of the run, None outside of any. `passes` counts the gates
    and guards that the run had passed, and `gated` tells whether one of them was for this effect; `fenced` whether its
    destination compares tokens, `refused` whether it refused this call.
    """

    number: int
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    token: Token | None
    passes: int
    gated: bool
    fenced: bool
    refused: bool = False

    def __str__(self) -> str:
        """Show the call as it was written."""
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.name}({', '.join(given)})"


class Witness(Protocol):
    """Who runs the handlers that the effects come from."""

    def enters(self, call: EffectCall) -> bool:
        """Hear of an effect on its way; True when the run's lease is to be lost at this moment."""
        ...

    def leaves(self, call: EffectCall) -> bool:
        """Hear of an effect that was carried out; True when the run's lease is to be lost at this moment."""
        ...

    def lose(self) -> None:
        """Let the run's lease be lost now."""
        ...

    async def lose_async(self) -> None:
        """Let the run's lease be lost now; the twin of `lose`."""
        ...

    def running(self) -> Token | None:
        """Tell which run calls."""
        ...

    def passes(self, token: Token) -> int:
        """Tell how many gates and guards the run under way has passed so far."""
        ...


class Effects:
    """Record the calls of the functions that stand for effects, in order; `seen` are those so far.

    `refusals` are the errors with which a destination says that it refused a call and changed nothing. `reset` is
    called before each time that `assert_no_effect_after_loss` runs the handler: it puts the destination's double back
    to where the test began.
    """

    def __init__(
        self,
        witness: Witness,
        *,
        refusals: tuple[type[BaseException], ...] = (),
        reset: Callable[[], object] | None = None,
    ) -> None:
        self.seen: list[EffectCall] = []
        self._witness = witness
        self._refusals: tuple[type[BaseException], ...] = (Refused, BadToken, *refusals)
        self._reset = reset
        self._spent: dict[Token | None, int] = {}  # the passages that were for effects which have been carried out

    def wrap(self, function: Callable[P, R], name: str | None = None, *, fenced: bool = False) -> Callable[P, R]:
        """Return `function`, plain or async, with each of its calls recorded as one effect.

        `fenced` says that the destination compares tokens: then having passed the gate is no excuse, and an effect that
        is on its way as the lease is lost must be refused there.
        """
        called = name or str(getattr(function, "__name__", type(function).__name__))
        wrap: Any = self._async if _is_async(function) else self._sync
        return cast("Callable[P, R]", wrap(function, called, fenced=fenced))

    def reset(self) -> None:
        """Forget what was seen, and put the destination's double back."""
        self.seen.clear()
        self._spent.clear()
        if self._reset is not None:
            self._reset()

    def _sync(self, function: Callable[..., Any], name: str, *, fenced: bool) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def effect(*args: Any, **kwargs: Any) -> Any:
            call = self._call(name, args, kwargs, fenced=fenced)
            if self._witness.enters(call):
                self._witness.lose()
            with self._carrying_out(call):
                answer = function(*args, **kwargs)
            if self._left(call):
                self._witness.lose()
            return answer

        return effect

    def _async(
        self,
        function: Callable[..., Awaitable[Any]],
        name: str,
        *,
        fenced: bool,
    ) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(function, updated=())
        async def effect(*args: Any, **kwargs: Any) -> Any:
            call = self._call(name, args, kwargs, fenced=fenced)
            if self._witness.enters(call):
                await self._witness.lose_async()
            with self._carrying_out(call):
                answer = await function(*args, **kwargs)
            if self._left(call):
                await self._witness.lose_async()
            return answer

        return effect

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, fenced: bool) -> EffectCall:
        token = self._witness.running()
        number = 1 + sum(call.token == token for call in self.seen)
        passes = 0 if token is None else self._witness.passes(token)
        # One passage is good for one effect, or for those that are on their way together.
        gated = passes > self._spent.get(token, 0)
        call = EffectCall(number, name, args, kwargs, token, passes, gated=gated, fenced=fenced)
        self.seen.append(call)
        return call

    def _left(self, call: EffectCall) -> bool:
        self._spent[call.token] = max(call.passes, self._spent.get(call.token, 0))
        return self._witness.leaves(call)

    @contextmanager
    def _carrying_out(self, call: EffectCall) -> Iterator[None]:
        try:
            yield
        except self._refusals:
            call.refused = True
            raise
        except BaseException:
            self._left(call)  # nobody knows whether it was carried out, so it counts
            raise


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 -- an instance may have an async __call__
