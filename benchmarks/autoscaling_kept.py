"""What `autoscaling` worked out, a line each in a file: a run that was stopped goes on from it, and its tables are printed from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plimsoll
from autoscaling_cells import Cell
from autoscaling_figures import Row

SCORED = "scored"
"""The kind of line that holds the rows of one cell with one seed."""

LEAST = 2
"""What a line begins with: by what it was worked out, and of which kind it is."""


class NothingKept(ValueError):
    """A file from which no table can be printed: a sentence for the user."""


def program() -> str:
    """A digest of all that rows follow from but their traces: those of another law, or of another world, are never taken for ours."""
    # The whole package: which of its rooms a plan or a run comes through changes, and a row that is worked out twice costs only time.
    package = Path(plimsoll.__file__).parent
    files = [Path(__file__).with_name("autoscaling_cells.py")]
    files += sorted(file for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Kept:
    """By size and program, so that a run goes on where it was only if it is the same one."""

    def __init__(self, path: Path | None, size: str) -> None:
        self.path, self.size = path, f"{size} by {program()}"
        self.known: dict[tuple[str, ...], Any] = {}
        if path is not None and path.exists():
            for *key, value in _lines(path):
                self.known[tuple(key)] = value

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return (self.size, *key) in self.known

    def __getitem__(self, key: tuple[str, ...]) -> Any:
        return self.known[self.size, *key]

    def add(self, key: tuple[str, ...], value: Any) -> None:
        self.known[self.size, *key] = value
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                # On a line of its own also after one that was cut.
                file.write("\n" + json.dumps([self.size, *key, value]) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All that one program worked out at one size, whole or not."""

    by: str
    """The size and the program."""
    rows: tuple[Row, ...]

    @property
    def cells(self) -> list[Cell]:
        """In the order in which they were scored first."""
        named = ((row["trace"], row["model"], row["gpu"]) for row in self.rows)
        return [Cell(trace=trace, model=model, gpu=gpu) for trace, model, gpu in dict.fromkeys(named)]

    @property
    def told(self) -> str:
        """Whose it is, and which cells were scored with fewer seeds than others."""
        seeds = {
            cell: {row["seed"] for row in self.rows if _cell(row) == (cell.trace, cell.model, cell.gpu)}
            for cell in self.cells
        }
        most = max(len(one) for one in seeds.values())
        fewer = [
            f"{cell.trace} {cell.model} {cell.gpu} with {len(one)}"
            for cell, one in seeds.items()
            if len(one) < most
        ]
        short = f"; fewer: {', '.join(fewer)}" if fewer else ""
        return f"{self.by}: {len(seeds)} cells with {most} seeds{short}"


def last_of(path: Path) -> Matrix:
    """What a file holds of the size and program that it was last written by: of each trace as it was last, and where rows were worked out
    twice, the last ones."""
    scored = [(by, rows) for by, kind, *_, rows in _lines(path) if kind == SCORED and rows]
    if not scored:
        raise NothingKept(f"{path.name}: holds no cell that was scored to its end")
    last = scored[-1][0]
    if any("second" not in row for by, rows in scored if by == last for row in rows):
        raise NothingKept(
            f"{path.name}: was written when one parameter of each baseline was tuned, not two; score it anew, with a file of its own"
        )
    ours = [rows for by, rows in scored if by == last]
    newest = {_cell(rows[0]): rows[0].get("content") for rows in ours}
    by_seed = {
        (*_cell(rows[0]), rows[0]["seed"]): rows
        for rows in ours
        if rows[0].get("content") == newest[_cell(rows[0])]
    }
    return Matrix(by=last, rows=tuple(row for rows in by_seed.values() for row in rows))


def _lines(path: Path) -> Iterator[list[Any]]:
    """Whole ones: who is stopped in the midst of one leaves a part of it."""
    for line in path.read_text("utf-8", errors="replace").splitlines():
        with suppress(json.JSONDecodeError):
            row = json.loads(line)
            if isinstance(row, list) and len(row) > LEAST:
                yield row


def _cell(row: Row) -> tuple[str, str, str]:
    return row["trace"], row["model"], row["gpu"]
