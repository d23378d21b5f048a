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

    def held(self, ids: Sequence[int]) -> int:
        """How many leading ids are there, used or not."""
        used, idle = self._used, self._idle
        return next((place for place, one in enumerate(ids) if one not in used and one not in idle), len(ids))

    def used(self, ids: Sequence[int]) -> int:
        """How many of the ids running requests hold."""
        return sum(map(self._used.__contains__, ids))

    def blocks(self, ids: int) -> int:
        return ids * self._blocks_each

    def take(self, ids: Sequence[int]) -> int:
        """Hold the ids; returns the blocks that this takes from the free ones."""
        used, idle = self._used, self._idle
        new = 0
        for one in ids:
            if one in used:
                used[one] += 1
            else:
                used[one] = 1
                idle.pop(one, None)
                new += 1
        return new * self._blocks_each

    def release(self, ids: Sequence[int]) -> int:
        """Let go; returns the blocks that become free, although what they hold may still serve."""
        used, idle = self._used, self._idle
        freed = 0
        for one in reversed(ids):
            if used[one] > 1:
                used[one] -= 1
            else:
                del used[one]
                idle[one] = None
                freed += 1
        return freed * self._blocks_each

    def trim(self, free_blocks: int) -> None:
        """Forget what the free memory can no longer hold."""
        most = max(0, free_blocks) // self._blocks_each
        while len(self._idle) > most:
            self._idle.popitem(last=False)

    def clear(self) -> None:
        self._used.clear()
        self._idle.clear()
