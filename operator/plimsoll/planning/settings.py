"""The engine settings that a plan decides, in the planner's own words; `engines/` turns them into one engine's flags.

Every value is final: the engine's own defaults are filled in already, so that the ledger, the command line and the explanation
all use the same numbers. `derive` works them out.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.dtypes import Dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: who guesses tokens, how many at a time, and what that takes of memory."""

    method: str
    """ngram, draft_model, eagle, eagle3, mtp."""
    tokens: int
    draft_weight_bytes: int = 0
    draft_kv_bytes_per_token: int = 0
    draft_layers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSlots:
    """How many LoRA adapters the engine has room for, and of what rank."""

    max_loras: int
    """Adapters on the GPU at once."""
    max_rank: int
    max_cpu_loras: int
    """Adapters in the host's memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """The model's context stretched beyond what it was trained for."""

    kind: str
    factor: str
    """A decimal, as the user wrote it."""
    original: int | None = None
    theta: float | None = None
    """Base of the model's own rotary positions, which an override must repeat."""
    others: str | None = None
    """What else an override must repeat of the model's own rotary positions, as a JSON object."""
    positions: int | None = None
    """How far the stretched context reaches; None where the engine multiplies the model's own positions by the factor itself."""
    nested: bool = False
    """True where the language model's config is a part of a larger one (text_config)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    utilization: float
    """Share of the device's total memory the engine may take, 0 < u <= 1."""
    kv_cache_bytes: int | None = None
    """Size of the cache where it is fixed and nothing is profiled (shared devices); utilization is then ignored."""
    kv_dtype: Dtype | None = None
    """None is the engine's `auto`: the model's dtype, or the checkpoint's own cache scheme."""
    block_size: int | None = None
    """None is the engine's own choice."""
    prefix_caching: bool = True
    eager: bool = False
    max_graph_batch: int | None = None
    watermark_permille: int = 0
    max_queued_requests: int | None = None
    lora: LoraSlots | None = None
    speculation: Speculation | None = None
    multimodal_items: int | None = None
    """Most images or videos in a prompt; 0 is text only, None the engine's default."""
    rope: RopeScaling | None = None
    kv_offload_bytes: int = 0
    weight_offload_bytes: int = 0

    @property
    def tokens_each(self) -> int:
        """Tokens of a step for each request that may run: with adapters, engines want room to check all its guessed tokens."""
        return 1 if self.lora is None or self.speculation is None else self.speculation.tokens + 1
