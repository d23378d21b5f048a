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
    __slots__ = ("_blocks_each", "_idle", "_used")

    def __init__(self, block_size: int) -> None:
        self._blocks_each = -(-PREFIX_BLOCK // block_size)
        self._used: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    def look(self, ids: Sequence[int]) -> tuple[int, int]:
        """Leading ids that are held, and how many of all ids running requests hold already."""
        held = 0
        for one in ids:
            if one not in self._used and one not in self._idle:
                break
            held += 1
        return held, sum(one in self._used for one in ids)

    def blocks(self, ids: int) -> int:
        return ids * self._blocks_each

    def take(self, ids: Sequence[int]) -> int:
        """Hold the ids; returns the blocks that this takes from the free ones."""
        new = 0
        for one in ids:
            users = self._used.get(one, 0)
            if not users:
                self._idle.pop(one, None)
                new += 1
            self._used[one] = users + 1
        return new * self._blocks_each

    def release(self, ids: Sequence[int]) -> int:
        """Let go; returns the blocks that become free, although what they hold may still serve."""
        freed = 0
        for one in reversed(ids):
            users = self._used[one] - 1
            if users:
                self._used[one] = users
            else:
                del self._used[one]
                self._idle[one] = None
                freed += 1
        return freed * self._blocks_each

    def trim(self, free_blocks: int) -> None:
        """Forget what the free memory can no longer hold."""
        while self._idle and len(self._idle) * self._blocks_each > free_blocks:
            self._idle.popitem(last=False)

    def clear(self) -> None:
        self._used.clear()
        self._idle.clear()
