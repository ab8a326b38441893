"""The picture of a run: one lane a worker, one bar a run, what was done to them and what was refused, as SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass
from html import escape
from math import inf

from tenure.proof.history import Call, Fault, History
from tenure.proof.needs import ENDINGS

COLOURS = ("#2f6fb3", "#c77700", "#2c8a57", "#8a4fb0", "#b03a62", "#4a7a80", "#7d6a1f", "#5862a8")
"""The colour of each generation, over again from the ninth on."""

_SECOND = 60.0  # pixels
_LEFT, _TOP, _ROW, _BAR, _GAP = 74.0, 22.0, 13.0, 11.0, 8.0
_WIDE_ENOUGH = 9.0  # pixels for a number to stand in a bar
_DISTURBED = {
    "cut": "the network to the {whom} is cut: {detail}",
    "delay": "the network to the {whom} is slow: {detail}",
    "reorder": "on the way to the {whom}, {detail}",
    "crash": "the store's server is killed, and started again",
    "disk": "the store has no room",
    "jump": "the store's clock jumps {detail}",
}


@dataclass(slots=True)
class Bar:
    """One run of a job by one worker: from its claim to the end of what was heard of it."""

    process: str
    job: str
    generation: int
    began: float
    ended: float
    row: int = 0
    over: bool = False


class Picture:
    """Draws a history; `late` holds the numbers of (process, call) of writes that should have been refused."""

    def __init__(self, history: History, late: Container[tuple[str, int | None]] = ()) -> None:
        self._history = history
        self._late = late
        self._origin = history.origin
        moments = [call.answered or call.sent for call in history.calls if call.process != "run"]
        self._end = max(moments, default=self._origin)
        self._bars: dict[tuple[str, str, int], Bar] = {}
        self._by_job: dict[str, list[Bar]] = defaultdict(list)
        self._rows: dict[str, int] = defaultdict(lambda: 1)
        self._find_bars()
        self._tops = self._find_tops()

    def draw(self) -> str:
        """Return the SVG element."""
        width = self._x(self._end) + 20
        height = max(self._tops.values(), default=_TOP) + 20
        if self._tops:
            last = max(self._tops, key=self._tops.__getitem__)
            height = self._tops[last] + self._rows[last] * _ROW + _GAP
        parts = [*self._axis(height), *self._lanes(width), *self._drawn_bars(), *self._faults()]
        parts += [mark for call in self._history.calls for mark in self._marks(call)]
        return (
            f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
            + "".join(parts)
            + "</svg>"
        )

    # -- where things stand

    def _x(self, moment: float) -> float:
        return _LEFT + (moment - self._origin) * _SECOND

    def _y(self, bar: Bar) -> float:
        return self._tops[bar.process] + bar.row * _ROW

    def _find_bars(self) -> None:
        killed = {fault.whom: fault.began for fault in self._history.faults if fault.what == "kill"}
        for call in self._history.calls:
            if call.job is None or call.generation is None or call.owner is None:
                continue
            key = (call.process, call.job, call.generation)
            heard = call.answered or call.sent
            if call.call == "claim" and call.outcome == "ok":
                bar = self._bars[key] = Bar(*key, heard, heard)
                self._by_job[bar.job].append(bar)
            elif key in self._bars:
                bar = self._bars[key]
                bar.ended, bar.over = max(bar.ended, heard), bar.over or call.call in ENDINGS or call.outcome == "stale"
        for bar in self._bars.values():
            death = killed.get(bar.process, bar.ended)
            if not bar.over and death < self._superseded(bar):
                bar.ended = max(bar.ended, death)
        self._stack()

    def _superseded(self, bar: Bar) -> float:
        """Return when somebody newer was first given the job: whoever goes on after that has to be heard of."""
        return min((one.began for one in self._by_job[bar.job] if one.generation > bar.generation), default=inf)

    def _stack(self) -> None:
        """Give each bar the first row of its lane that is free."""
        free: dict[str, list[float]] = defaultdict(list)
        for bar in sorted(self._bars.values(), key=lambda bar: bar.began):
            ends = free[bar.process]
            bar.row = next((row for row, end in enumerate(ends) if end <= bar.began), len(ends))
            ends[bar.row : bar.row + 1] = [bar.ended]
            self._rows[bar.process] = len(ends)

    def _find_tops(self) -> dict[str, float]:
        names = {call.process for call in self._history.calls if call.process != "run"}
        tops, top = {}, _TOP
        for name in sorted(names, key=lambda name: (len(name), name)):
            tops[name] = top
            top += self._rows[name] * _ROW + _GAP
        return tops

    # -- what is drawn

    def _axis(self, height: float) -> Iterator[str]:
        for second in range(int(self._end - self._origin) + 1):
            x = _LEFT + second * _SECOND
            yield f'<line class="axis" x1="{x}" x2="{x}" y1="14" y2="{height:.0f}"/>'
            yield f'<text class="tick" x="{x + 2}" y="11">{second} s</text>'

    def _lanes(self, width: float) -> Iterator[str]:
        for name, top in self._tops.items():
            high = self._rows[name] * _ROW
            yield f'<rect class="lane" x="0" y="{top - 2}" width="{_LEFT - 6}" height="{high}" rx="3"/>'
            yield f'<text class="name" x="5" y="{top + 9}">{escape(name)}</text>'
            yield f'<line class="axis" x1="0" x2="{width:.0f}" y1="{top + high}" y2="{top + high}"/>'

    def _drawn_bars(self) -> Iterator[str]:
        for bar in self._bars.values():
            x, y = self._x(bar.began), self._y(bar)
            wide = max(2.0, self._x(bar.ended) - x)
            colour = COLOURS[(bar.generation - 1) % len(COLOURS)]
            times = f"{bar.began - self._origin:.3f} s to {bar.ended - self._origin:.3f} s"
            yield (
                f'<rect class="run" data-job="{escape(bar.job)}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{_BAR}"'
                f' rx="2" fill="{colour}"><title>{escape(bar.process)}: job {escape(bar.job)}, generation'
                f" {bar.generation}, {times}</title></rect>"
            )
            if wide >= _WIDE_ENOUGH:
                yield f'<text class="within" x="{x + 2:.1f}" y="{y + 8.5}">{bar.generation}</text>'

    def _faults(self) -> Iterator[str]:
        for fault in self._history.faults:
            if fault.whom in self._tops and fault.what in {"pause", "kill"}:
                yield self._on_a_lane(fault)
            elif fault.what in _DISTURBED:
                wide = max(3.0, self._x(fault.ended or fault.began) - self._x(fault.began))
                title = _DISTURBED[fault.what].format(whom=fault.whom, detail=fault.detail)
                yield (
                    f'<rect class="net" x="{self._x(fault.began):.1f}" y="13" width="{wide:.1f}" height="5">'
                    f"<title>{escape(title)}</title></rect>"
                )

    def _on_a_lane(self, fault: Fault) -> str:
        x, top = self._x(fault.began), self._tops[fault.whom]
        high = self._rows[fault.whom] * _ROW
        if fault.what == "kill":
            shape = f"M{x - 5:.1f} {top}l10 10m0 -10l-10 10"
            return f'<path class="kill" d="{shape}"><title>{escape(fault.whom)} was killed</title></path>'
        wide = self._x(fault.ended or self._end) - x
        return f'<rect class="pause" x="{x:.1f}" y="{top - 1}" width="{wide:.1f}" height="{high}"/>'

    def _marks(self, call: Call) -> Iterator[str]:
        bar = self._bars.get((call.process, call.job or "", call.generation or 0))
        if call.owner is None and call.outcome == "ok" and call.call in {"release", "cancel"}:
            yield from self._stolen(call)
        if bar is None:
            return
        x, y = self._x(call.answered or call.sent), self._y(bar)
        told = f"<title>{escape(call.call)} under generation {call.generation}: {call.outcome}"
        told += "</title>" if call.current is None else f", met generation {call.current}</title>"
        if call.outcome == "stale" and call.call in {"apply", "raise"}:
            yield f'<path class="refused" d="M{x:.1f} {y}l5.5 11h-11z">{told}</path>'
        elif call.outcome == "stale" and call.call in ENDINGS:
            yield f'<circle class="store" cx="{x:.1f}" cy="{y + 5.5}" r="4">{told}</circle>'
        elif call.call == "apply" and (call.process, call.number) in self._late:
            yield f'<circle class="late" cx="{x:.1f}" cy="{y + 5.5}" r="6">{told}</circle>'
        elif call.call == "apply" and call.outcome == "ok":
            yield f'<circle class="wrote" cx="{x:.1f}" cy="{y + 5.5}" r="1.8"/>'

    def _stolen(self, call: Call) -> Iterator[str]:
        for bar in self._bars.values():
            if bar.job == call.job and bar.began <= call.sent <= bar.ended:
                x, y = self._x(call.answered or call.sent), self._y(bar) + 5.5
                yield f'<path class="rival" d="M{x:.1f} {y - 5}l5 5l-5 5l-5 -5z"><title>{call.call}</title></path>'


def swatch(kind: str) -> str:
    """Draw the sign of one kind for the legend."""
    shapes = {
        "run": f'<rect x="0" y="2" width="16" height="11" rx="2" fill="{COLOURS[0]}"/>'
        '<text class="within" x="5" y="10.5">1</text>',
        "wrote": '<circle class="wrote" cx="8" cy="8" r="2.5"/>',
        "refused": '<path class="refused" d="M8 2l5.5 11h-11z"/>',
        "store": '<circle class="store" cx="8" cy="8" r="5"/>',
        "late": '<circle class="late" cx="8" cy="8" r="6"/>',
        "pause": '<rect class="pause" x="0" y="2" width="16" height="11"/>',
        "kill": '<path class="kill" d="M3 3l10 10m0 -10l-10 10"/>',
        "rival": '<path class="rival" d="M8 2l6 6l-6 6l-6 -6z"/>',
        "net": '<rect class="net" x="0" y="5" width="16" height="6"/>',
    }
    return f'<svg width="16" height="16" aria-hidden="true">{shapes[kind]}</svg>'
