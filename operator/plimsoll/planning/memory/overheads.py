"""What a rank holds beside the cache and the peak of the profile run: weights as loaded, contexts, graphs, adapters, drafts.

Where the engine's code says how much that is, it is a formula; else a constant fitted to start-up logs (`constants`). `profile_run`
has the peak, and `ledger` adds all terms up.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from plimsoll.facts.architecture import Attention, DenseFfn, LatentAttention, MoeFfn
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.gpus import GIB
from plimsoll.facts.model import Certainty
from plimsoll.planning.memory.constants import MemoryConstant
from plimsoll.planning.memory.situation import SECOND_RUNNER_FOR_ALL, Estimate, Situation, gib_text

FUSED_ALLREDUCE: Final = Version(0, 17)
"""From this version on ranks on one fast fabric keep buffers for collectives that are fused with the norms after them."""
FUSED_ALLREDUCE_GONE: Final = Version(0, 25)
"""From this version on collectives take as little as before: 0.74 GiB with eight ranks was logged at 0.29."""
MEASURED_AS_GROWTH: Final = Version(0, 7)
"""From this version on the engine's first generation too counts as context only what profiling added, not all that the device had lost."""
ROCM_GRAPHS_COUNTED: Final = Version(0, 28)
"""From this version on graphs come out of the budget on ROCm as well."""
ASSUMED_SPREAD: Final = 0.03
"""By what share the weights may be off where rules filled in a part of the architecture."""
CHANNELS_PADDED: Final = 256
"""Channels are padded to a multiple of this where experts are in MXFP4."""
LARGEST_GRAPH: Final = 512
"""The largest batch for which a graph is captured by default."""
EXACTLY: Final = MemoryConstant(value=1.0, spread=0.0, rows=0, fitted_on="")


def loaded_weights(now: Situation, rank_bytes: int, expert_bytes: int) -> Estimate:
    """The weights of the rank as they are in memory once the engine has repacked them."""
    loaded = now.constants["weightsLoaded"]
    factor = expert_factor(now)
    size = (rank_bytes - expert_bytes) * loaded.value + expert_bytes * factor.value * loaded.value
    exact = now.model.weights.certainty is Certainty.EXACT
    offloaded = now.settings.weight_offload_bytes
    return Estimate(
        bytes=max(0.0, size - offloaded),
        spread=rank_bytes * (ASSUMED_SPREAD if _weights_assumed(now) else 0.0),
        formula="checkpoint bytes of this rank, as loaded",
        inputs={
            **({"offloaded": gib_text(offloaded)} if offloaded else {}),
            "checkpoint": gib_text(rank_bytes),
            "experts": gib_text(expert_bytes),
            "layout": str(now.layout),
        },
        certainty=Certainty.CALIBRATED if exact else now.model.weights.certainty,
    )


def _weights_assumed(now: Situation) -> bool:
    """Whether a field was filled in by a rule that the weights depend on. They do not depend on an encoder's largest item, and a dtype
    that is not stated is 16 bits nearly always."""
    return any(not name.startswith(("vision.", "dtype")) for name in now.arch.assumed)


def expert_factor(now: Situation) -> MemoryConstant:
    """How many times as large expert matrices become when loaded, as kernels want other shapes: padded for MXFP4, shuffled on ROCm."""
    quantization = now.arch.quantization
    if quantization is not None and quantization.weights is Dtype.MXFP4:
        return MemoryConstant(value=_padding(now), spread=0.0, rows=0, fitted_on="the engine's code")
    if now.rocm and quantization is None and now.arch.is_moe:
        return now.constants["weightsRocmExperts"]
    return EXACTLY


def _padding(now: Situation) -> float:
    """How many times as large experts become by padding: of their channels, and of their inner width on a rank to what the kernel wants."""
    moe = next((layer.ffn for layer in now.arch.layers if isinstance(layer.ffn, MoeFfn)), None)
    if moe is None:
        return 1.0
    channels = moe.latent or now.arch.hidden
    ranks = 1 if now.layout.expert_parallel else now.layout.expert_ranks
    inner = ceil(moe.intermediate / ranks)
    return _padded(channels, CHANNELS_PADDED) / channels * _padded(inner, _inner_multiple(now)) / inner


def _inner_multiple(now: Situation) -> int:
    if now.gpu.architecture == "blackwell" and now.gpu.compute.startswith("10"):
        return 256
    return 64 if now.gpu.architecture == "hopper" else 128


def _padded(size: int, multiple: int) -> int:
    return multiple * ceil(size / multiple)


def context(now: Situation) -> Estimate:
    """What CUDA or HIP keeps for itself, and the buffers of collectives between ranks."""
    size = now.constants.value(context_name(now))
    if now.layout.pipeline > 1:
        size += now.constants.value("contextPipeline")
    return Estimate(
        bytes=size * GIB,
        spread=0.0,
        formula="constant by GPU class, ranks and version, and one for pipelines",
        inputs={"ranks": str(now.layout.gpus), "link": now.gpu.link.kind.value},
    )


def context_name(now: Situation) -> str:
    single = now.layout.gpus == 1
    if now.engine.whole_prompts and now.version < MEASURED_AS_GROWTH:
        return "contextFirst" if single else "contextFirstMulti"
    if now.rocm:
        return "contextSingleRocm" if single else "contextMultiRocm"
    if single:
        return "contextSingle"
    if not now.fast_fabric:
        return "contextMultiPcie"
    fused = FUSED_ALLREDUCE <= now.version < FUSED_ALLREDUCE_GONE and now.layout.tensor > 1
    return "contextMultiFused" if fused else "contextMulti"


def graphs_counted(now: Situation) -> bool:
    """Whether the engine takes its estimate of graphs out of the budget. On ROCm and with its second runner later versions began to."""
    if not now.engine.graphs_in_budget or (now.rocm and now.version < ROCM_GRAPHS_COUNTED):
        return False
    return now.version >= SECOND_RUNNER_FOR_ALL or not now.on_second_runner


def graphs(now: Situation) -> Estimate:
    """The pools of captured graphs, which grow with the layers on the rank; there are none in eager mode."""
    if now.settings.eager:
        return Estimate(bytes=0, spread=0, formula="0 without graphs", certainty=Certainty.EXACT)
    constant = now.constants[graphs_name(now)]
    layers = len(now.arch.layers) / now.layout.pipeline
    return Estimate(
        bytes=constant.value * GIB * layers * _capture_share(now),
        spread=0.0,
        formula="layers x constant x (largest captured batch / 512)^0.5",
        inputs={"layers": f"{layers:g}", "constant": f"{constant.value * 1024:.1f} MiB"},
    )


def graphs_name(now: Situation) -> str:
    if now.rocm:
        return "graphsPerLayerRocm"
    return "graphsPerLayerSecond" if now.version >= SECOND_RUNNER_FOR_ALL else "graphsPerLayer"


def _capture_share(now: Situation) -> float:
    """Share of the memory of all graphs that is taken where few sequences may run: graphs are captured for batches of up to twice as many."""
    largest = now.settings.max_graph_batch or min(2 * now.settings.max_num_seqs, LARGEST_GRAPH)
    return float((min(largest, LARGEST_GRAPH) / LARGEST_GRAPH) ** 0.5)


def lora(now: Situation) -> Estimate:
    """Room for adapters, which is taken at the start for every linear module that adapters may change, whether any is loaded or not."""
    slots = now.settings.lora
    if slots is None:
        return Estimate(bytes=0, spread=0, formula="0 without adapters", certainty=Certainty.EXACT)
    ranks = now.layout.tensor
    width = 0.0
    for layer in now.arch.layers:
        width += _lora_width(layer.mixer, layer.ffn, now.arch.hidden, ranks)
    size = slots.max_loras * slots.max_rank * width * now.arch.dtype.bytes / now.layout.pipeline
    return Estimate(
        bytes=size,
        spread=0.1 * size,
        formula="slots x rank x sum over linears of (in + out/TP) x bytes",
        inputs={"slots": str(slots.max_loras), "rank": str(slots.max_rank)},
    )


def _lora_width(mixer: object, ffn: object, hidden: int, ranks: int) -> float:
    """Inputs and outputs of a layer's linear modules that adapters change. Every rank holds the A matrices whole, and its part of the B
    matrices."""
    width = 0.0
    if isinstance(mixer, Attention):
        query = mixer.heads * mixer.head_dim
        keys = mixer.kv_heads * mixer.head_dim
        values = mixer.kv_heads * mixer.v_head_dim
        width += 3 * hidden + (query + keys + values) / ranks
        width += mixer.heads * mixer.v_head_dim / ranks + hidden
    elif isinstance(mixer, LatentAttention):
        query = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
        width += (mixer.q_lora_rank or hidden) + query / ranks
        width += mixer.heads * mixer.v_head_dim / ranks + hidden
    if isinstance(ffn, DenseFfn):
        width += (2 * hidden + 2 * ffn.intermediate / ranks) + (ffn.intermediate / ranks + hidden)
    elif isinstance(ffn, MoeFfn):
        width += ffn.experts * 3 * (hidden + ffn.intermediate / ranks)
    return width


def draft(now: Situation, checkpoint_draft: int) -> Estimate:
    """The weights of a draft model, or of the checkpoint's own draft layers where they are used."""
    speculation = now.settings.speculation
    if speculation is None or speculation.method == "ngram":
        return Estimate(bytes=0, spread=0, formula="0 without a draft model", certainty=Certainty.EXACT)
    own = checkpoint_draft if speculation.method == "mtp" else 0
    size = own or speculation.draft_weight_bytes / now.layout.tensor
    return Estimate(
        bytes=size,
        spread=0.05 * size,
        formula="weights of the draft on this rank",
        inputs={"method": speculation.method, "tokens": str(speculation.tokens)},
    )
