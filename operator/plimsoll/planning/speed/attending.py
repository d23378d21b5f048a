"""The work that one token makes in one layer's mixer: how many tokens it looks back at, bytes of cache to read, operations.

What does not depend on the load is worked out once for a layer, a layout and a device, as a plan asks about thousands of loads.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    LinearAttention,
    Mamba,
    Mixer,
    Span,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import state_bytes, token_bytes
from plimsoll.planning.memory.kv_compressed import scorer_key_bytes
from plimsoll.planning.speed.formats import peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Attending:
    """The work of one token in one layer on one rank, where `context` tokens came before it.

    Decoding reads latents as they are, so every head works in the latent's width; prefill expands them to heads first.
    """

    mixer: Attention | LatentAttention | None
    """None where no token is looked back at: there is no mixer, or it has a state of fixed size."""
    state_bytes: float = 0.0
    """Bytes of state to read and to write."""
    state_math: float = 0.0
    """Seconds at the device's peak, as everything called math here."""
    token_bytes: float = 0.0
    """Bytes of cache for each token that is looked at."""
    key_bytes: int = 0
    """Bytes of the scorer's cache for each key; one key stands for `key_tokens` tokens."""
    key_tokens: int = 1
    ranks: int = 1
    """Over how many ranks the tokens of the cache are spread."""
    decode_operations: int = 0
    """Operations for each token that is looked at while decoding."""
    prefill_operations: int = 0
    """The same while a prompt is computed."""
    rate: float = 1.0
    """Operations a second of all ranks that share the heads."""
    scorer_operations: int = 0
    """Operations of the scorer for each token of the context."""
    scorer_rate: float = 1.0

    def read(self, context: float) -> float:
        """Bytes of cache that the next token reads."""
        if self.mixer is None:
            return self.state_bytes
        keys = context / self.key_tokens * self.key_bytes
        return (tokens_seen(self.mixer, context) * self.token_bytes + keys) / self.ranks

    def decode_math(self, context: float) -> float:
        return self._math(self.decode_operations, context)

    def prefill_math(self, context: float) -> float:
        return self._math(self.prefill_operations, context)

    def _math(self, operations: int, context: float) -> float:
        if self.mixer is None:
            return self.state_math
        looked = operations * tokens_seen(self.mixer, context) / self.rate
        return looked + self.scorer_operations * context / self.scorer_rate


def attending(
    architecture: Architecture, gpu: Gpu, layout: Layout, mixer: Mixer | None, kv_dtype: Dtype
) -> Attending:
    """The work in one mixer under a layout on a device."""
    rate = peak(gpu, architecture.dtype) * layout.tensor
    match mixer:
        case None:
            return Attending(mixer=None)
        case Mamba() | LinearAttention():
            elements = (
                mixer.heads * mixer.head_dim * mixer.state_size
                if isinstance(mixer, Mamba)
                else mixer.value_heads * mixer.value_dim * mixer.key_dim
            )
            return Attending(
                mixer=None,
                state_bytes=2.0 * state_bytes(mixer, layout, architecture.dtype, 0),
                state_math=6 * elements / rate,
            )
    scorer = mixer.indexer
    each = float(token_bytes(mixer, layout, kv_dtype))
    scored = 0
    if isinstance(mixer, Attention):
        if mixer.shares_cache:  # it has no cache of its own, but reads that of another layer
            each = (
                max(1, mixer.kv_heads // layout.tensor) * (mixer.head_dim + mixer.v_head_dim) * kv_dtype.bytes
            )
        decode = prefill = mixer.head_dim + mixer.v_head_dim
    else:
        decode = 2 * mixer.kv_lora_rank + mixer.qk_rope_head_dim
        prefill = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
        scored = 0 if scorer is None else 2 * scorer.heads * scorer.head_dim
    return Attending(
        mixer=mixer,
        token_bytes=each,
        key_bytes=0 if scorer is None else scorer_key_bytes(scorer),
        key_tokens=1 if scorer is None else scorer.pool,
        ranks=layout.decode_context,
        decode_operations=2 * mixer.heads * decode,
        prefill_operations=2 * mixer.heads * prefill,
        rate=rate,
        scorer_operations=scored,
        scorer_rate=peak(gpu, Dtype.FP8),
    )


def tokens_seen(mixer: Attention | LatentAttention, context: float) -> float:
    """How many earlier tokens a layer looks at when `context` are there."""
    seen = context
    if mixer.window is not None:
        # On average a chunk is half full, while a window is always full.
        chunked = isinstance(mixer, Attention) and mixer.span is Span.CHUNKED
        seen = min(seen, mixer.window / 2 if chunked else mixer.window)
    if isinstance(mixer, LatentAttention) and mixer.compress_ratio > 1:
        seen = min(context, (mixer.window or 0) + context / mixer.compress_ratio)
    if mixer.indexer is not None:
        seen = min(seen, mixer.indexer.top_k)
    return seen
