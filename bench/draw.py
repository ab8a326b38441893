"""Bars, drawn as SVG: one a row, in the light or the dark of the page around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LINE = 720, 30
_LEFT, _RIGHT = 210, 90  # room for names, and for figures behind the longest bar

_STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328; }
    .name { text-anchor: end; }
    .tenure { fill: #0969da; } .peer { fill: #8c959f; } .limit { fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }
    .spread { stroke: #1f2328; stroke-width: 1.5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } .tenure { fill: #79c0ff; } .peer { fill: #656c76; } .spread { stroke: #e6edf3; }
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


def draw(title: str, stripes: Sequence[Stripe]) -> str:
    """Draw bars below each other, all on one scale that begins at zero."""
    scale = (WIDTH - _LEFT - _RIGHT) / (max((stripe.most for stripe in stripes), default=1.0) or 1.0)
    height = LINE * len(stripes) + 10
    shapes = "\n".join(_shape(stripe, 5 + LINE * place, scale) for place, stripe in enumerate(stripes))
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
