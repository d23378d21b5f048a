"""How much work a decode step and a prompt are: bytes, operations and messages over the device's peaks, and plain counts.

Every amount is either in seconds at a peak rate of the data sheet (bandwidth, dense operations, link) or a count (layers,
collectives, sequences). What an amount costs in practice is fitted and lives in `rates`; how steps and prompts share the
device is `closed_loop`. Nothing here knows a model's name: everything follows from the architecture's layers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    Mixer,
    MoeFfn,
    Part,
    Span,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.weights import bits_per_weight, ffn_parameters, mixer_parameters
from plimsoll.planning.kv import cache_dtype, scorer_key_bytes, state_bytes, token_bytes
from plimsoll.planning.layout import Layout


class Cost(StrEnum):
    """What time goes to. The names are the keys of the fitted constants."""

    DENSE_WEIGHTS = "dense_weights"
    EXPERT_WEIGHTS = "expert_weights"
    EXPERT_TILES = "expert_tiles"
    CACHE_READ = "cache_read"
    DECODE_MATH = "decode_math"
    UNPACKING = "unpacking"
    LAUNCH = "launch"
    EXPERT_LAYER = "expert_layer"
    QUANTIZED_INPUT = "quantized_input"
    ALL_REDUCE = "all_reduce"
    ALL_REDUCE_BYTES = "all_reduce_bytes"
    SEQUENCE = "sequence"
    SEQUENCE_LAYER = "sequence_layer"
    PROMPT_DENSE = "prompt_dense"
    PROMPT_EXPERTS = "prompt_experts"
    PROMPT_ATTENTION = "prompt_attention"
    PROMPT_LINK = "prompt_link"
    PROMPT_LAUNCH = "prompt_launch"
    REQUEST = "request"
    REQUEST_TOKEN = "request_token"  # noqa: S105 - a token of text
    REQUEST_BESIDE = "request_beside"


Amounts = dict[Cost, float]

TILE_ROWS = 32
"""Rows a grouped expert kernel computes at least for an expert that any token chose."""
NETWORK_BYTES_PER_SECOND = 50_000_000_000
"""Per device between nodes (400 Gb/s), where ranks leave the fabric of their links."""
WIDE_FORMATS = (Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One model cut by one layout on one device: everything a step's amounts are computed from."""

    architecture: Architecture
    gpu: Gpu
    layout: Layout
    kv_dtype: Dtype

    @staticmethod
    def of(architecture: Architecture, gpu: Gpu, layout: Layout, asked: Dtype | None) -> Work:
        return Work(
            architecture=architecture, gpu=gpu, layout=layout, kv_dtype=cache_dtype(architecture, asked)
        )

    def bytes_each(self, part: Part) -> float:
        return bits_per_weight(self.architecture.quantization, part, self.architecture.dtype) / 8

    def peak(self, part: Part) -> float:
        """Operations a second of the widest format that this part's matrices can be multiplied in here."""
        return peak(self.gpu, compute_format(self.architecture, part, self.gpu))


def stored_format(architecture: Architecture, part: Part) -> Dtype:
    """The format most of a part's weights are stored in."""
    quantization = architecture.quantization
    size = bits_per_weight(quantization, part, architecture.dtype)
    if quantization is None or size >= architecture.dtype.bits - 1:
        return architecture.dtype
    named = [
        d.dtype or architecture.dtype for d in quantization.deviations if d.part is part and d.share > 0.5
    ]
    return named[0] if named else quantization.weights


def compute_format(architecture: Architecture, part: Part, gpu: Gpu) -> Dtype:
    """What the matrices are multiplied in: the stored format where activations are quantized too and the device has it."""
    stored = stored_format(architecture, part)
    return stored if is_native(stored, gpu) else architecture.dtype


def is_native(stored: Dtype, gpu: Gpu) -> bool:
    """False where weights are unpacked to 16 bits on the way, as 4-bit integers are everywhere and FP4 before Blackwell."""
    return stored is not Dtype.INT4 and (stored in gpu.flops or stored in WIDE_FORMATS)


def peak(gpu: Gpu, dtype: Dtype) -> float:
    """Dense operations a second; a format without a figure of its own runs at 16-bit speed."""
    if dtype in gpu.flops:
        return float(gpu.flops[dtype])
    wide = [gpu.flops[d] for d in WIDE_FORMATS if d in gpu.flops]
    return float(max(wide)) if wide else float(max(gpu.flops.values()))


def decode_step(work: Work, running: float, context: float) -> Amounts:
    """One token for each of `running` sequences that hold `context` tokens on average; a pipeline's stages follow each other."""
    arch, gpu, layout = work.architecture, work.gpu, work.layout
    batch = running / layout.pipeline
    local = batch / layout.data
    amounts = dict.fromkeys(Cost, 0.0)
    for layer, count in Counter(arch.layers).items():
        dense, experts, compute = _layer_weights(work, layer)
        amounts[Cost.DENSE_WEIGHTS] += count * dense / gpu.bandwidth
        amounts[Cost.DECODE_MATH] += count * local * compute
        amounts[Cost.CACHE_READ] += count * local * _cache_bytes(work, layer.mixer, context) / gpu.bandwidth
        amounts[Cost.DECODE_MATH] += count * local * _attention_operations(work, layer.mixer, context)
        amounts[Cost.LAUNCH] += count * launches(layer)
        amounts[Cost.QUANTIZED_INPUT] += count * _quantized_inputs(work, layer)
        amounts[Cost.ALL_REDUCE] += count * _collectives(work, layer)
        if isinstance(layer.ffn, MoeFfn):
            read = experts * share_of_experts_hit(layer.ffn, batch)
            tiles = TILE_ROWS * 2 * read / work.bytes_each(Part.EXPERTS) / work.peak(Part.EXPERTS)
            if is_native(stored_format(arch, Part.EXPERTS), gpu):
                amounts[Cost.EXPERT_WEIGHTS] += count * read / gpu.bandwidth
                amounts[Cost.EXPERT_TILES] += count * tiles
            else:
                amounts[Cost.UNPACKING] += count * tiles
            amounts[Cost.DECODE_MATH] += count * batch * _expert_math(work, layer)
            amounts[Cost.EXPERT_LAYER] += count
    head = arch.vocab * arch.hidden / layout.tensor
    amounts[Cost.DENSE_WEIGHTS] += head * work.bytes_each(Part.LM_HEAD) / gpu.bandwidth
    amounts[Cost.DECODE_MATH] += 2 * local * head / work.peak(Part.LM_HEAD)
    together = batch if arch.is_moe else local
    amounts[Cost.ALL_REDUCE_BYTES] = amounts[Cost.ALL_REDUCE] * together * _message_seconds(work)
    amounts[Cost.SEQUENCE] = running
    amounts[Cost.SEQUENCE_LAYER] = local * len(arch.layers)
    return amounts


def prompt(work: Work, tokens: float, before: float = 0.0) -> Amounts:
    """Prefill of one prompt's `tokens` after `before` tokens that the cache already held."""
    arch = work.architecture
    amounts = dict.fromkeys(Cost, 0.0)
    for layer, count in Counter(arch.layers).items():
        amounts[Cost.PROMPT_DENSE] += count * tokens * _layer_weights(work, layer)[2]
        amounts[Cost.PROMPT_EXPERTS] += count * tokens * _expert_math(work, layer)
        seen = before + tokens / 2
        operations = _attention_operations(work, layer.mixer, seen, expanded=True)
        amounts[Cost.PROMPT_ATTENTION] += count * tokens * operations
        amounts[Cost.PROMPT_LAUNCH] += count * launches(layer)
        amounts[Cost.PROMPT_LINK] += count * _collectives(work, layer) * 2 * tokens * _message_seconds(work)
    return amounts


def request(tokens: float, beside: float) -> Amounts:
    """What a request costs outside the device before its first token: its own handling, its tokens', and its neighbours'."""
    return {Cost.REQUEST: 1.0, Cost.REQUEST_TOKEN: tokens, Cost.REQUEST_BESIDE: beside}


def share_of_experts_hit(ffn: MoeFfn, tokens: float) -> float:
    """Share of the routed experts that at least one of `tokens` tokens chooses, were the choice even.

    Whole experts on each rank or slices of all of them: measured steps of both agree within 1% (MiniMax-M2.5, B200, TP2),
    so no imbalance is added for expert parallelism.
    """
    return float(1.0 - (1.0 - ffn.top_k / ffn.experts) ** tokens)


def _layer_weights(work: Work, layer: Layer) -> tuple[float, float, float]:
    """Bytes a rank reads of the layer's dense parts and of all its routed experts, and seconds a token's dense math takes."""
    arch, layout = work.architecture, work.layout
    cut, whole, small = mixer_parameters(layer.mixer, arch.hidden)
    part = Part.STATE if isinstance(layer.mixer, Mamba | LinearAttention) else Part.ATTENTION
    dense, shared, routed, router = ffn_parameters(layer.ffn, arch.hidden)
    mixing = cut / layout.tensor + whole
    size = mixing * work.bytes_each(part)
    size += (
        dense * work.bytes_each(Part.FFN) + shared * work.bytes_each(Part.SHARED_EXPERTS)
    ) / layout.tensor
    size += (small + router) * arch.dtype.bytes
    compute = 2 * mixing / work.peak(part)
    compute += 2 * dense / layout.tensor / work.peak(Part.FFN)
    compute += 2 * shared / layout.tensor / work.peak(Part.SHARED_EXPERTS)
    return size, routed * work.bytes_each(Part.EXPERTS) / layout.expert_ranks, compute


def _expert_math(work: Work, layer: Layer) -> float:
    """Seconds at peak that one token's chosen experts take, spread over the ranks that hold them."""
    if not isinstance(layer.ffn, MoeFfn):
        return 0.0
    routed = ffn_parameters(layer.ffn, work.architecture.hidden)[2]
    active = routed * layer.ffn.top_k / layer.ffn.experts
    return 2 * active / work.layout.expert_ranks / work.peak(Part.EXPERTS)


def _seen(mixer: Attention | LatentAttention, context: float) -> float:
    """How many earlier tokens a layer looks at when `context` are there."""
    seen = context
    if mixer.window is not None:
        # A chunk is half full on average, a window always is.
        full = (
            mixer.window / 2 if isinstance(mixer, Attention) and mixer.span is Span.CHUNKED else mixer.window
        )
        seen = min(seen, full)
    if isinstance(mixer, LatentAttention) and mixer.compress_ratio > 1:
        seen = (mixer.window or 0) + context / mixer.compress_ratio
    if mixer.indexer is not None:
        seen = min(seen, mixer.indexer.top_k)
    return seen


def _cache_bytes(work: Work, mixer: Mixer | None, context: float) -> float:
    """Bytes of cache that one sequence's next token reads in this layer on one rank."""
    if isinstance(mixer, Mamba | LinearAttention):
        return 2.0 * state_bytes(mixer, work.layout, work.architecture.dtype, 0)
    if mixer is None:
        return 0.0
    own = token_bytes(mixer, work.layout, work.kv_dtype)
    if isinstance(mixer, Attention) and mixer.shares_cache:
        heads = max(1, mixer.kv_heads // work.layout.tensor)
        own = int(heads * (mixer.head_dim + mixer.v_head_dim) * work.kv_dtype.bytes)
    scorer = mixer.indexer
    scored = context / scorer.pool * scorer_key_bytes(scorer) if scorer is not None else 0.0
    return (_seen(mixer, context) * own + scored) / work.layout.decode_context


def _attention_operations(
    work: Work, mixer: Mixer | None, context: float, *, expanded: bool = False
) -> float:
    """Seconds at 16-bit peak for one token to attend to `context` tokens on one rank.

    Decoding reads latents as they are, so every head works in the latent's width; prefill expands them to heads first.
    """
    rate = peak(work.gpu, work.architecture.dtype) * work.layout.tensor
    match mixer:
        case Attention():
            width = mixer.heads * (mixer.head_dim + mixer.v_head_dim)
            return 2 * width * _seen(mixer, context) / rate
        case LatentAttention():
            head = (
                mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
                if expanded
                else 2 * mixer.kv_lora_rank + mixer.qk_rope_head_dim
            )
            operations = 2 * mixer.heads * head * _seen(mixer, context) / rate
            if mixer.indexer is not None:
                scored = 2 * mixer.indexer.heads * mixer.indexer.head_dim * context
                operations += scored / peak(work.gpu, Dtype.FP8)
            return operations
        case Mamba():
            return 6 * mixer.heads * mixer.head_dim * mixer.state_size / rate
        case LinearAttention():
            return 6 * mixer.value_heads * mixer.value_dim * mixer.key_dim / rate
    return 0.0


def launches(layer: Layer) -> int:
    """Kernels of a layer's fixed sequence, near enough: what a step costs however small the batch is."""
    mixer = {Attention: 6, LatentAttention: 10, Mamba: 8, LinearAttention: 9}.get(type(layer.mixer), 0)
    if isinstance(layer.mixer, Attention | LatentAttention) and layer.mixer.indexer is not None:
        mixer += 6
    if layer.ffn is None:
        return mixer
    shared = isinstance(layer.ffn, MoeFfn) and layer.ffn.shared_intermediate > 0
    return mixer + 4 + (3 if shared else 0)


def _quantized_inputs(work: Work, layer: Layer) -> int:
    """Matrix products of a layer before which activations get scales of their own, block by block.

    Other formats fuse the scaling into the kernel before: fixed times of layers in FP8 with one scale, NVFP4 and 16 bits are
    alike (59, 61 and 78 us a layer of 70B on B200 and of 32B on H100), those of FP8 in blocks half as long again.
    """
    quantization = work.architecture.quantization
    if quantization is None or quantization.block is None:
        return 0
    products: list[tuple[Part, int]] = []
    match layer.mixer:
        case Attention():
            products.append((Part.ATTENTION, 2))
        case LatentAttention():
            products.append((Part.ATTENTION, 4))
        case Mamba() | LinearAttention():
            products.append((Part.STATE, 2))
    if isinstance(layer.ffn, MoeFfn):
        products.append((Part.EXPERTS, 2))
        if layer.ffn.shared_intermediate:
            products.append((Part.SHARED_EXPERTS, 2))
    elif layer.ffn is not None:
        products.append((Part.FFN, 2))
    return sum(n for part, n in products if compute_format(work.architecture, part, work.gpu).bits <= 8.5)


def _collectives(work: Work, layer: Layer) -> int:
    """Reductions over ranks after the mixer and after the feed-forward part."""
    layout = work.layout
    mixer = layer.mixer is not None and layout.tensor > 1
    ffn = layer.ffn is not None and (
        layout.tensor > 1 or (isinstance(layer.ffn, MoeFfn) and layout.expert_ranks > 1)
    )
    return mixer + ffn


def _message_seconds(work: Work) -> float:
    """Seconds at the link's peak for one token's hidden state to be reduced once over the ranks, one way."""
    ranks = work.layout.expert_ranks if work.architecture.is_moe else work.layout.tensor
    if ranks == 1:
        return 0.0
    size = work.architecture.hidden * work.architecture.dtype.bytes
    return size * (ranks - 1) / ranks / link_rate(work.gpu, ranks)


def link_rate(gpu: Gpu, ranks: int) -> float:
    """The slowest hop of a collective: the fabric while all ranks are in it, the network beyond."""
    beyond = gpu.link.domain > 1 and ranks > gpu.link.domain
    return float(
        min(gpu.link.bytes_per_second, NETWORK_BYTES_PER_SECOND) if beyond else gpu.link.bytes_per_second
    )
