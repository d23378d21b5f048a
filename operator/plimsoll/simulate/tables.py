"""How many blocks of its engine's pool a request holds.

All layers of most models keep every token, in one table of blocks. Models that mix kinds of layers have several tables, all from the
one pool: those of layers that keep every token grow with the request, those of a window or a state do not. What such a table holds at
its longest is taken when the request is admitted, although a window that is not full yet grows into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm

from plimsoll.planning.memory.kv import CacheKind
from plimsoll.planning.memory.kv_groups import CachePlan, Group


@dataclass(frozen=True)
class Tables:
    growing: tuple[int, ...]
    """Tokens of a block, of each table that keeps every token."""
    bounded: tuple[tuple[int, int], ...] = ()
    """Tokens of a block, and the most blocks that a request holds, of each of the others."""

    @classmethod
    def of(cls, plan: CachePlan) -> Tables:
        growing, bounded = [], []
        for group in plan.groups:
            if group.spec.kind is CacheKind.FULL:
                growing.append(group.spec.block_tokens * plan.decode_context)
            else:
                bounded.append(_bounded(group))
        return cls(growing=tuple(growing), bounded=tuple(bounded))

    @cached_property
    def only(self) -> int:
        """Tokens of a block where there is one table, which grows; else 0."""
        return self.growing[0] if len(self.growing) == 1 and not self.bounded else 0

    @cached_property
    def cycle(self) -> int:
        """Tokens after which the tables grow as before: what is shared of a prompt ends at a multiple of these."""
        return lcm(*self.growing)

    @cached_property
    def each_cycle(self) -> int:
        """Blocks that a request takes in so many tokens."""
        return sum(self.cycle // block for block in self.growing)

    def held(self, tokens: int, longest: int) -> int:
        """Blocks of a request that has so many tokens in the cache, and in the end `longest`."""
        return sum(-(-tokens // block) for block in self.growing) + sum(
            min(most, -(-longest // block)) for block, most in self.bounded
        )


def _bounded(group: Group) -> tuple[int, int]:
    spec = group.spec
    if spec.kind is CacheKind.STATE:
        return 1, spec.state_blocks
    if spec.kind is CacheKind.CHUNKED:
        return spec.block_tokens, -(-spec.window // spec.block_tokens)
    # One block more, as a window seldom starts where a block does.
    return spec.block_tokens, -(-(spec.window - 1) // spec.block_tokens) + 1


class Growth:
    """How many new blocks the sequences that decode need in each step: a token each, and a block wherever the last one is full."""

    __slots__ = ("_needs", "_tables")

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._needs = [0] * tables.cycle
        """By the step's number modulo the cycle."""

    def count(self, full: int, by: int) -> None:
        """Count a sequence in, or out, whose blocks are all full before step number `full`."""
        for block in self._tables.growing:
            for place in range(full % block, len(self._needs), block):
                self._needs[place] += by

    def at(self, step: int) -> int:
        return self._needs[step % len(self._needs)]

    def over(self, steps: int, *, begin: int, decoding: int) -> int:
        """Blocks that so many steps take."""
        needs = self._needs
        cycle = len(needs)
        cycles, rest = divmod(steps, cycle)
        start = begin % cycle
        end = start + rest
        part = sum(needs[start:end]) if end <= cycle else sum(needs[start:]) + sum(needs[: end - cycle])
        return cycles * self._tables.each_cycle * decoding + part

    def with_room(self, most: int, *, begin: int, decoding: int, free: int) -> int:
        """For how many steps, up to so many, the free blocks suffice."""
        each, cycle = self._tables.each_cycle * decoding, len(self._needs)
        if (most // cycle + 1) * each <= free:
            return most
        needs = self._needs
        cycles, rest = divmod(free, each)
        steps = cycles * cycle
        while steps < most and rest >= needs[(begin + steps) % cycle]:
            rest -= needs[(begin + steps) % cycle]
            steps += 1
        return min(steps, most)
