"""Shared prefixes in one engine's cache: blocks of prompt tokens that requests have in common are held, and computed, once.

A prefix is a row of ids, each standing for so many tokens. What nobody uses stays until its memory is wanted. Free blocks stand in a
row: they are taken at its head and come back to its end, so that the longest unused is lost first, whoever takes its place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from plimsoll.simulate.tables import Tables

PREFIX_BLOCK: Final = 512
"""Tokens that one id of a trace stands for."""


class Prefixes:
    """Which ids are in use, and which are idle but still there.

    Ids and the engine's blocks differ in size. A block counts with the id in which it ends, so one that begins in an id and ends in the
    next is there only with both; and one that goes beyond the last id is not shared at all.
    """

    __slots__ = ("_cycle", "_each", "_each_cycle", "_last", "_row", "_row_blocks", "_used")

    def __init__(self, tables: Tables, tokens_each: int = PREFIX_BLOCK) -> None:
        self._cycle, self._each_cycle = tables.cycle, tables.each_cycle
        self._each = tokens_each
        self._used: dict[int, int] = {}
        self._row: OrderedDict[object, int] = OrderedDict()
        """The free blocks, by idle id, and those between them that hold nothing of use, each such part by an object of its own."""
        self._row_blocks = 0
        """Those in the row, from the head of which some may have been taken since `trim`."""
        self._last: object = None
        """The part without an id that was last begun."""

    @property
    def begun(self) -> bool:
        """Whether any id was ever asked for: until then nothing needs to be remembered."""
        return bool(self._row_blocks or self._used)

    def shareable(self, ids: Sequence[int], tokens: int) -> Sequence[int]:
        """Those that lie within a prompt of so many tokens."""
        return ids[: tokens // self._each]

    def held(self, ids: Sequence[int]) -> int:
        """How many leading ids are there, used or not."""
        used, row = self._used, self._row
        return next((place for place, one in enumerate(ids) if one not in used and one not in row), len(ids))

    def used(self, ids: Sequence[int]) -> int:
        """How many of the ids running requests hold."""
        return sum(map(self._used.__contains__, ids))

    def tokens(self, ids: int) -> int:
        """How many tokens of so many leading ids are in whole blocks."""
        return ids * self._each // self._cycle * self._cycle

    def blocks(self, ids: int) -> int:
        """How many whole blocks so many leading ids fill."""
        return ids * self._each // self._cycle * self._each_cycle

    def take(self, ids: Sequence[int]) -> int:
        """Hold the ids; returns the blocks that this takes from the free ones."""
        used, new = self._used, 0
        for place, one in enumerate(ids):
            if one in used:
                used[one] += 1
            else:
                used[one] = 1
                self._row_blocks -= self._row.pop(one, 0)
                new += self._of(place)
        return new

    def release(self, ids: Sequence[int]) -> int:
        """Let go; returns the blocks that become free, although what they hold may still serve."""
        used, freed = self._used, 0
        for place in reversed(range(len(ids))):
            one = ids[place]
            if used[one] > 1:
                used[one] -= 1
            else:
                del used[one]
                self._row[one] = blocks = self._of(place)
                freed += blocks
        self._row_blocks += freed
        return freed

    def freed(self, blocks: int) -> None:
        """So many that nobody else would ask for become free."""
        row = self._row
        if not row or next(reversed(row)) is not self._last:
            self._last = object()
            row[self._last] = 0
        row[self._last] += blocks
        self._row_blocks += blocks

    def trim(self, free_blocks: int) -> None:
        """Forget what is no longer among so many free blocks."""
        over = self._row_blocks - max(0, free_blocks)
        if over < 0:
            # Nothing was remembered until now.
            self.freed(-over)
            return
        self._row_blocks -= over
        while over > 0:
            over -= self._row.popitem(last=False)[1]
        if over < 0:
            # Of an id whose last blocks are gone, the others are not counted on.
            rest = object()
            self._row[rest] = -over
            self._row.move_to_end(rest, last=False)

    def _of(self, place: int) -> int:
        return self.blocks(place + 1) - self.blocks(place)
