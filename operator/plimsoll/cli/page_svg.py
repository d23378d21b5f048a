"""What the charts of all pages are drawn on: their edges, the lines of their grid, and the picture around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from plimsoll.cli.drawing import short


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A picture's size, and how much of it at each edge is left to names and numbers."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    @property
    def end(self) -> int:
        """Where the axis of the load, or of time, ends."""
        return self.width - self.right

    @property
    def floor(self) -> int:
        """Where values are lowest."""
        return self.height - self.bottom

    def level(self, style: str, y: float) -> str:
        """A line over the whole width."""
        return f'<line class="{style}" x1="{self.left}" x2="{self.end}" y1="{y:.1f}" y2="{y:.1f}"/>'

    def graded(self, y: float, value: float) -> Iterator[str]:
        """A line of the grid, and the value that it stands for."""
        yield self.level("grid", y)
        yield f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'

    def picture(self, title: str, parts: Iterable[str]) -> str:
        drawn = "".join(parts)
        return f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(title)}">{drawn}</svg>'
