"""Bars and curves, drawn as SVG in the light or the dark of the page around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LINE, CURVES = 720, 30, 320
_LEFT, _RIGHT = 210, 90  # room for names, and for figures behind the longest bar

_STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328; }
    .name { text-anchor: end; }
    .tenure { fill: #0969da; } .peer { fill: #8c959f; } .limit { fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }
    .line { fill: none; stroke-width: 2; } .axis { stroke: #8c959f; stroke-width: 1; }
    .line.tenure { stroke: #0969da; fill: none; } .line.peer { stroke: #8c959f; fill: none; }
    .spread { stroke: #1f2328; stroke-width: 1.5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } .tenure { fill: #79c0ff; } .peer { fill: #656c76; } .spread { stroke: #e6edf3; }
      .line.tenure { stroke: #79c0ff; fill: none; } .line.peer { stroke: #656c76; fill: none; }
    }
"""


@dataclass(frozen=True, slots=True)
class Stripe:
    """One bar: whose it is, its length, the shortest and the longest of the rounds, and what stands behind it."""

    name: str
    role: str
    value: float
    least: float
    most: float
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: whose it is, and its points from left to right, evenly spaced."""

    name: str
    role: str
    points: Sequence[float]


def draw(title: str, stripes: Sequence[Stripe]) -> str:
    """Draw bars below each other, all on one scale that begins at zero."""
    scale = (WIDTH - _LEFT - _RIGHT) / (max((stripe.most for stripe in stripes), default=1.0) or 1.0)
    height = LINE * len(stripes) + 10
    shapes = "\n".join(_shape(stripe, 5 + LINE * place, scale) for place, stripe in enumerate(stripes))
    return _svg(title, height, shapes)


def draw_curves(title: str, places: Sequence[str], curves: Sequence[Curve]) -> str:
    """Draw curves over the same places, on one scale that begins at zero; each bears its name where it ends."""
    top = max([1.0, *(point for curve in curves for point in curve.points)])
    left, right, upper, lower = 50, WIDTH - 150, 15, CURVES - 30
    step = (right - left) / max(1, len(places) - 1)

    def high(value: float) -> float:
        return lower - value / top * (lower - upper)

    shapes = [f'<path class="axis" d="M {left} {lower} H {right} M {left} {high(1.0):.1f} H {right}" fill="none"/>']
    shapes += [
        f'<text class="name" x="{left - 8}" y="{high(share) + 4:.1f}">{share:.0%}</text>' for share in (0.0, 1.0)
    ]
    shapes += [
        f'<text text-anchor="middle" x="{left + step * i:.1f}" y="{lower + 18}">{escape(place)}</text>'
        for i, place in enumerate(places)
    ]
    free = upper - 14.0
    for curve in sorted(curves, key=lambda one: -one.points[-1]):
        line = " ".join(f"{left + step * i:.1f},{high(point):.1f}" for i, point in enumerate(curve.points))
        free = max(free + 14.0, high(curve.points[-1]) + 4)  # below the name above it
        shapes += [
            f'<polyline class="line {curve.role}" points="{line}"/>',
            f'<text x="{right + 8}" y="{free:.1f}">{escape(curve.name)}, {curve.points[-1]:.0%}</text>',
        ]
    return _svg(title, CURVES, "\n".join(f"  {shape}" for shape in shapes))


def _svg(title: str, height: int, shapes: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' role="img" aria-labelledby="title">\n  <title id="title">{escape(title)}</title>\n'
        f"  <style>{_STYLE}  </style>\n{shapes}\n</svg>\n"
    )


def _shape(stripe: Stripe, top: int, scale: float) -> str:
    middle, text = top + LINE // 2, top + LINE // 2 + 4
    length, first, last = (max(1.0, value * scale) for value in (stripe.value, stripe.least, stripe.most))
    lines = [
        f'<text class="name" x="{_LEFT - 10}" y="{text}">{escape(stripe.name)}</text>',
        f'<rect class="{stripe.role}" x="{_LEFT}" y="{top + 6}" width="{length:.1f}" height="{LINE - 12}" rx="2"/>',
        f'<path class="spread" d="M {_LEFT + first:.1f} {middle} H {_LEFT + last:.1f}"/>',
        f'<text x="{_LEFT + last + 8:.1f}" y="{text}">{escape(stripe.label)}</text>',
    ]
    return "\n".join(f"  {line}" for line in lines)
