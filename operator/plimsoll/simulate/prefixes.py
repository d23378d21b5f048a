"""Shared prefixes in one engine's cache: blocks of prompt tokens that requests have in common are held, and computed, once.

A prefix is a row of block ids, each standing for PREFIX_BLOCK tokens. Blocks that nobody uses stay until their memory is
wanted, the longest unused go first: they count as free, as the engine counts them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

PREFIX_BLOCK: Final = 512
"""Tokens that one id of a trace stands for."""


class Prefixes:
    """Which ids are in use, and which are idle but still there.

    Ids and the engine's blocks differ in size. A block counts with the id in which it ends, so one that begins in an id and ends in the
    next is there only with both; and one that goes beyond the last id is not shared at all.
    """

    __slots__ = ("_block_size", "_idle", "_idle_blocks", "_used")

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._used: dict[int, int] = {}
        self._idle: OrderedDict[int, int] = OrderedDict()
        """Ids that no request holds, the longest unused first, each with the blocks that it takes."""
        self._idle_blocks = 0

    def held(self, ids: Sequence[int]) -> int:
        """How many leading ids are there, used or not."""
        used, idle = self._used, self._idle
        return next((place for place, one in enumerate(ids) if one not in used and one not in idle), len(ids))

    def used(self, ids: Sequence[int]) -> int:
        """How many of the ids running requests hold."""
        return sum(map(self._used.__contains__, ids))

    def blocks(self, ids: int) -> int:
        """How many whole blocks so many leading ids fill."""
        return ids * PREFIX_BLOCK // self._block_size

    def take(self, ids: Sequence[int]) -> int:
        """Hold the ids; returns the blocks that this takes from the free ones."""
        used, new = self._used, 0
        for place, one in enumerate(ids):
            if one in used:
                used[one] += 1
            else:
                used[one] = 1
                self._idle_blocks -= self._idle.pop(one, 0)
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
                self._idle[one] = blocks = self._of(place)
                freed += blocks
        self._idle_blocks += freed
        return freed

    def trim(self, free_blocks: int) -> None:
        """Forget what the free memory can no longer hold."""
        while self._idle and self._idle_blocks > max(0, free_blocks):
            self._idle_blocks -= self._idle.popitem(last=False)[1]

    def _of(self, place: int) -> int:
        return self.blocks(place + 1) - self.blocks(place)
