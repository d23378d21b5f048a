"""How output looks: the console, the ledger's bar, tables, and numbers for people.

Colours and block characters are for terminals only. In a pipe or a file the same text is plain and of a fixed width, so that it can be compared
byte for byte.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import click
from rich.cells import cell_len
from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from plimsoll.cli.errors import printable
from plimsoll.facts.gpus import GIB
from plimsoll.planning.interval import Interval
from plimsoll.planning.memory.ledger import Ledger, Verdict

PLAIN_WIDTH: Final = 110
WIDEST: Final = 130
BAR_WIDTH: Final = 56
BESIDE_BAR: Final = 54
"""Characters to the left and right of a bar on its line."""
LEAST_FOLDED: Final = 24
"""The least width of a column of sentences, even if the line becomes longer than the terminal."""

# Letter and colour of each term in the bar, in the order a ledger lists them.
_TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "weights": ("W", "blue"),
    "draft": ("D", "bright_blue"),
    "encoder": ("E", "bright_cyan"),
    "lora": ("L", "cyan"),
    "activation": ("A", "yellow"),
    "graphs": ("G", "bright_yellow"),
    "context": ("C", "magenta"),
    "kv": ("K", "green"),
    "headroom": (".", "bright_black"),
}
VERDICT_STYLE: Final[Mapping[str, str]] = {
    Verdict.FITS: "bold green",
    Verdict.TIGHT: "bold yellow",
    Verdict.DOES_NOT_FIT: "bold red",
}


def console() -> Console:
    """A console for a command's output. rich decides on colours (by terminal and NO_COLOR); the width is set here."""
    stream = sys.stdout
    width = min(Console(file=stream).width, WIDEST) if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False, markup=False)


def show(parts: Iterable[RenderableType]) -> None:
    """Prints the parts below one another. In a pipe lines have no spaces at their ends."""
    target = console()
    if target.is_terminal:
        for part in parts:
            target.print(_harmless(target, part), crop=False)
        return
    with target.capture() as captured:
        for part in parts:
            target.print(_harmless(target, part), crop=False)
    lines = (line.rstrip() for line in captured.get().splitlines())
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


def _harmless(target: Console, part: RenderableType) -> Segments:
    """A part as it is drawn, without control characters that a terminal would obey."""
    return Segments(
        Segment("\n".join(map(printable, text.split("\n"))), style)
        for text, style, control in target.render(part)
        if not control
    )


def is_colourful() -> bool:
    """Whether blocks and colours may be drawn on stdout."""
    target = console()
    return target.is_terminal and not target.no_color and target.color_system is not None


def gib(size: float, places: int = 1) -> str:
    return f"{size / GIB:,.{places}f}"


def count(value: float) -> str:
    return f"{value:,.0f}"


def short(value: float) -> str:
    """A number with three significant digits, for latencies and rates."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def many(number: float, thing: str, show: Callable[[float], str] = count) -> str:
    """A number and what it counts: 1 device, 0.25 devices, 2 devices."""
    return f"{show(number)} {thing}{'' if number == 1 else 's'}"


def spread(interval: Interval, unit: str = "", show: Callable[[float], str] = short) -> str:
    """The expected value and the range that contains 90% of real outcomes: 28 ms (24 to 33)."""
    middle = f"{show(interval.mid)}{unit}"
    if show(interval.low) == show(interval.high):
        return middle
    return f"{middle} ({show(interval.low)} to {show(interval.high)})"


def bar(ledger: Ledger, *, colour: bool, width: int = BAR_WIDTH) -> Text:
    """One GPU's memory as a line of cells, with the load line `|` after what the engine may take.

    Every term that takes anything has a cell. What is to the right of the load line is more than the engine may take.
    """
    sizes = {term.name: max(0.0, term.bytes.mid) for term in ledger.terms}
    drawn = Text()
    for name, cells in _cells(sizes, ledger.device_bytes, width).items():
        letter, style = _TERMS.get(name, ("?", "white"))
        drawn.append(("█" if colour and letter != "." else letter) * cells, style=style)
    line = min(width, round(ledger.budget_bytes / ledger.device_bytes * width))
    over = sum(size for name, size in sizes.items() if name != "headroom") > ledger.device_bytes
    end = Text("] >" if over else "]", style="bold red" if over else "")
    return Text.assemble("[", drawn[:line], ("|", "bold"), drawn[line:], end)


def _cells(sizes: Mapping[str, float], total: float, width: int) -> dict[str, int]:
    """Cells by term: in proportion, at least one each, cut where the sum is more than the GPU has.

    The largest term makes up for rounding, so that terms which end at the load line are drawn up to it.
    """
    wanted = {
        name: max(1, round(size / total * width))
        for name, size in sizes.items()
        if size > 0 and name != "headroom"
    }
    taken = sum(sizes[name] for name in wanted)
    if wanted and taken <= total * 1.001:
        largest = max(wanted, key=lambda name: wanted[name])
        wanted[largest] = max(1, wanted[largest] + round(taken / total * width) - sum(wanted.values()))
    cells, left = {}, width
    for name, number in wanted.items():
        cells[name] = min(number, left)
        left -= cells[name]
    return cells | ({"headroom": left} if left else {})


def bar_width() -> int:
    """The bar's cells, with room for the words beside it on narrow terminals too."""
    return max(20, min(BAR_WIDTH, console().width - BESIDE_BAR))


def legend(ledger: Ledger, *, colour: bool) -> Text:
    """The names of the bar's parts, with their GiB."""
    parts = []
    for term in ledger.terms:
        if term.bytes.mid <= 0 and term.name != "headroom":
            continue
        letter, style = _TERMS.get(term.name, ("?", "white"))
        mark = Text("█" if colour and letter != "." else letter, style=style)
        spoken = _SPOKEN.get(term.name, term.name)
        if term.name == "kv" and ledger.capacity is not None and not ledger.capacity.blocks.high:
            spoken = "left, no cache is kept"
        parts.append(Text.assemble(mark, f" {spoken} {gib(max(0, term.bytes.mid))}"))
    return Text("  ").join(parts)


_SPOKEN: Final[Mapping[str, str]] = {"kv": "KV pool", "headroom": "unused", "lora": "LoRA"}


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    left: Iterable[int] = (0,),
    fold: int | None = None,
    clip: bool = False,
) -> Table:
    """A plain table: numbers to the right, the columns in `left` to the left.

    Column `fold` takes the space that is left and wraps, or is cut to one line with `clip`. Where there is no space left, lines become longer
    than the terminal: a cut number or a missing column would be worse.
    """
    listed = [tuple(row) for row in rows]
    widths = [max(cell_len(str(cell)) for cell in column) for column in zip(heads, *listed, strict=True)]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    lefts = set(left)
    for index, head in enumerate(heads):
        least = None if index == fold else widths[index]
        justify: JustifyMethod = "left" if index in lefts else "right"
        grid.add_column(
            head, justify=justify, no_wrap=index != fold or clip, min_width=least, overflow="fold"
        )
    folded = 0 if fold is None else widths[fold]
    beside = sum(widths) - folded + 2 * (len(widths) - 1)
    room = max(console().width - beside, min(folded, LEAST_FOLDED))
    if beside + room > console().width:
        grid.width = beside + room
    for row in listed:
        grid.add_row(
            *(_cut(cell, room) if clip and index == fold else cell for index, cell in enumerate(row))
        )
    return grid


def figures(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of numbers. Where it is too wide for the terminal it is transposed, if that is narrow enough."""
    listed = [tuple(row) for row in rows]
    upright = table(heads, listed)
    if upright.width is None or not console().is_terminal:
        return upright
    first, *others = zip(heads, *listed, strict=True)
    turned = table(first, others)
    return upright if turned.width is not None else turned


def _cut(cell: str | Text, room: int) -> str:
    text = str(cell)
    return text if len(text) <= room else f"{text[: max(1, room - 1)]}…"


def facts(rows: Iterable[tuple[str, str | Text]], *, indent: int = 2, width: int = 12) -> Padding:
    """Lines of a name and a text. Long texts go on below their beginning."""
    grid = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    grid.add_column(style="bold", no_wrap=True, width=width)
    grid.add_column(overflow="fold", ratio=1)
    for name, said in rows:
        grid.add_row(name, said)
    return Padding(grid, (0, 0, 0, indent), expand=False)
