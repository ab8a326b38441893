"""Trials: one handler, run again and again, its lease lost each time at another moment of its effects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tenure.protocol.lease import Token
from tenure.testing.plugin.effects import EffectCall


@dataclass(frozen=True, slots=True)
class Moment:
    """When the lease is lost: while effect `number` is on its way, or after it; after effect 0 is before the first."""

    number: int
    on_its_way: bool = False

    def __str__(self) -> str:
        """Name the moment."""
        if self.on_its_way:
            return f"while effect {self.number} was on its way"
        return f"after effect {self.number}" if self.number else "before the handler began"


def moments(effects: int) -> Iterator[Moment]:
    """List every moment at which a handler of so many effects can lose its lease, in order of time."""
    yield Moment(0)
    for number in range(1, effects + 1):
        yield Moment(number, on_its_way=True)
        yield Moment(number)


@dataclass(slots=True)
class Trial:
    """The first run of a job, whose lease is to be lost at `moment` (None: never), and what it did afterwards.

    `token` is that of the run, once it has begun, and `count` its effects. `reached` tells whether the moment came,
    `lost` whether the lease was lost then: it cannot be while a transaction guards the job.
    """

    moment: Moment | None
    job: str = ""
    token: Token | None = None
    count: int = 0
    reached: bool = False
    lost: bool = False
    _after: list[EffectCall] = field(default_factory=list)

    def begins(self, token: Token) -> bool:
        """Hear of a run that begins; True when its lease is to be lost now."""
        if token.job != self.job or self.token is not None:
            return False
        self.token = token
        return self.moment == Moment(0)

    def enters(self, call: EffectCall) -> bool:
        """Hear of an effect on its way; True when the lease is to be lost now."""
        if call.token is None or call.token != self.token:
            return False
        self.count = call.number
        comes = self.moment == Moment(call.number, on_its_way=True)
        if self.lost or comes:
            self._after.append(call)
        return comes

    def leaves(self, call: EffectCall) -> bool:
        """Hear of an effect that was carried out; True when the lease is to be lost now."""
        return call.token is not None and call.token == self.token and self.moment == Moment(call.number)

    def loses(self, *, lost: bool) -> None:
        """Note that the moment came."""
        self.reached = True
        self.lost = lost

    def blamed(self) -> list[EffectCall]:
        """List the effects that were carried out after the loss and had no right to be.

        One that had passed the gate before the loss had: nobody can call it back, and only a fence can refuse it.
        """
        late = self._after if self.lost else []
        return [call for call in late if not call.refused and (call.fenced or not call.gated)]


def told(task: str, trials: list[Trial]) -> str:
    """Say in words what a handler did after its losses, and what would have held it back."""
    found: dict[tuple[int, str], tuple[EffectCall, list[Trial]]] = {}
    for trial in trials:
        for call in trial.blamed():
            found.setdefault((call.number, _lack(call)), (call, []))[1].append(trial)
    lines = [f"{task} carried out effects after its lease was lost and another worker had taken the job over."]
    for (number, lack), (call, those) in sorted(found.items()):
        lines += ["", f"Effect {number}, {call}: {lack}. The lease was lost"]
        lines += [f"  {trial.moment}" for trial in those]
    return "\n".join([*lines, "", _ADVICE])


def _lack(call: EffectCall) -> str:
    if call.gated:
        return "its destination, which has a fence, did not refuse it: pass the token on with it"
    return "it had passed no gate and no guard, and no fence refused it"


_ADVICE = (
    "Pass the gate before each effect (`with job.effect(seconds=...) as token:`, or `job.step(...)`), pass the token on"
    " to a destination with a fence, or do the effect in a transaction that begins with `job.guard(connection)`."
)
