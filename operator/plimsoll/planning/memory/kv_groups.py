"""How layers share cache blocks, and so how many blocks, tokens and requests a pool of bytes holds.

The engine hands out blocks of one size from one pool. Layers with the same needs form groups, each with a block table. In models that
mix kinds of layers, groups get about the same width, pages are made equal, and what does not divide evenly is padding. A request then
takes whole blocks in every group. The rules are those of the engine's own planner, and agree to the block with start-up logs. `kv` says
what each layer keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from plimsoll.planning.memory.kv import CacheKind, CacheLayer, CacheRules, CacheSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers that share a block table: their kinds, windows and block sizes are equal, while their pages may differ."""

    layers: tuple[CacheLayer, ...]

    @property
    def spec(self) -> CacheSpec:
        return self.layers[0].spec

    def bytes_on(self, stage: int) -> int:
        return sum(layer.spec.page_bytes for layer in self.layers if layer.stage == stage)

    def blocks_for(self, tokens: int, rules: CacheRules, decode_context: int = 1) -> int:
        """Blocks that one request of this length needs of this group at the worst moment."""
        spec = self.spec
        if spec.kind is CacheKind.STATE:
            return spec.state_blocks
        if spec.kind is CacheKind.FULL:
            return _up(_up(tokens, decode_context), spec.block_tokens)
        back = spec.window - 1 if spec.kind is CacheKind.SLIDING else spec.window
        held = _up(min(back + rules.in_flight_tokens, tokens), spec.block_tokens)
        # One block more, as a window seldom starts where a block does.
        return held + (1 if spec.kind is CacheKind.SLIDING else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """The groups of a model under one layout, and how many blocks, tokens and requests a pool holds with them."""

    groups: tuple[Group, ...]
    block_bytes: tuple[int, ...]
    """Bytes of one block of the pool on each pipeline stage: the pages of the widest group."""
    rules: CacheRules
    decode_context: int = 1

    @property
    def has_state(self) -> bool:
        return any(group.spec.kind is CacheKind.STATE for group in self.groups)

    @property
    def block_tokens(self) -> int:
        """Tokens of a block as the engine's log prints it: those of the group with the smallest blocks."""
        return min((group.spec.block_tokens for group in self.groups), default=self.rules.block_tokens)

    def blocks(self, available: Sequence[float]) -> int:
        """Blocks of the pool where each stage has so many bytes; the stage with the fewest blocks decides for all."""
        fitting = [
            max(0, int(have // need)) for have, need in zip(available, self.block_bytes, strict=True) if need
        ]
        return min(fitting, default=0)

    def blocks_for(self, tokens: int) -> int:
        return sum(group.blocks_for(tokens, self.rules, self.decode_context) for group in self.groups)

    def concurrency(self, blocks: int, tokens: int) -> Fraction:
        needed = self.blocks_for(tokens)
        return Fraction(blocks, needed) if needed else Fraction(0)

    def tokens_line(self, blocks: int, max_model_len: int) -> int:
        """Tokens of the cache as the log of this engine version counts them."""
        if not self.groups:
            return 0
        if self.rules.request_line:
            return int(self.concurrency(blocks, max_model_len) * max_model_len)
        return blocks // len(self.groups) * self.block_tokens * self.decode_context

    def admits(self, blocks: int, max_model_len: int, max_num_seqs: int = 1) -> bool:
        """Whether the engine starts with so many blocks: it holds one back, the others must hold one longest request, and there must be a
        block for the state of every sequence."""
        if self.has_state and max_num_seqs > blocks:
            return False
        return blocks - 1 >= self.blocks_for(max_model_len)

    def bytes_for(self, tokens: int) -> int:
        """Bytes of the pool, on the stage with the largest blocks, that one request of this length needs to be admitted."""
        return (self.blocks_for(tokens) + 1) * max(self.block_bytes, default=0)

    def longest(self, blocks: int, limit: int) -> int:
        """The longest request up to the limit that these blocks admit; 0 where not even one token fits."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.admits(blocks, middle) else (low, middle - 1)
        return low

    @property
    def bytes_per_token(self) -> float:
        """Bytes that one more token takes of the pool on the stage with the largest blocks, with padding."""
        growing = [group for group in self.groups if group.spec.kind is CacheKind.FULL]
        growing = growing or [group for group in self.groups if group.spec.kind is not CacheKind.STATE]
        rate = sum(Fraction(1, group.spec.block_tokens) for group in growing)
        return float(rate * max(self.block_bytes, default=0)) / self.decode_context


def plan_cache(
    layers: Sequence[CacheLayer], rules: CacheRules, *, stages: int = 1, decode_context: int = 1
) -> CachePlan:
    """The groups that the engine would make of these layers."""
    groups = _grouped(layers)
    block_bytes = tuple(
        max((group.bytes_on(stage) for group in groups), default=0) for stage in range(stages)
    )
    return CachePlan(groups=groups, block_bytes=block_bytes, rules=rules, decode_context=decode_context)


def _grouped(layers: Sequence[CacheLayer]) -> tuple[Group, ...]:
    if not layers:
        return ()
    if len({_table(layer.spec) for layer in layers}) == 1:
        return (Group(layers=tuple(layers)),)
    pages = {layer.spec.page_bytes for layer in layers}
    if len(pages) > 1 and not all(layer.spec.stretchable for layer in layers):
        return _packed(layers)
    return _even(_equal_pages(layers))


def _table(spec: CacheSpec) -> tuple[CacheKind, int, int, int]:
    """What layers must agree on to share a block table."""
    return (spec.kind, spec.window, spec.block_tokens, spec.state_blocks)


def _equal_pages(layers: Sequence[CacheLayer]) -> tuple[CacheLayer, ...]:
    """The layers with pages of equal size: smaller ones get more tokens in a block where that comes out even, else padding."""
    largest = max(layer.spec.page_bytes for layer in layers)

    def widened(spec: CacheSpec) -> CacheSpec:
        if spec.kind is CacheKind.STATE or largest % spec.page_bytes:
            return replace(spec, page_bytes=largest)
        ratio = largest // spec.page_bytes
        return replace(spec, page_bytes=largest, block_tokens=spec.block_tokens * ratio)

    return tuple(replace(layer, spec=widened(layer.spec)) for layer in layers)


def _even(layers: Sequence[CacheLayer]) -> tuple[Group, ...]:
    """Groups of equal width. Buckets are layers that may share a table; the width is that of the smallest bucket, or of the largest where
    that has less than half as many layers again."""
    buckets = _buckets(layers)
    sizes = [len(bucket) for bucket in buckets]
    width = max(sizes) if max(sizes) * 2 < min(sizes) * 3 else min(sizes)
    groups: list[Group] = []
    for bucket in buckets:
        count = _up(len(bucket), width)
        # A group takes every count-th layer, so that each pipeline stage gets about the same share of it.
        groups += [Group(layers=tuple(bucket[start::count])) for start in range(count)]
    return tuple(groups)


def _packed(layers: Sequence[CacheLayer]) -> tuple[Group, ...]:
    """Groups whose blocks hold pages of several sizes, as latent attention with scorers or compression needs them.

    The buckets with pages of several sizes set the width, which is how often a page of one size is in a group; windows are split to fit.
    """
    buckets = _buckets(layers)
    repeats = [_most_alike(bucket) for bucket in buckets]
    balanced = [_is_balanced(bucket) for bucket in buckets]
    mixed = [
        count
        for bucket, count, even in zip(buckets, repeats, balanced, strict=True)
        if even and len({layer.spec.page_bytes for layer in bucket}) > 1
    ]
    width = None
    if mixed:
        candidates = [count for count, even in zip(repeats, balanced, strict=True) if even]
        width = _least_padding(candidates, max(mixed))
    counts = [
        _up(count, width) if even and width is not None else 1
        for count, even in zip(repeats, balanced, strict=True)
    ]
    anchor = max(
        _widest(bucket, len(bucket) if _splittable(bucket, width) else count)
        for bucket, count in zip(buckets, counts, strict=True)
    )
    groups: list[Group] = []
    for bucket, least in zip(buckets, counts, strict=True):
        count = least
        if _splittable(bucket, width):
            count = max(count, _up(len(bucket), max(anchor // bucket[0].spec.page_bytes, 1)))
        by_page = _by_page(bucket)
        groups += [
            Group(layers=tuple(layer for same in by_page for layer in same[start::count]))
            for start in range(count)
        ]
    return tuple(groups)


def _buckets(layers: Sequence[CacheLayer]) -> list[list[CacheLayer]]:
    buckets: dict[tuple[CacheKind, int, int, int], list[CacheLayer]] = {}
    for layer in layers:
        buckets.setdefault(_table(layer.spec), []).append(layer)
    return list(buckets.values())


def _by_page(bucket: Sequence[CacheLayer]) -> list[list[CacheLayer]]:
    pages: dict[int, list[CacheLayer]] = {}
    for layer in bucket:
        pages.setdefault(layer.spec.page_bytes, []).append(layer)
    return list(pages.values())


def _most_alike(bucket: Sequence[CacheLayer]) -> int:
    """How many layers of a bucket have pages of the same size, for the size that most of them have."""
    return max(len(same) for same in _by_page(bucket))


def _is_balanced(bucket: Sequence[CacheLayer]) -> bool:
    """Whether a bucket has as many pages of each size as of any other."""
    return len({len(same) for same in _by_page(bucket)}) == 1


def _splittable(bucket: Sequence[CacheLayer], width: int | None) -> bool:
    kind = bucket[0].spec.kind
    return kind is CacheKind.STATE or (width is None and kind is CacheKind.SLIDING)


def _widest(bucket: Sequence[CacheLayer], count: int) -> int:
    return sum(_up(len(same), count) * same[0].spec.page_bytes for same in _by_page(bucket))


def _least_padding(values: Sequence[int], least: int) -> int:
    """The width from `least` on that adds the fewest layers when every count is rounded up to a multiple of it; of equals the larger."""
    widths = range(least, max(*values, least) + 1)
    return min(widths, key=lambda width: (sum(-value % width for value in values), -width))


def _up(value: int, step: int) -> int:
    """value / step, rounded up."""
    return -(-value // step)
