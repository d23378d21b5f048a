"""The work that one layer of a model makes on one rank: bytes to read, operations, kernels and collectives.

Most models have one to three kinds of layers, so each kind is worked out once for a layout and a device, and `roofline` adds them up
for a load. Nothing here goes by a model's name: everything follows from the layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    MoeFfn,
    Part,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.weights import ffn_parameters, mixer_parameters
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.speed.attending import Attending, attending
from plimsoll.planning.speed.formats import bytes_each, compute_format, peak_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """The work of all layers of one kind on one rank, as if the rank held every stage of a pipeline."""

    count: int
    """How many layers there are of this kind."""
    attending: Attending
    """The work of each token in the mixer."""
    ffn: MoeFfn | None
    """Set where the layers have routed experts."""
    dense_bytes: float
    """Bytes of weights that every step reads."""
    expert_bytes: float
    """Bytes of all routed experts that the rank holds, or holds slices of."""
    dense_math: float
    """Seconds at peak for one token's products with weights other than routed experts."""
    expert_math: float
    """Seconds at peak for the experts that one token chose, spread over the ranks that hold them."""
    expert_parameters: float
    launches: int
    """Kernels that are launched in each step."""
    quantized_inputs: int
    """Products before which activations are quantized."""
    collectives: int
    """Reductions over ranks in each step."""


def layer_work(
    architecture: Architecture, gpu: Gpu, layout: Layout, layer: Layer, *, count: int, kv_dtype: Dtype
) -> LayerWork:
    """The work of `count` layers of one kind."""
    cut, whole, small = mixer_parameters(layer.mixer, architecture.hidden)
    dense, shared, routed, router = ffn_parameters(layer.ffn, architecture.hidden)
    recurrent = isinstance(layer.mixer, Mamba | LinearAttention)
    by_part = {
        Part.STATE if recurrent else Part.ATTENTION: cut / layout.tensor + whole,
        Part.FFN: dense / layout.tensor,
        Part.SHARED_EXPERTS: shared / layout.tensor,
    }
    size = sum(number * bytes_each(architecture, part) for part, number in by_part.items())
    math = sum(2 * number / peak_of(architecture, part, gpu) for part, number in by_part.items())
    moe = layer.ffn if isinstance(layer.ffn, MoeFfn) else None
    held = routed / layout.expert_ranks
    active = held * moe.top_k / moe.experts if moe else 0.0
    return LayerWork(
        count=count,
        attending=attending(architecture, gpu, layout, layer.mixer, kv_dtype),
        ffn=moe,
        dense_bytes=count * (size + (small + router) * architecture.dtype.bytes),
        expert_bytes=count * held * bytes_each(architecture, Part.EXPERTS),
        dense_math=count * math,
        expert_math=count * 2 * active / peak_of(architecture, Part.EXPERTS, gpu),
        expert_parameters=count * held,
        launches=count * launches(layer),
        quantized_inputs=count * quantized_inputs(architecture, gpu, layer),
        collectives=count * collectives(layout, layer),
    )


def launches(layer: Layer) -> int:
    """About how many kernels a layer launches in each step, however small the batch is."""
    mixer = {Attention: 6, LatentAttention: 10, Mamba: 8, LinearAttention: 9}.get(type(layer.mixer), 0)
    if isinstance(layer.mixer, Attention | LatentAttention) and layer.mixer.indexer is not None:
        mixer += 6
    if layer.ffn is None:
        return mixer
    shared = isinstance(layer.ffn, MoeFfn) and layer.ffn.shared_intermediate > 0
    return mixer + 4 + (3 if shared else 0)


def quantized_inputs(architecture: Architecture, gpu: Gpu, layer: Layer) -> int:
    """Matrix products of a layer before which activations are quantized block by block, in a kernel of its own.

    Other formats do that inside the kernel before. So the fixed times of layers in FP8 with one scale, NVFP4 and 16 bits are alike (59,
    61 and 78 us a layer of 70B on B200 and of 32B on H100), and those of FP8 in blocks are half as long again.
    """
    if architecture.quantization is None or architecture.quantization.block is None:
        return 0
    products = {
        Part.ATTENTION: {Attention: 2, LatentAttention: 4}.get(type(layer.mixer), 0),
        Part.STATE: 2 if isinstance(layer.mixer, Mamba | LinearAttention) else 0,
    }
    if isinstance(layer.ffn, MoeFfn):
        products[Part.EXPERTS] = 2
        products[Part.SHARED_EXPERTS] = 2 if layer.ffn.shared_intermediate else 0
    elif layer.ffn is not None:
        products[Part.FFN] = 2
    return sum(
        number
        for part, number in products.items()
        if compute_format(architecture, part, gpu) in (Dtype.FP8, Dtype.INT8, Dtype.NVFP4, Dtype.MXFP4)
    )


def collectives(layout: Layout, layer: Layer) -> int:
    """Reductions over ranks after the mixer and after the feed-forward part."""
    moe = isinstance(layer.ffn, MoeFfn) and layout.expert_ranks > 1
    mixer = layer.mixer is not None and layout.tensor > 1
    return mixer + (layer.ffn is not None and (layout.tensor > 1 or moe))
