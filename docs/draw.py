"""Draws the lifecycle of a job from its one table: `docs/lifecycle.svg`, and the table in `docs/protocol.md`.

    python docs/draw.py

Which moves there are, and what stands beside an arrow, comes from `tenure.protocol.lifecycle.TABLE`; only the places of
the boxes and the ways of the arrows are chosen here. A move between two states that have no way yet is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

from tenure.protocol.lifecycle import FINAL, TABLE, Actor, Counter, Move, Need, State

HERE = Path(__file__).parent
DRAWING = HERE / "lifecycle.svg"
PAGE = HERE / "protocol.md"
BEGIN = "<!-- begin: made by docs/draw.py -->"
END = "<!-- end: made by docs/draw.py -->"

WIDTH, HEIGHT = 820, 640
BOX = (140, 50)
LINE = 17  # from one line of text to the next
RING = 6

PLACES = {
    State.AVAILABLE: (410, 60),
    State.RUNNING: (410, 310),
    State.CANCELLED: (105, 180),
    State.DISCARDED: (715, 180),
    State.COMPLETED: (410, 460),
}


@dataclass(frozen=True, slots=True)
class Way:
    """The way of one arrow, and where its text stands: lines of at most `width` letters, the first at `x`, `y`.

    An arrow to nowhere ends in a ring around `ring`.
    """

    path: str
    x: int
    y: int
    anchor: str = "start"
    width: int = 40
    ring: tuple[int, int] | None = None


WAYS = {
    (State.AVAILABLE, State.RUNNING): Way("M 398 85 V 283", 388, 242, "end", width=24),
    (State.RUNNING, State.AVAILABLE): Way("M 422 285 V 87", 432, 225),
    (State.RUNNING, State.RUNNING): Way(
        "M 440 335 V 358 Q 440 368 450 368 H 510 Q 520 368 520 358 V 324 H 482", 532, 342
    ),
    (State.RUNNING, State.COMPLETED): Way("M 410 335 V 433", 400, 400, "end"),
    (State.AVAILABLE, State.CANCELLED): Way("M 340 50 H 102 Q 90 50 90 62 V 153", 110, 41),
    (State.CANCELLED, State.AVAILABLE): Way("M 120 155 V 82 Q 120 70 132 70 H 338", 132, 89, width=20),
    (State.RUNNING, State.CANCELLED): Way("M 340 310 H 117 Q 105 310 105 298 V 207", 116, 284),
    (State.AVAILABLE, State.DISCARDED): Way("M 480 50 H 718 Q 730 50 730 62 V 153", 710, 41, "end"),
    (State.DISCARDED, State.AVAILABLE): Way("M 700 155 V 82 Q 700 70 688 70 H 482", 688, 89, "end", width=20),
    (State.RUNNING, State.DISCARDED): Way("M 480 310 H 703 Q 715 310 715 298 V 207", 706, 284, "end"),
    (State.COMPLETED, None): Way("M 480 460 H 518", 538, 465, ring=(525, 460)),
    (State.CANCELLED, None): Way("M 175 180 H 213", 185, 205, ring=(220, 180)),
    (State.DISCARDED, None): Way("M 645 180 H 607", 635, 205, "end", ring=(600, 180)),
}

HEAD = (
    '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="head" d="M 0 0 L 10 5 L 0 10 z"/></marker>'
)

STYLE = """
    .paper { fill: #ffffff; stroke: #d0d7de; }
    .box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.5; }
    .final { stroke-width: 3; }
    text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328; }
    .state { font-size: 15px; font-weight: 600; text-anchor: middle; }
    .way { fill: none; stroke: #57606a; stroke-width: 1.5; marker-end: url(#head); }
    .head { fill: #57606a; }
    .operator { stroke-dasharray: 6 4; }
    .gone { fill: none; stroke: #57606a; stroke-width: 1.5; }
    .by-claimer { fill: #0969da; }
    .by-operator { fill: #9a3412; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #15191f; stroke: #3d444d; }
      .box { fill: #212830; stroke: #9198a1; }
      text { fill: #e6edf3; }
      .way, .gone { stroke: #9198a1; }
      .head { fill: #9198a1; }
      .by-claimer { fill: #79c0ff; }
      .by-operator { fill: #ffb17a; }
    }
"""


# -- the words


def told(moves: Iterable[Move]) -> list[tuple[Actor, str]]:
    """Tell moves in short lines, each with its actor: those that need and count the same share one."""
    lines: dict[tuple[Actor, str], list[str]] = {}
    for move in moves:
        lines.setdefault((move.actor, "".join(f", {fact}" for fact in facts(move))), []).append(str(move.verb))
    return [(actor, " / ".join(verbs) + rest) for (actor, rest), verbs in lines.items()]


def facts(move: Move) -> Iterator[str]:
    """Say what is true of a move besides its states."""
    if move.need is not Need.NOTHING:
        yield f"if {move.need}"
    if move.counts is not None:
        yield f"{move.counts} + 1"
    if move.raises:
        yield "generation + 1"
    if move.restarts:
        yield "both counts from 0"


def grouped() -> dict[tuple[State, State | None], list[Move]]:
    """Gather the moves of the table by the states that they lead from and to."""
    groups: dict[tuple[State, State | None], list[Move]] = {}
    for move in TABLE:
        groups.setdefault((move.source, move.target), []).append(move)
    return groups


def bounds() -> str:
    """Say which moves go to `discarded` instead when their counter is at its bound."""
    return "; ".join(
        f"{' / '.join(str(move.verb) for move in TABLE if move.counts is counter)} at max_{counter}"
        for counter in Counter
    )


# -- the drawing


def drawing() -> str:
    """Draw the lifecycle as one SVG text that is readable on a light and on a dark screen."""
    groups = grouped()
    missing = groups.keys() - WAYS.keys()
    if missing:
        raise LookupError(f"docs/draw.py knows no way for the moves {sorted(map(str, missing))}: add it to WAYS")
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
        '  <title id="title">The states of a job and the verbs that move it</title>',
        f"  <style>{STYLE}  </style>",
        f"  <defs>{HEAD}</defs>",
        f'  <rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
    ]
    for pair, moves in groups.items():
        parts += arrow(pair, moves)
    for state, (x, y) in PLACES.items():
        parts += box(state, x, y)
    parts += legend(35, 535)
    return "\n".join([*parts, "</svg>", ""])


def arrow(pair: tuple[State, State | None], moves: list[Move]) -> Iterator[str]:
    """Draw the moves between two states as one arrow with its text."""
    way = WAYS[pair]
    kind = "way operator" if all(move.actor is Actor.OPERATOR for move in moves) else "way"
    yield f'  <path class="{kind}" d="{way.path}"/>'
    y = way.y
    for actor, text in told(moves):
        named = text if actor is Actor.OWNER else f"{actor}: {text}"
        for line in wrap(named, way.width):
            yield words(way.x, y, line, anchor=way.anchor, kind=f"by-{actor}")
            y += LINE
    if way.ring is not None:
        yield f'  <circle class="gone" cx="{way.ring[0]}" cy="{way.ring[1]}" r="{RING}"/>'


def box(state: State, x: int, y: int) -> Iterator[str]:
    """Draw one state; those in which a job is over have a thick border."""
    width, height = BOX
    kind = "box final" if state in FINAL else "box"
    corner = f'x="{x - width // 2}" y="{y - height // 2}"'
    yield f'  <rect class="{kind}" {corner} width="{width}" height="{height}" rx="8"/>'
    yield words(x, y + 5, str(state), anchor="middle", kind="state")


def legend(x: int, y: int) -> Iterator[str]:
    """Say what the colours, lines and borders mean."""
    lines = [
        ("by-owner", "no name before a verb: the owner, under its token"),
        ("by-claimer", "claimer: whoever takes a job"),
        ("by-operator", "operator: acts from outside and needs no token; dashed where nobody else may"),
        ("by-owner", f"to discarded instead: {bounds()}"),
        ("by-owner", "thick border: the job is over; ring: its row is gone"),
    ]
    for number, (kind, text) in enumerate(lines):
        yield words(x, y + number * (LINE + 3), text, kind=kind)


def words(x: int, y: int, text: str, *, anchor: str = "start", kind: str = "") -> str:
    """Write one line of text."""
    return f'  <text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


# -- the table


def table() -> str:
    """Write the moves as a Markdown table."""
    rows = ["| who | verb | from | to | needs | generation | counts |", "|---|---|---|---|---|---|---|"]
    for move in TABLE:
        counts = "both from 0" if move.restarts else "" if move.counts is None else f"{move.counts} + 1"
        target = "(gone)" if move.target is None else str(move.target)
        cells = (
            move.actor, move.verb, move.source, target, "" if move.need is Need.NOTHING else move.need,
            "+ 1" if move.raises else "", counts,
        )  # fmt: skip
        rows.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """Put the table between the markers of a page."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main() -> None:
    """Write the drawing and the table."""
    DRAWING.write_text(drawing(), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
