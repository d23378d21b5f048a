"""How much work a decode step and a prompt make: bytes, operations and messages over the device's peak rates, and plain counts.

Every amount is either in seconds at a peak rate of the data sheet (bandwidth, dense operations, link) or a count (kernels,
collectives, sequences). `rates` has what an amount costs in practice, which is fitted; `closed_loop` how steps and prompts share the
device; `layer_work` the work of each layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from plimsoll.facts.architecture import Architecture, MoeFfn, Part
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import cache_dtype
from plimsoll.planning.speed.formats import bytes_each, is_native, peak_of, stored_format
from plimsoll.planning.speed.layer_work import LayerWork, layer_work


class TimeCost(StrEnum):
    """The kinds of work that time goes to. Their values are the keys of the fitted constants."""

    DENSE_WEIGHTS = "dense_weights"
    EXPERT_WEIGHTS = "expert_weights"
    EXPERT_TILES = "expert_tiles"
    """Rows that a grouped kernel computes for each expert that any token chose, even where fewer tokens did."""
    UNPACKING = "unpacking"
    """Widening of experts to 16 bits by the cores. It takes longer than reading them, so H100 and H200 take the same time."""
    CACHE_READ = "cache_read"
    DECODE_MATH = "decode_math"
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


Amounts = dict[TimeCost, float]

TILE_ROWS = 32
"""The least rows that a grouped kernel computes for an expert that any token chose."""
NETWORK_BYTES_PER_SECOND = 50_000_000_000
"""Rate of each device between nodes (400 Gb/s), where ranks are not all in one fabric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One model cut by one layout on one device: all that the amounts of any load are worked out from."""

    architecture: Architecture
    gpu: Gpu
    layout: Layout
    kv_dtype: Dtype
    kinds: tuple[LayerWork, ...]
    fixed: Amounts
    """The amounts of a decode step that do not depend on how much runs."""
    dense_math: float
    """Seconds at peak for one output token's dense products, with those of the head."""
    prompt_math: float
    """The same without the head, for a token of a prompt: only the last of them goes through the head."""
    expert_math: float
    """Seconds at peak for the experts that one token chose."""
    expert_rate: float
    """Operations a second at peak in the format of the experts."""
    message: float
    """Seconds at the link's peak for one token's hidden state to be reduced once over the ranks, one way."""
    unpacked: bool
    """True where experts are widened to 16 bits before they are multiplied."""

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(architecture: Architecture, gpu: Gpu, layout: Layout, asked: Dtype | None) -> Work:
        kv_dtype = cache_dtype(architecture, asked)
        kinds = tuple(
            layer_work(architecture, gpu, layout, layer, count=count, kv_dtype=kv_dtype)
            for layer, count in architecture.kinds
        )
        head = architecture.vocab * architecture.hidden / layout.tensor
        read = head * bytes_each(architecture, Part.LM_HEAD) + sum(kind.dense_bytes for kind in kinds)
        prompt_math = sum(kind.dense_math for kind in kinds)
        return Work(
            architecture=architecture,
            gpu=gpu,
            layout=layout,
            kv_dtype=kv_dtype,
            kinds=kinds,
            fixed={
                TimeCost.DENSE_WEIGHTS: read / gpu.bandwidth,
                TimeCost.LAUNCH: sum(kind.launches for kind in kinds),
                TimeCost.EXPERT_LAYER: sum(kind.count for kind in kinds if kind.ffn),
                TimeCost.QUANTIZED_INPUT: sum(kind.quantized_inputs for kind in kinds),
                TimeCost.ALL_REDUCE: sum(kind.collectives for kind in kinds),
            },
            dense_math=2 * head / peak_of(architecture, Part.LM_HEAD, gpu) + prompt_math,
            prompt_math=prompt_math,
            expert_math=sum(kind.expert_math for kind in kinds),
            expert_rate=peak_of(architecture, Part.EXPERTS, gpu),
            message=_message_seconds(architecture, gpu, layout),
            unpacked=not is_native(stored_format(architecture, Part.EXPERTS), gpu),
        )


def decode_step(work: Work, running: float, context: float) -> Amounts:
    """The work of one more token for each of `running` sequences that hold `context` tokens on average.

    The stages of a pipeline work one after another, each on its share of the sequences.
    """
    layout, bandwidth = work.layout, work.gpu.bandwidth
    batch = running / layout.pipeline
    local = batch / layout.data
    expert_seconds = tiles = read = 0.0
    math = local * work.dense_math
    for kind in work.kinds:
        math += kind.count * local * kind.attending.decode_math(context)
        read += kind.count * local * kind.attending.read(context)
        if kind.ffn is not None:
            hit = share_of_experts_hit(kind.ffn, batch)
            expert_seconds += hit * kind.expert_bytes / bandwidth
            tiles += hit * kind.expert_parameters * 2 * TILE_ROWS / work.expert_rate
            math += batch * kind.expert_math
    together = batch if any(kind.ffn for kind in work.kinds) else local
    return {
        **work.fixed,
        TimeCost.EXPERT_WEIGHTS: 0.0 if work.unpacked else expert_seconds,
        TimeCost.EXPERT_TILES: 0.0 if work.unpacked else tiles,
        TimeCost.UNPACKING: tiles if work.unpacked else 0.0,
        TimeCost.CACHE_READ: read / bandwidth,
        TimeCost.DECODE_MATH: math,
        TimeCost.ALL_REDUCE_BYTES: work.fixed[TimeCost.ALL_REDUCE] * together * work.message,
        TimeCost.SEQUENCE: running,
        TimeCost.SEQUENCE_LAYER: local * len(work.architecture.layers),
    }


def prompt(work: Work, tokens: float, before: float = 0.0) -> Amounts:
    """The work of computing `tokens` of one prompt, after `before` tokens that are in the cache already."""
    seen = before + tokens / 2
    attending = sum(kind.count * kind.attending.prefill_math(seen) for kind in work.kinds)
    return {
        TimeCost.PROMPT_DENSE: tokens * work.prompt_math,
        TimeCost.PROMPT_EXPERTS: tokens * work.expert_math,
        TimeCost.PROMPT_ATTENTION: tokens * attending,
        TimeCost.PROMPT_LINK: work.fixed[TimeCost.ALL_REDUCE] * 2 * tokens * work.message,
    }


def launch(work: Work) -> Amounts:
    """What a step costs more for having prompt tokens in it, however few: it cannot use a captured graph."""
    return {TimeCost.PROMPT_LAUNCH: work.fixed[TimeCost.LAUNCH]}


def request(tokens: float, beside: float) -> Amounts:
    """What a request costs outside the device before its first token: handling it, handling its `tokens`, and waiting while `beside` other
    requests are handled."""
    return {TimeCost.REQUEST: 1.0, TimeCost.REQUEST_TOKEN: tokens, TimeCost.REQUEST_BESIDE: beside}


def share_of_experts_hit(ffn: MoeFfn, tokens: float) -> float:
    """Share of the routed experts that at least one of `tokens` tokens chooses, if all are chosen equally often.

    Nothing is added for uneven ranks under expert parallelism: measured steps with whole experts on each rank and with slices of all
    experts agree within 1% (MiniMax-M2.5, B200, TP2).
    """
    return float(1.0 - (1.0 - ffn.top_k / ffn.experts) ** tokens)


def _message_seconds(architecture: Architecture, gpu: Gpu, layout: Layout) -> float:
    ranks = layout.expert_ranks if architecture.is_moe else layout.tensor
    if ranks == 1:
        return 0.0
    size = architecture.hidden * architecture.dtype.bytes
    return size * (ranks - 1) / ranks / link_rate(gpu, ranks)


def link_rate(gpu: Gpu, ranks: int) -> float:
    """Bytes a second of the slowest hop of a collective: the fabric where all ranks are in one, else the network."""
    fabric = float(gpu.link.bytes_per_second)
    beyond = gpu.link.domain > 1 and ranks > gpu.link.domain
    return min(fabric, NETWORK_BYTES_PER_SECOND) if beyond else fabric
