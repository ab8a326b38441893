"""Threads in virtual time: greenlets that one scheduler resumes, one at a time, in an order that only chance decides.

What the worker's modules know of `threading`, `queue` and `time` is here as objects with the same methods, whose waits
hand over to the scheduler instead of to the kernel. Virtual time passes only between two resumptions, so a history of
many seconds takes as long as its Python code takes, and the same seed gives the same history.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

try:
    from greenlet import getcurrent, greenlet
except ImportError as missing:
    raise ImportError("the simulation needs greenlet: pip install 'tenure[simulation]'") from missing

from tenure.worker.part import Gone

_MOST_STEPS: Final = 200_000
_SOONEST: Final = 1e-6  # seconds that every wait lasts at least: a clock that stood still would wait for ever
TIMEOUT: Final = object()
"""What a wait returns that nobody ended."""


class Over(Gone):
    """Raised inside a task whose process is gone; no code of the worker catches it for long."""


class Stuck(Exception):
    """A history that comes to no end."""


class Group(ABC):
    """The tasks of one process: they are frozen together, die together, and share one clock's rate."""

    def __init__(self) -> None:
        self.frozen = False
        self.dead = False
        self.rate = 1.0
        self.deferred: list[tuple[Task, int, Any]] = []

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """Hear of an error that ended one of the tasks."""


class Task:
    """One thread of a group. `ticket` counts its resumptions, so that what comes too late wakes nobody."""

    __slots__ = ("body", "done", "group", "name", "target", "ticket", "waiters")

    def __init__(self, group: Group, name: str, target: Callable[[], object]) -> None:
        self.group, self.name, self.target = group, name, target
        self.ticket, self.done = 0, False
        self.body: greenlet | None = None
        self.waiters: list[Task] = []


class Bodies:
    """Greenlets that run one task after the other: making one costs more than all else that a short task does."""

    def __init__(self) -> None:
        self.ended: Task | None = None  # for the hub; what is given to a switch is kept by who made it
        self._idle: list[greenlet] = []

    def take(self, hub: greenlet) -> greenlet:
        """Lend a greenlet that waits for a task, and switches to the hub when that has `ended`."""
        return self._idle.pop() if self._idle else greenlet(self._live, hub)

    def _live(self, task: Task) -> None:
        me = getcurrent()
        hub = me.parent
        assert hub is not None
        while True:
            try:
                task.target()
            except Over:
                pass
            except Exception as error:  # noqa: BLE001 -- an error of the worker is a finding, not the simulator's end
                task.group.failed(error)
            task.done = True
            task.body = None
            self._idle.append(me)
            self.ended = task
            del task  # who is idle keeps no world of a history that is over
            task = hub.switch()


class Scheduler:
    """Virtual time: everything that will happen, in order; what falls on one moment happens as it was planned.

    Whoever waits sees to what happens next by itself, and hands over to the task that is resumed. Mostly that is the
    same one, and nothing is switched. The *hub*, in which a history is run, is needed only when a task or all is over.
    """

    def __init__(self, bodies: Bodies, chance: Callable[[], float]) -> None:
        self.now = 0.0
        self.current: Task | None = None
        self.over = False
        self._bodies = bodies
        self._chance = chance
        self._plan: list[tuple[float, int, Task | None, Any, Any]] = []  # sorted: so few are quicker than in a heap
        self._number = 0
        self._until = 0.0
        self._value: Any = None  # what the task that is resumed is told
        self._tasks: list[Task] = []
        self._hub = getcurrent()

    # -- for the world

    def at(self, moment: float, action: Callable[..., object], *given: object) -> None:
        """Do `action` at a moment."""
        self._number = number = self._number + 1
        insort(self._plan, (moment, number, None, action, given))

    def spawn(self, group: Group, name: str, target: Callable[[], object]) -> Task:
        """Start a task in a moment."""
        task = Task(group, name, target)
        if not (self.over or group.dead):
            self._tasks.append(task)
            self.wake(task, task)
        return task

    def run(self, until: float) -> None:
        """Let everything happen that is planned up to a moment, or until all is stopped."""
        self._until = until
        while (task := self._next()) is not None:
            (task.body or self._new_body_of(task)).switch(self._value)
            ended, self._bodies.ended = self._bodies.ended, None
            if ended is not None:
                for waiter in ended.waiters:
                    self.wake(waiter, None)

    def _next(self) -> Task | None:
        """Let everything happen up to the next resumption of a task, and return that; None when all is over."""
        plan, until = self._plan, self._until
        self.current = None
        while plan and plan[0][0] <= until:
            self.now, number, task, what, value = plan.pop(0)
            if task is None:
                what(*value)
            elif task.ticket == what and not task.group.dead:
                if task.group.frozen:
                    task.group.deferred.append((task, what, value))
                    continue
                task.ticket += 1
                self.current, self._value = task, value
                if number > _MOST_STEPS:
                    raise Stuck(f"{number} steps were planned by {self.now:.3f} s, the last for {task.name}")
                return task
        self._value = None
        return None

    def thaw(self, group: Group) -> None:
        """Resume what should have been resumed while the group was frozen."""
        group.frozen = False
        deferred, group.deferred = group.deferred, []
        for task, ticket, value in deferred:
            self.wake_at(self.now + 1e-6 + 2e-4 * self._chance(), task, ticket, value)

    def stop(self) -> None:
        """Let nothing happen any more."""
        self.over = True
        self._plan.clear()

    def end(self) -> None:
        """End every task, so that its greenlet can be used again."""
        self.stop()
        for task in self._tasks:
            if task.body is not None:
                task.body.switch(None)  # `over` lets its wait raise
        self._tasks.clear()
        self._bodies.ended = None

    def _new_body_of(self, task: Task) -> greenlet:
        body = task.body = self._bodies.take(self._hub)
        return body

    # -- for tasks

    def park(self, seconds: float | None = None, waiters: list[Task] | None = None) -> Any:
        """Wait until somebody wakes this task, for at most `seconds` of its own clock; TIMEOUT when nobody did.

        Meanwhile it stands among the `waiters`, from where whoever wakes it takes it away.
        """
        task = self.current
        if self.over or task is None or task.group.dead:
            raise Over
        if waiters is not None:
            waiters.append(task)
        if seconds is not None:
            self._number = number = self._number + 1
            seconds /= task.group.rate
            moment = self.now + (seconds if seconds > _SOONEST else _SOONEST)
            insort(self._plan, (moment, number, task, task.ticket, TIMEOUT))
        value = self.switch()
        if value is TIMEOUT and waiters is not None and task in waiters:
            waiters.remove(task)  # so that nothing wakes it from a later wait
        return value

    def switch(self) -> Any:
        """Let others go on until this task is resumed."""
        me = self.current
        try:
            task = self._next()
        except Exception as error:  # noqa: BLE001 -- it is not this task's, but of what happens meanwhile
            value = self._hub.throw(error)
        else:
            body = self._hub if task is None else task.body or self._new_body_of(task)
            value = self._value if task is me else body.switch(self._value)
        if self.over:
            raise Over
        return value

    def task(self) -> Task:
        """Return the task that is running; raises Over when it must not run any more."""
        task = self.current
        if self.over or task is None or task.group.dead:
            raise Over
        return task

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of this task's own clock."""
        self.park(seconds)

    def wake(self, task: Task, value: Any) -> None:
        """Resume a waiting task in a moment."""
        if not self.over:
            self._number = number = self._number + 1
            insort(self._plan, (self.now + 1e-6 + 2e-4 * self._chance(), number, task, task.ticket, value))

    def wake_at(self, moment: float, task: Task, ticket: int, value: Any) -> None:
        """Resume a task at a moment, now if that is past, unless it was resumed before that."""
        self._number = number = self._number + 1
        moment = moment if moment > self.now else self.now
        insort(self._plan, (moment, number, task, ticket, value))


# -- what the modules of the worker see


class Event:
    """Stands for `threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False
        self._waiters: list[Task] = []

    def is_set(self) -> bool:
        """Say whether it is set."""
        return self._set

    def set(self) -> None:
        """Set it and wake who waits."""
        if not self._set:
            self._set = True
            for task in self._waiters:
                self._scheduler.wake(task, None)
            self._waiters.clear()

    def clear(self) -> None:
        """Make it wait again."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for at most `timeout` seconds."""
        if not self._set:
            self._scheduler.park(timeout, self._waiters)
        return self._set


class Condition:
    """Stands for `threading.Condition`. Its lock needs no code: nobody runs between two waits of a task."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiters: list[Task] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def wait(self, timeout: float | None = None) -> bool:
        """Wait to be notified, for at most `timeout` seconds."""
        return self._scheduler.park(timeout, self._waiters) is not TIMEOUT

    def notify(self) -> None:
        """Wake who waits; all of them, which a waiter must bear anyway."""
        for task in self._waiters:
            self._scheduler.wake(task, None)
        self._waiters.clear()

    notify_all = notify


class Thread:
    """Stands for `threading.Thread`: a task in the process of whoever starts it."""

    def __init__(self, scheduler: Scheduler, target: Callable[[], object], name: str) -> None:
        self._scheduler = scheduler
        self._target = target
        self.name = name
        self._task: Task | None = None

    def start(self) -> None:
        """Start the task."""
        self._task = self._scheduler.spawn(self._scheduler.task().group, self.name, self._target)

    def is_alive(self) -> bool:
        """Say whether it was started and has not ended."""
        return self._task is not None and not self._task.done

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if self._task is not None and self.is_alive():
            self._scheduler.park(timeout, self._task.waiters)


class SimpleQueue:
    """Stands for `queue.SimpleQueue`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: list[Any] = []  # so few that a deque would be slower
        self._waiters: list[Task] = []

    def put(self, item: Any) -> None:
        """Append an item and wake one waiter."""
        self._items.append(item)
        if self._waiters:
            self._scheduler.wake(self._waiters.pop(0), None)

    def get(self) -> Any:
        """Take the oldest item, waiting for one."""
        while not self._items:
            self._scheduler.park(waiters=self._waiters)
        return self._items.pop(0)


class Stage:
    """Where histories are played one after the other: `scheduler` is that of the history that is being played."""

    def __init__(self) -> None:
        self.bodies = Bodies()
        self.scheduler: Scheduler
        self.threading = _Threading(self)
        self.queue = _Queue(self)
        self.time = _Time(self)


class _Threading:
    """Stands for the module `threading`."""

    Lock, RLock = staticmethod(threading.Lock), staticmethod(threading.RLock)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def Event(self) -> Event:  # noqa: N802 -- the name is that of the module
        return Event(self._stage.scheduler)

    def Condition(self) -> Condition:  # noqa: N802 -- the name is that of the module
        return Condition(self._stage.scheduler)

    def Thread(self, *, target: Callable[[], object], name: str, daemon: bool) -> Thread:  # noqa: ARG002, N802 -- the same
        return Thread(self._stage.scheduler, target, name)

    def current_thread(self) -> object:
        return self._stage.scheduler.current


class _Queue:
    """Stands for the module `queue`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def SimpleQueue(self) -> SimpleQueue:  # noqa: N802 -- the name is that of the module
        return SimpleQueue(self._stage.scheduler)


class _Time:
    """Stands for the module `time`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def sleep(self, seconds: float) -> None:
        self._stage.scheduler.sleep(seconds)
