"""Pages of latent attention that compresses its past: one record for several tokens, beside a short window of tokens as they are.

A layer of this kind keeps up to four caches: a window of recent tokens, compressed records of everything, the keys of the scorer that
picks among the records, and the states of the compressors, which are windows too. Every page is rounded up to what the kernels can
load. The figures were checked against start-up logs of DeepSeek-V4.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from plimsoll.facts.architecture import Indexer, LatentAttention
from plimsoll.facts.dtypes import Dtype

BLOCK_TOKENS = 256
WINDOW_BLOCK_TOKENS = 64
RECORD_ALIGNMENT = 576
"""Bytes that one bulk load takes: pages of packed 8-bit records are whole multiples of it."""
PLAIN_ALIGNMENT = 512
"""The same for other pages."""
OVERLAPPING_RATIO = 4
"""Compressors that make one record of so many tokens look at two neighbouring windows and have a scorer; wider ones do neither."""
STATE_BLOCKS = {4: 4, 128: 8}
"""By ratio: tokens in a block of a compressor's state. The engine chose them so that such a page is about as large as one of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One block of one cache."""

    bytes: int
    block_tokens: int
    window: int = 0
    """Tokens that the cache looks back on; 0 where it keeps everything."""


def is_compressed(mixer: LatentAttention) -> bool:
    return mixer.compress_ratio > 1 or mixer.window is not None


def scorer_key_bytes(indexer: Indexer) -> int:
    """Bytes of one key of a scorer: its values in 8 bits, with one float32 scale for each 128 of them."""
    return indexer.head_dim + 4 * ceil(indexer.head_dim / 128)


def record_bytes(mixer: LatentAttention, dtype: Dtype) -> int:
    """Bytes of one record. In DeepSeek-V4: 448 values in 8 bits with one scale for each 64 and one spare byte, and 64 rope values in 16
    bits, 584 bytes together."""
    latent, rope = mixer.kv_lora_rank, mixer.qk_rope_head_dim
    if dtype is Dtype.FP8:
        return latent + ceil(latent / 64) + 1 + 2 * rope
    return ceil((latent + rope) * dtype.bytes)


def pages(mixer: LatentAttention, dtype: Dtype) -> tuple[Page, ...]:
    """All caches of one layer, in the order the engine makes them."""
    align = RECORD_ALIGNMENT if dtype is Dtype.FP8 else PLAIN_ALIGNMENT
    record = record_bytes(mixer, dtype)
    width = mixer.kv_lora_rank + mixer.qk_rope_head_dim
    found: list[Page] = []
    if mixer.window is not None:
        found.append(
            Page(
                bytes=_rounded(WINDOW_BLOCK_TOKENS * record, align),
                block_tokens=WINDOW_BLOCK_TOKENS,
                window=mixer.window,
            )
        )
    ratio = mixer.compress_ratio
    if ratio <= 1:
        return tuple(found)
    rows = BLOCK_TOKENS // ratio
    found.append(Page(bytes=_rounded(rows * record, align), block_tokens=BLOCK_TOKENS))
    found.append(_state(width, ratio, align))
    if mixer.indexer is not None and ratio == OVERLAPPING_RATIO:
        key = scorer_key_bytes(mixer.indexer)
        found.append(Page(bytes=_rounded(rows * key, align), block_tokens=BLOCK_TOKENS))
        found.append(_state(mixer.indexer.head_dim, ratio, align))
    return tuple(found)


def _state(width: int, ratio: int, align: int) -> Page:
    """The page of a compressor's state: values and scores in float32, of which an overlapping compressor keeps two of each."""
    overlap = 2 if ratio == OVERLAPPING_RATIO else 1
    block = STATE_BLOCKS.get(ratio, 8)
    return Page(
        bytes=_rounded(block * width * 2 * overlap * 4, align),
        block_tokens=block,
        window=overlap * ratio,
    )


def _rounded(size: int, align: int) -> int:
    return align * ceil(size / align)
