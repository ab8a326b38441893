"""The guards of the outbox."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_HERE = ("tests/fences/test_outbox.py",)
_REAL = ("tests/fences/test_outbox_crash.py",)
_KEYS = ("tests/fences/test_outbox_keys.py",)


def _outbox(name: str, guard: str, old: str, new: str, tests: tuple[str, ...] = _HERE) -> Mutant:
    return Mutant(f"outbox: {name}", guard, "fences/outbox.py", old, new, tests)


OUTBOX = (
    _outbox(
        "sent before the mark",
        "at-most-once marks before it sends",
        "            _one_only(job, _begun(job))\n            return function(*own, **kwargs)",
        "            done = function(*own, **kwargs)\n            _one_only(job, _begun(job))\n            return done",
        _REAL,
    ),
    _outbox(
        "mark ignored",
        "at-most-once sends only in the run that marked",
        "    if begun != job.generation:",
        "    if False:",
        _REAL,
    ),
    _outbox(
        "not marked after sending",
        "at-least-once does not send again what was marked",
        "return job.step(_SENT, lambda: function(*own, **kwargs))",
        "return function(*own, **kwargs)",
    ),
    _outbox(
        "marked before sending",
        "at-least-once sends before it marks",
        "return job.step(_SENT, lambda: function(*own, **kwargs))",
        "job.step(_SENT, lambda: None)\n        return function(*own, **kwargs)",
        _REAL,
    ),
    _outbox(
        "lost between mark and send",
        "no effect begins after the loss (R19)",
        "    job.check()\n",
        "",
    ),
    _outbox(
        "key is not the id",
        "a second message with one key is not stored (R40)",
        "task.options(id=_check_key(key), connection=connection)",
        "task.options(connection=connection)",
    ),
    _outbox(
        "another task's job",
        "what has the id of another task's job is not taken for stored (R40)",
        "    if met.task != task.name:",
        "    if False:",
    ),
    _outbox(
        "another message",
        "a message is not taken for stored where another one has its key (R40)",
        "    if others:",
        "    if False:",
        _KEYS,
    ),
    _outbox(
        "compared with what a unique key stands for",
        "a message is compared with what has its key",
        " if met.id == key else []",
        "",
        _KEYS,
    ),
    _outbox(
        "a key that is too long, and whose",
        "a key that is too long is told by its step",
        "    if joined and len(str(key)) > LONGEST:",
        "    if False:",
        _KEYS,
    ),
    _outbox(
        "outside the transaction",
        "a message is there exactly when its transaction commits (D1)",
        "task.options(id=_check_key(key), connection=connection)",
        "task.options(id=_check_key(key))",
    ),
    _outbox(
        "no choice made",
        "what made no choice is no sender (R39)",
        "    if not hasattr(task.function, _CHOICE):",
        "    if False:",
    ),
    _outbox(
        "a third choice",
        "there are two choices",
        "    if deliver not in get_args(Deliver):",
        "    if False:",
    ),
    _outbox(
        "tried more than once",
        "an at-most-once message that failed is not tried again",
        'options.setdefault("max_attempts", 1) != 1',
        'options.get("max_attempts", 1) != 1',
    ),
    _outbox(
        "outage spends the message",
        "a sender that cannot mark comes back unspent",
        "        return job.step(_BEGUN, lambda: job.generation)\n    except (OutcomeUnknown, Unavailable)",
        "        return job.step(_BEGUN, lambda: job.generation)\n    except ZeroDivisionError",
    ),
    _outbox(
        "overtaking",
        "who takes over lets the lost one go first (R39)",
        "job.lost_generation is not None:\n            raise _come_later(lock_delay)\n        return job.step(_SENT",
        "False:\n            raise _come_later(lock_delay)\n        return job.step(_SENT",
    ),
)
