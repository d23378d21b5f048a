"""Into which shapes a layout cuts a model's matrices, and which of them the quantized kernels refuse.

A matrix cut by columns keeps its input side whole and divides its outputs; one cut by rows divides its inputs. Scales of
quantized weights belong to blocks or groups, and a cut must not go through one. The engine would notice only while loading,
minutes after the pod started. The other rules about layouts are in `rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    DenseFfn,
    LatentAttention,
    MoeFfn,
    Part,
    Quantization,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.planning.layouts.layout import Layout

MARLIN_OUTPUT = 64
"""The Marlin kernel needs outputs in whole multiples of this."""
MARLIN_INPUT = 128
"""The same for its inputs."""
NVFP4_GROUP = 16


@dataclass(frozen=True, slots=True)
class Shard:
    """The side of a kind of matrix that a layout cuts, as it is on one rank."""

    matrix: str
    side: str
    """output: cut by columns; input: cut by rows."""
    size: int
    """Its length on one rank."""
    whole: int
    """Its length in the whole matrix."""
    ways: int
    """Over how many ranks it is cut."""

    def __str__(self) -> str:
        cut = f"{self.whole}/{self.ways} = " if self.ways > 1 else ""
        return f"{self.matrix} {self.side} {cut}{self.size}"


def shards(architecture: Architecture, layout: Layout) -> Iterator[Shard]:
    """Every kind of cut matrix once, in the order of the layers that first have it."""
    plain = _left_alone(architecture.quantization)
    seen: set[Shard] = set()
    for layer, _ in architecture.kinds:
        found: list[Shard] = []
        if Part.ATTENTION not in plain and isinstance(layer.mixer, Attention | LatentAttention):
            found += _mixer(layer.mixer, layout.tensor)
        if isinstance(layer.ffn, MoeFfn):
            ways = 1 if layout.expert_parallel else layout.expert_ranks
            if Part.EXPERTS not in plain:
                found += _ffn("expert", layer.ffn.intermediate, ways)
            if layer.ffn.shared_intermediate and Part.SHARED_EXPERTS not in plain:
                found += _ffn("shared expert", layer.ffn.shared_intermediate, layout.tensor)
        elif isinstance(layer.ffn, DenseFfn) and Part.FFN not in plain:
            found += _ffn("feed-forward", layer.ffn.intermediate, layout.tensor)
        for shard in found:
            if shard not in seen:
                seen.add(shard)
                yield shard


def _left_alone(quantization: Quantization | None) -> frozenset[Part]:
    """Parts of the model of which nothing is in the checkpoint's main format."""
    if quantization is None:
        return frozenset()
    plain = {deviation.part for deviation in quantization.deviations if deviation.share >= 1.0}
    if quantization.experts_only:
        plain |= {Part.ATTENTION, Part.FFN, Part.SHARED_EXPERTS}
    if quantization.skips_attention:
        plain.add(Part.ATTENTION)
    return frozenset(plain)


def _mixer(mixer: Attention | LatentAttention, ways: int) -> list[Shard]:
    if isinstance(mixer, LatentAttention):
        query = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
        up = mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
        output = mixer.heads * mixer.v_head_dim
        return [
            Shard("q_b_proj", "output", query // ways, query, ways),
            Shard("kv_b_proj", "output", up // ways, up, ways),
            Shard("o_proj", "input", output // ways, output, ways),
        ]
    query = mixer.heads * mixer.head_dim
    output = mixer.heads * mixer.v_head_dim
    rank_heads = max(1, mixer.kv_heads // ways)
    return [
        Shard("q_proj", "output", query // ways, query, ways),
        Shard("k_proj", "output", rank_heads * mixer.head_dim, mixer.kv_heads * mixer.head_dim, ways),
        Shard("o_proj", "input", output // ways, output, ways),
    ]


def _ffn(kind: str, intermediate: int, ways: int) -> list[Shard]:
    return [
        Shard(f"{kind} gate_up", "output", intermediate // ways, intermediate, ways),
        Shard(f"{kind} down", "input", intermediate // ways, intermediate, ways),
    ]


def refused(architecture: Architecture, layout: Layout) -> tuple[str, str] | None:
    """The rule and the figures by which the checkpoint's format refuses a layout, or None."""
    quantization = architecture.quantization
    if quantization is None:
        return None
    for shard in shards(architecture, layout):
        found = _block(quantization, shard) or _marlin(quantization, shard) or _nvfp4(quantization, shard)
        if found is not None:
            return found
    return None


def _block(quantization: Quantization, shard: Shard) -> tuple[str, str] | None:
    if quantization.block is None:
        return None
    rows, columns = quantization.block
    step = rows if shard.side == "output" else columns
    if shard.size % step == 0:
        return None
    return (
        "fp8-block",
        f"{shard} is no multiple of the checkpoint's {step}-wide FP8 blocks",
    )


def _marlin(quantization: Quantization, shard: Shard) -> tuple[str, str] | None:
    grouped = quantization.weights in (Dtype.INT4, Dtype.INT8) and quantization.activations in (
        None,
        Dtype.BFLOAT16,
        Dtype.FLOAT16,
    )
    if not grouped or quantization.method == "bitsandbytes":
        return None
    if shard.side == "output":
        if shard.size % MARLIN_OUTPUT:
            return "marlin-shard", f"{shard} is no multiple of {MARLIN_OUTPUT}, which the Marlin kernel needs"
        return None
    group = quantization.group_size
    if (
        group is not None
        and group > 0
        and shard.size % group
        and not (quantization.act_order and shard.ways > 1)
    ):
        return "quantization-group", f"{shard} cuts through the checkpoint's groups of {group}"
    if shard.size % MARLIN_INPUT and not quantization.act_order:
        return "marlin-shard", f"{shard} is no multiple of {MARLIN_INPUT}, which the Marlin kernel needs"
    return None


def _nvfp4(quantization: Quantization, shard: Shard) -> tuple[str, str] | None:
    if quantization.weights is Dtype.NVFP4 and shard.side == "input" and shard.size % NVFP4_GROUP:
        return "quantization-group", f"{shard} cuts through NVFP4's groups of {NVFP4_GROUP}"
    return None
