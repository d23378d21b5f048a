"""The frame of the HTML pages that commands write. Each page is complete in itself: no script, font or picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from plimsoll.cli.errors import BadInput
from plimsoll.cli.written import check_writable, write_file

_OPTION: Final = "--html"
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2733; --dim: #66727f; --rule: #d9dee3; --paper: #ffffff; --a: #0b6bcb; --b: #c2410c; --c: #8a94a0; --mark: #b91c5c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaee; --dim: #93a0ad; --rule: #313b45; --paper: #12171c; --a: #5aa9f5; --b: #f5a15a; --c: #6f7b87; --mark: #f472a6; }
}
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; }
svg { width: 100%; height: auto; } text { fill: var(--dim); font: 11px system-ui, sans-serif; }
.grid { stroke: var(--rule); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.scroll + .scroll { margin-top: .9rem; }
th, td { padding: .2rem .5rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { font-size: .75rem; vertical-align: bottom; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.5rem; }
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of a chart. Its style is one of the page's colours: a, b, c or, where it has it, d."""

    name: str
    style: str
    points: tuple[tuple[float, float], ...]


def page(title: str, body: str, style: str) -> str:
    """A whole page. `body` is HTML; `style` is what this page's charts need in addition to the common style."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}{style}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], style: str = "") -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table class="{style}"><tr>{head}</tr>{body}</table></div>'


def check_page(name: str, *reads: str | None) -> None:
    """Raises BadInput where a page cannot be written, before the minutes of the work that it is about; `reads` are the command's own inputs."""
    if name == "-":
        raise BadInput("--html -: name a file; what is printed is the report itself")
    check_writable(_OPTION, name, *reads)


def write_page(name: str, text: str) -> None:
    write_file(_OPTION, name, text)
