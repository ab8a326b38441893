"""The lease-loss kit: what its assertions look at, what its losses are, and what it costs, each taken away.

An assertion that cannot fail is worse than none: a project that uses it stops looking.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KIT = ("tests/kit",)

_ASSERTIONS: tuple[Mutant, ...] = (
    Mutant(
        "plugin: enqueued",
        "a job that was not enqueued is missed",
        "testing/plugin/look.py",
        "    raise AssertionError(f",
        "    print(f",
        KIT,
    ),
    Mutant(
        "plugin: enqueued with",
        "arguments are compared",
        "testing/plugin/look.py",
        "all(given[name] == value for name, value in expected.items())",
        "all(name in given for name in expected)",
        KIT,
    ),
    Mutant(
        "plugin: enqueued where",
        "queues are compared",
        "testing/plugin/look.py",
        "if queue in {None, job.queue} and",
        "if",
        KIT,
    ),
    Mutant(
        "plugin: no effect after a loss",
        "an effect after a loss fails the test",
        "testing/plugin/kit.py",
        "        if any(trial.blamed() for trial in trials):\n",
        "        if False:\n",
        KIT,
    ),
    Mutant(
        "plugin: no effect at all",
        "a handler without effects proves nothing",
        "testing/plugin/kit.py",
        "        if not count:\n",
        "        if False:\n",
        KIT,
    ),
    Mutant(
        "plugin: not as far",
        "a moment that never came proves nothing",
        "testing/plugin/kit.py",
        "        if not all(trial.reached for trial in trials):\n",
        "        if False:\n",
        KIT,
    ),
    Mutant(
        "plugin: before the first",
        "a lease can be lost before the handler begins",
        "testing/plugin/trials.py",
        "    yield Moment(0)\n",
        "",
        KIT,
    ),
    Mutant(
        "plugin: on its way",
        "a lease can be lost while an effect is on its way",
        "testing/plugin/trials.py",
        "        yield Moment(number, on_its_way=True)\n",
        "",
        KIT,
    ),
    Mutant(
        "plugin: refused by a fence",
        "a fence is to refuse what had passed the gate",
        "testing/plugin/trials.py",
        "and (call.fenced or not call.gated)]",
        "and not call.gated]",
        KIT,
    ),
    Mutant(
        "plugin: one passage, one effect",
        "a gate lets one effect through",
        "testing/plugin/effects.py",
        "gated = passes > self._spent.get(token, 0)",
        "gated = passes > 0",
        KIT,
    ),
    Mutant(
        "plugin: the worker's own passages",
        "what the worker passes for a fence is no gate of the handler's",
        "testing/plugin/stage.py",
        "return max(0, self._passed.get(token, 0) - before)",
        "return self._passed.get(token, 0)",
        KIT,
    ),
    Mutant(
        "plugin: an error may be an effect",
        "an effect that ended in an error counts",
        "testing/plugin/effects.py",
        "            self._left(call)  # nobody knows whether it was carried out, so it counts\n",
        "",
        KIT,
    ),
)

_LOSSES: tuple[Mutant, ...] = (
    Mutant(
        "plugin: taken over",
        "after a loss another worker runs the job",
        "testing/plugin/stage.py",
        "        if lost:\n            self.pause()\n            self.drain(raises=False)\n",
        "        if lost:\n            self.pause()\n",
        KIT,
    ),
    Mutant(
        "plugin: taken away",
        "a job is taken over now, not when its lease ends",
        "testing/plugin/stage.py",
        '        self._client.release([named], "taken over in a test")\n',
        "",
        KIT,
    ),
    Mutant(
        "plugin: paused for longer",
        "a worker stands still for longer than its lease",
        "testing/plugin/stage.py",
        "longest + 1.0 if seconds is None",
        "longest - 1.0 if seconds is None",
        KIT,
    ),
    Mutant(
        "plugin: an extended lease",
        "a lease that was extended ends later",
        "testing/plugin/stage.py",
        "longest = max(lease.duration, lease.remaining() / _TRUST)",
        "longest = lease.duration",
        KIT,
    ),
    Mutant(
        "plugin: nothing renewed in a pause",
        "a worker that stands still does not renew",
        "testing/plugin/stage.py",
        "        self._move(longest + 1.0 if seconds is None else seconds)\n",
        "        self.advance(longest + 1.0 if seconds is None else seconds)\n",
        KIT,
    ),
    Mutant(
        "plugin: kept as time passes",
        "a worker that is awake renews",
        "testing/plugin/stage.py",
        "                worker.keep()\n",
        "                pass\n",
        KIT,
    ),
    Mutant(
        "plugin: the store's clock",
        "the store's clock moves with the worker's",
        "testing/plugin/stage.py",
        "        store.shift_clock(seconds)\n",
        "",
        KIT,
    ),
    Mutant(
        "plugin: the worker's clock",
        "the worker's clock moves with the store's",
        "testing/plugin/stage.py",
        "        self._shift += seconds\n",
        "",
        KIT,
    ),
    Mutant(
        "plugin: cut",
        "a store that is cut off answers nothing",
        "testing/plugin/line.py",
        "        if self.cut:\n",
        "        if False:\n",
        KIT,
    ),
    Mutant(
        "plugin: lost answers",
        "an answer that was lost is not heard",
        "testing/plugin/line.py",
        "            if self.loses_answers:\n",
        "            if False:\n",
        KIT,
    ),
    Mutant(
        "plugin: a guarded job",
        "a job that a transaction guards is not lost",
        "testing/plugin/stage.py",
        "        except Unavailable:\n            return False\n",
        "        except Unavailable:\n            return True\n",
        KIT,
    ),
    Mutant(
        "plugin: an error comes out",
        "a handler's error fails the test",
        "testing/plugin/stage.py",
        "if raises and one.stored and one.failure is not None:",
        "if False and one.failure is not None:",
        KIT,
    ),
    Mutant(
        "plugin: own store back",
        "an app gets back the store that it had",
        "testing/plugin/stage.py",
        "        vars(self.app).update(self._before)\n",
        "",
        KIT,
    ),
)

_COSTS: tuple[Mutant, ...] = (
    Mutant(
        "plugin: light",
        "a project that uses no fixture imports nothing for it",
        "testing/plugin/__init__.py",
        "\nif TYPE_CHECKING:\n",
        "\nif True:\n",
        KIT,
    ),
    Mutant(
        "plugin: light package",
        "the package imports its names when they are asked for",
        "__init__.py",
        "\nif TYPE_CHECKING:\n    from",
        "\nif True:\n    from",
        KIT,
    ),
)

PLUGIN: tuple[Mutant, ...] = (*_ASSERTIONS, *_LOSSES, *_COSTS)
