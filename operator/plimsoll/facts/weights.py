"""How many bytes a checkpoint's weights take by its architecture, by the parts that parallelism treats differently.

They are the parameters of every mixer and feed-forward part, times the bits in which its quantization stores them, with scales and zero
points. `tensors` has the exact bytes where tensor headers are known. What the engine adds when it loads (padding, repacking, copies) is
counted by the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    DenseFfn,
    Ffn,
    Indexer,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    Mixer,
    MoeFfn,
    Part,
    Quantization,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.model import Certainty, WeightBytes


def weights_from_architecture(arch: Architecture) -> WeightBytes:
    """The bytes of every part: its parameters times the bits of its format."""
    sharded = replicated = state = ffn = shared = experts = plain = 0
    for layer in _with_own_weights(arch):
        cut, whole, small = mixer_parameters(layer.mixer, arch.hidden)
        if _is_recurrent(layer):
            state += cut
        else:
            sharded += cut
        replicated += whole
        plain += small
        dense, common, routed, router = ffn_parameters(layer.ffn, arch.hidden)
        ffn += dense
        shared += common
        experts += routed
        plain += router + 2 * arch.hidden
    table = arch.vocab * arch.hidden
    size = _Sizes(arch)
    return WeightBytes(
        embedding=size.of(Part.EMBEDDING, table) + size.plain(arch.extra_embedding_parameters),
        lm_head=0 if arch.tied_embeddings or arch.encoder else size.of(Part.LM_HEAD, table),
        attention_sharded=size.of(Part.ATTENTION, sharded) + size.of(Part.STATE, state),
        attention_replicated=size.of(Part.ATTENTION, replicated),
        ffn=size.of(Part.FFN, ffn) + size.of(Part.SHARED_EXPERTS, shared),
        experts=size.of(Part.EXPERTS, experts),
        router_and_norms=size.plain(plain + arch.hidden),
        vision=size.of(Part.VISION, arch.vision.parameters) if arch.vision else 0,
        mtp=_mtp_bytes(arch, size),
        certainty=Certainty.ASSUMED if arch.assumed else Certainty.CALIBRATED,
    )


def _with_own_weights(arch: Architecture) -> Iterator[Layer]:
    attending = 0
    for layer in arch.layers:
        attending += isinstance(layer.mixer, Attention | LatentAttention)
        if arch.distinct_attention is None or attending <= arch.distinct_attention or _is_recurrent(layer):
            yield layer


def _is_recurrent(layer: Layer) -> bool:
    return isinstance(layer.mixer, Mamba | LinearAttention)


class _Sizes:
    """Bytes that parameters take, by the format of their part."""

    def __init__(self, arch: Architecture) -> None:
        self._quantization = arch.quantization
        self._dtype = arch.dtype

    def plain(self, parameters: int) -> int:
        return math.ceil(parameters * self._dtype.bytes)

    def of(self, part: Part, parameters: int) -> int:
        return math.ceil(parameters * bits_per_weight(self._quantization, part, self._dtype) / 8)


_NEVER_BY_DEFAULT = frozenset({Part.EMBEDDING, Part.LM_HEAD, Part.VISION})


def bits_per_weight(quantization: Quantization | None, part: Part, dtype: Dtype) -> float:
    """Mean bits of a stored weight of this part, with its share of scales and zero points."""
    if quantization is None:
        return dtype.bits
    others = [d for d in quantization.deviations if d.part is part]
    rest = 1.0 - sum(d.share for d in others)
    main = dtype.bits if part in _NEVER_BY_DEFAULT else stored_bits(quantization, quantization.weights)
    return rest * main + sum(
        d.share * (dtype.bits if d.dtype is None else stored_bits(quantization, d.dtype)) for d in others
    )


def stored_bits(quantization: Quantization, dtype: Dtype) -> float:
    """Bits of one weight with its part of the scales: each group of integers has a scale of 16 bits and may have a zero point, each block of
    FP8 a scale of 32 bits."""
    if dtype in {Dtype.INT4, Dtype.INT8} and quantization.group_size:
        zero = dtype.bits if quantization.zero_points else 0.0
        return dtype.bits + (16.0 + zero) / quantization.group_size
    if dtype is Dtype.FP8 and quantization.block:
        rows, columns = quantization.block
        return dtype.bits + 32.0 / (rows * columns)
    return dtype.bits


def mixer_parameters(mixer: Mixer | None, hidden: int) -> tuple[int, int, int]:
    """Three numbers of parameters: those that are cut over ranks, those that each rank holds whole, and small ones that are never quantized."""
    match mixer:
        case Attention():
            return _softmax(mixer, hidden)
        case LatentAttention():
            return _latent(mixer, hidden)
        case Mamba():
            return _mamba(mixer, hidden)
        case LinearAttention():
            return _linear(mixer, hidden)
    return 0, 0, 0


def _softmax(mixer: Attention, hidden: int) -> tuple[int, int, int]:
    query = mixer.heads * mixer.head_dim * (2 if mixer.output_gate else 1)
    keys = mixer.kv_heads * mixer.head_dim
    values = mixer.kv_heads * mixer.v_head_dim  # loaded a second time where they are the keys
    width = mixer.input_width or hidden
    cut = (mixer.query_rank or width) * query + (mixer.kv_rank or width) * (keys + values)
    cut += hidden * mixer.heads * mixer.v_head_dim
    whole = width * ((mixer.query_rank or 0) + (mixer.kv_rank or 0)) + _indexer(mixer.indexer, hidden, hidden)
    return cut, whole, 2 * mixer.head_dim


def _indexer(indexer: Indexer | None, hidden: int, query_rank: int) -> int:
    if indexer is None:
        return 0
    return query_rank * indexer.heads * indexer.head_dim + hidden * (indexer.head_dim + indexer.heads)


def _latent(mixer: LatentAttention, hidden: int) -> tuple[int, int, int]:
    head = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim
    query_in = mixer.q_lora_rank or hidden
    down = hidden * (mixer.q_lora_rank or 0) + hidden * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
    down += _indexer(mixer.indexer, hidden, query_in)
    up = query_in * mixer.heads * head
    if mixer.output_lora_rank is None:
        up += mixer.kv_lora_rank * mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
        up += mixer.heads * mixer.v_head_dim * hidden
    else:  # keys are the latent itself, and the output goes down by groups before it goes up
        up += mixer.heads * mixer.v_head_dim * mixer.output_lora_rank
        up += mixer.output_groups * mixer.output_lora_rank * hidden
    if mixer.output_gate:
        up += hidden * mixer.heads * mixer.v_head_dim
    return up, down, (mixer.q_lora_rank or 0) + mixer.kv_lora_rank


def _mamba(mixer: Mamba, hidden: int) -> tuple[int, int, int]:
    inner = mixer.heads * mixer.head_dim
    if mixer.dt_rank is not None:
        cut = (
            hidden * 2 * inner
            + inner * (mixer.dt_rank + 2 * mixer.state_size)
            + mixer.dt_rank * inner
            + inner * hidden
        )
        return cut, 0, inner * (mixer.state_size + mixer.conv_kernel + 3)
    if mixer.state_size == 0:  # a short convolution between two gates
        return 4 * hidden * inner, 0, inner * mixer.conv_kernel
    mixed = inner + 2 * mixer.groups * mixer.state_size
    cut = hidden * (inner + mixed + mixer.heads) + inner * hidden
    return cut, 0, mixed * (mixer.conv_kernel + 1) + 3 * mixer.heads + inner


def _linear(mixer: LinearAttention, hidden: int) -> tuple[int, int, int]:
    keys, values = mixer.key_heads * mixer.key_dim, mixer.value_heads * mixer.value_dim
    conv = (2 * keys + values) * mixer.conv_kernel
    if mixer.split_conv:  # decay and output gate go through a narrow pair of matrices each
        cut = hidden * (2 * keys + values) + values * hidden + hidden * mixer.value_heads
        return cut + 2 * mixer.value_dim * values, 2 * hidden * mixer.value_dim, conv + 3 * values
    cut = hidden * (2 * keys + 2 * values + 2 * mixer.value_heads) + values * hidden
    return cut, 0, conv + 2 * mixer.value_heads + mixer.value_dim


def ffn_parameters(ffn: Ffn | None, hidden: int) -> tuple[int, int, int, int]:
    """Four numbers of parameters: of the dense part, the shared experts, the routed experts, and the router with the matrices that bring
    tokens to a narrower width and back. The last are held whole by every rank, and are never quantized."""
    match ffn:
        case DenseFfn():
            return (3 if ffn.gated else 2) * hidden * ffn.intermediate, 0, 0, 0
        case MoeFfn():
            matrices = 3 if ffn.gated else 2
            width = ffn.latent or hidden
            around = 2 * hidden * ffn.latent if ffn.latent else 0
            return (
                0,
                matrices * hidden * ffn.shared_intermediate,
                ffn.experts * matrices * width * ffn.intermediate,
                ffn.experts * (hidden + 1) + around,
            )
    return 0, 0, 0, 0


def _mtp_bytes(arch: Architecture, size: _Sizes) -> int:
    """Bytes of the draft layers in the checkpoint: each is like the model's last full layer, with a projection of two hidden states."""
    if not arch.mtp_layers:
        return 0
    mixer = next(
        (la.mixer for la in reversed(arch.layers) if isinstance(la.mixer, Attention | LatentAttention)), None
    )
    ffn = next((la.ffn for la in reversed(arch.layers) if la.ffn is not None), None)
    one = replace(
        arch, layers=(Layer(mixer=mixer, ffn=ffn),), mtp_layers=0, vision=None, tied_embeddings=True,
        extra_embedding_parameters=0,
    )  # fmt: skip
    weights = weights_from_architecture(one)
    return arch.mtp_layers * (weights.total - weights.embedding + size.plain(2 * arch.hidden * arch.hidden))


def scaled_to(weights: WeightBytes, total: int) -> WeightBytes:
    """The bytes of each part, in the same proportions, so that they add up to a total that somebody stated."""
    parts = (
        "lm_head",
        "attention_sharded",
        "attention_replicated",
        "ffn",
        "experts",
        "router_and_norms",
        "vision",
        "mtp",
    )
    sizes = {part: getattr(weights, part) * total // weights.total for part in parts}
    return replace(
        weights, **sizes, embedding=total - sum(sizes.values()), stored=None, certainty=Certainty.CALIBRATED
    )
