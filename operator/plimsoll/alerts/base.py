"""What an alert is. Each has a module of its own and a page docs/runbooks/NAME.md; `rules` makes the rules of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["warning", "critical"]
WHO: Final = "{{ $labels.namespace }}/{{ $labels.llm }}"
"""The resource, in the words of a template."""
NAMED: Final = "{{ $labels.llm }} -n {{ $labels.namespace }}"
"""The same as a command takes it."""


SWINGS: Final = "5m"
"""How long an alert about measured load still fires once it does not hold: load swings, and whoever was called is not to be called again
by each swing."""


@dataclass(frozen=True, slots=True)
class Level:
    """When it fires, and how much that matters. A graver level of the same alert comes after the lighter one."""

    severity: Severity
    expr: str
    lasting: str
    """How long it must hold, as Prometheus writes times."""
    where: str = ""
    """From where on, where an alert has several levels: `above 5%`."""
    keeps: str = ""
    """How long it still fires once that does not hold any more, where what it tells of comes and goes."""

    @property
    def told(self) -> str:
        return f"{self.severity} {self.where}".rstrip()

    @property
    def lasts(self) -> str:
        """As pages tell it."""
        return f"{self.lasting}, and still {self.keeps} later" if self.keeps else self.lasting


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    name: str
    summary: str
    description: str
    """What it means and what cures it, in a few sentences: read at night, before the runbook is."""
    levels: tuple[Level, ...]

    @property
    def alert(self) -> str:
        """As Prometheus knows it."""
        return f"Plimsoll{self.name}"

    @property
    def runbook(self) -> str:
        return f"docs/runbooks/{self.name}.md"
