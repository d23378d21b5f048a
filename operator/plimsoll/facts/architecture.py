"""What a model is made of, as far as memory and speed depend on it: one frozen value, whatever family the model is of.

A model is a tuple of layers. A layer has a mixer (which looks at other tokens, and so has a cache) and a feed-forward part, either of
which may be absent: a classic decoder has both in each layer, Nemotron-H has one of them in each. Every kind of attention for which
the engine lays out its cache differently is a class here, so that planning never goes by a model's name. `hf_config` reads a
config.json into this value, `weights` counts the bytes of its checkpoint.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from plimsoll.facts.dtypes import Dtype


class Span(StrEnum):
    """How far back a layer of softmax attention looks, which decides how many of its cache blocks are kept."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """The small scorer of sparse attention, which picks the tokens to attend to. It has a cache of its own keys beside the layer's."""

    heads: int
    head_dim: int
    top_k: int
    pool: int = 1
    """Tokens that share one cached key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Softmax attention with separate keys and values: MHA, GQA and MQA by the number of kv heads."""

    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    span: Span = Span.FULL
    window: int | None = None
    shares_cache: bool = False
    """True where the layer reads another layer's cache and owns none (cross-layer sharing, encoders)."""
    values_are_keys: bool = False
    """True where one projection makes both; the cache still holds both."""
    output_gate: bool = False
    """True where the query projection is twice as wide and its second half gates the output."""
    indexer: Indexer | None = None
    """Set where the layer attends only to blocks that a small scorer picks."""
    query_rank: int | None = None
    """Set where queries are made by two matrices with this width between them (Step-3); every rank holds the first one whole."""
    kv_rank: int | None = None
    """The same for keys and values, which are cached as they are in their heads (MiniCPM3)."""
    input_width: int | None = None
    """Set where queries, keys and values are made from more than the model's width (Zamba2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: one compressed vector a token, the same on every tensor-parallel rank."""

    heads: int
    kv_lora_rank: int
    q_lora_rank: int | None
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    indexer: Indexer | None = None
    compress_ratio: int = 0
    """0 or 1: every token is kept; n: one record for n tokens (DeepSeek-V4's compressed groups)."""
    window: int | None = None
    output_lora_rank: int | None = None
    """Set where the output projection is cut in two (DeepSeek-V4), with `output_groups` groups in its first half."""
    output_groups: int = 1
    output_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba:
    """State-space mixer: each sequence has a state of fixed size, and nothing that grows with its length."""

    heads: int
    head_dim: int
    groups: int
    state_size: int
    conv_kernel: int
    state_dtype: Dtype
    dt_rank: int | None = None
    """Set for Mamba 1, which counts as heads of one channel each: `heads` is its inner width, `groups` is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Gated delta nets, Kimi's delta attention and the like: each head has a matrix of fixed size as its state."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    state_dtype: Dtype
    split_conv: bool = False
    """True where q, k and v have a convolution state each (Kimi) instead of one fused one (GDN)."""


Mixer = Attention | LatentAttention | Mamba | LinearAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFfn:
    intermediate: int
    gated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeFfn:
    experts: int
    top_k: int
    intermediate: int
    shared_intermediate: int = 0
    """Width of all shared experts together; 0 where there are none."""
    gated: bool = True
    latent: int | None = None
    """Width that the routed experts work in, where it is not the model's own."""


Ffn = DenseFfn | MoeFfn


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    mixer: Mixer | None
    ffn: Ffn | None


class Part(StrEnum):
    """Groups of linear weights that a checkpoint quantizes, or does not quantize, as a whole."""

    ATTENTION = "attention"
    STATE = "state"
    """Projections of state-space and linear mixers."""
    FFN = "ffn"
    SHARED_EXPERTS = "shared_experts"
    EXPERTS = "experts"
    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    VISION = "vision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A share of a part that is not stored in the checkpoint's main format."""

    part: Part
    dtype: Dtype | None
    """None is the model's own dtype."""
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a checkpoint stores its linear weights; those that are not quantized are in the model's own dtype."""

    method: str
    """As `quant_method` spells it: fp8, compressed-tensors, awq, gptq, mxfp4, modelopt, ..."""
    weights: Dtype
    experts_only: bool = False
    skips_attention: bool = False
    group_size: int | None = None
    block: tuple[int, int] | None = None
    activations: Dtype | None = None
    act_order: bool = False
    kv_cache: Dtype | None = None
    """Set where the checkpoint carries cache scales: the engine then takes this dtype for `auto`."""
    zero_points: bool = False
    deviations: tuple[Deviation, ...] = ()
    """Embedding, head, vision, router and norms are not quantized unless they are named here; all other linear weights are, unless named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionEncoder:
    parameters: int
    hidden: int
    layers: int
    max_item_tokens: int
    """Tokens of the largest single image or video that the processor makes; the profile run encodes as many of these as fit."""
    sharded: bool = False
    """True where tensor parallelism cuts the encoder too, instead of every rank holding it whole."""
    heads: tuple[int, ...] = ()
    """Attention heads of each encoder that ranks must be able to share out evenly: the engine has no other way to run it, unless it is told
    to leave it whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    name: str
    """First of config.json's `architectures`, e.g. Qwen3MoeForCausalLM."""
    layers: tuple[Layer, ...]
    hidden: int
    vocab: int
    max_positions: int
    dtype: Dtype
    tied_embeddings: bool = False
    quantization: Quantization | None = None
    vision: VisionEncoder | None = None
    mtp_layers: int = 0
    attention_bias: bool = False
    encoder: bool = False
    """True for models that pool instead of generating (embedders and rerankers like BERT), which have no cache."""
    extra_embedding_parameters: int = 0
    """Parameters of tables beside the vocabulary's: learned positions, token types, embeddings of each layer."""
    rope_theta: float | None = None
    """Base of the rotary positions, which must be repeated to stretch the context; None where the source does not say."""
    rope_others: str | None = None
    """What else must be repeated of the checkpoint's own mapping of rotary positions, as a JSON object; None where that is nothing."""
    rope_by_layer: bool = False
    """True where near and far layers have a mapping each, which no single one can take the place of."""
    position_table_bytes: int = 0
    """Bytes of rotary tables. They are no part of the checkpoint, but every rank holds them and the engine counts them as weights."""
    supports_pipeline: bool = True
    supports_adapters: bool = True
    only_bfloat16: bool = False
    """True where the engine falls back on float32 on GPUs without bfloat16, and not on float16."""
    distinct_attention: int | None = None
    """How many attention layers, with the feed-forward parts after them, have weights of their own. The others use the same weights again,
    each with a cache of its own. None: all layers have their own."""
    assumed: tuple[str, ...] = ()
    """Fields that the source did not state and a rule filled in. They widen the plan's intervals and are shown to users."""

    def __hash__(self) -> int:
        """A cheap hash, for results that are remembered by model: hashing every layer would take longer than most of them do."""
        return hash((self.name, len(self.layers), self.hidden, self.vocab, self.max_positions))

    @property
    def kinds(self) -> tuple[tuple[Layer, int], ...]:
        """The distinct layers, of which most models have one to three, with how many there are of each; in the order of first appearance."""
        return _kinds(self)

    @property
    def is_moe(self) -> bool:
        return any(isinstance(layer.ffn, MoeFfn) for layer, _ in self.kinds)

    @property
    def is_hybrid(self) -> bool:
        """Whether there are layers with a state of fixed size, as a rule beside layers whose cache grows."""
        return any(isinstance(layer.mixer, Mamba | LinearAttention) for layer, _ in self.kinds)

    @property
    def is_latent(self) -> bool:
        return any(isinstance(layer.mixer, LatentAttention) for layer, _ in self.kinds)


@lru_cache(maxsize=512)
def _kinds(architecture: Architecture) -> tuple[tuple[Layer, int], ...]:
    return tuple(Counter(architecture.layers).items())
