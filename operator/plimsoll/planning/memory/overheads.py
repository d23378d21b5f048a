"""What a rank holds beside the cache and the profile run's peak: weights as loaded, contexts, graphs, adapters, drafts.

Formulas where the engine's code tells, else constants fitted to start-up logs (`constants`). The peak is `profile_run`,
adding the terms up is `ledger`'s work.
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
"""From here ranks on one fast fabric keep buffers for collectives fused with the norms that follow them."""
FUSED_ALLREDUCE_GONE: Final = Version(0, 25)
"""By then they are back to what collectives took before: 0.74 GiB of eight ranks was logged at 0.29."""
MEASURED_AS_GROWTH: Final = Version(0, 7)
"""From here the first engine too takes for a context what profiling added, and not all that the device had lost by then."""
ROCM_GRAPHS_COUNTED: Final = Version(0, 28)
ASSUMED_SPREAD: Final = 0.03
"""Of the weights, where the architecture was in part filled in by rules."""
CHANNELS_PADDED: Final = 256
EXACTLY: Final = MemoryConstant(value=1.0, spread=0.0, rows=0, fitted_on="")


def loaded_weights(now: Situation, rank_bytes: int, expert_bytes: int) -> Estimate:
    """Checkpoint bytes of the rank, as they lie in memory once the engine has repacked them."""
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
    """An encoder's largest item says nothing about weights and 16 bits are the rule; all else that was filled in may err."""
    return any(not name.startswith(("vision.", "dtype")) for name in now.arch.assumed)


def expert_factor(now: Situation) -> MemoryConstant:
    """Expert matrices grow where kernels want other shapes: padded 4-bit floats, shuffled copies on ROCm."""
    quantization = now.arch.quantization
    if quantization is not None and quantization.weights is Dtype.MXFP4:
        return MemoryConstant(value=_padding(now), spread=0.0, rows=0, fitted_on="the engine's code")
    if now.rocm and quantization is None and now.arch.is_moe:
        return now.constants["weightsRocmExperts"]
    return EXACTLY


def _padding(now: Situation) -> float:
    """Channels are padded to whole multiples of 256; the experts' inner width on a rank to what its kernel asks for."""
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
    """What CUDA or HIP keeps for itself, and buffers of collectives where ranks talk to each other."""
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
    """Whether the engine takes its estimate of graphs out of the budget; on ROCm and in its second runner it came later."""
    if not now.engine.graphs_in_budget or (now.rocm and now.version < ROCM_GRAPHS_COUNTED):
        return False
    return now.version >= SECOND_RUNNER_FOR_ALL or not now.on_second_runner


def graphs(now: Situation) -> Estimate:
    """Pools of captured graphs grow with the layers they hold; eager mode has none."""
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
    """Few sequences mean few and small graphs: sizes go up to twice the sequences, at most 512."""
    largest = now.settings.max_graph_batch or min(2 * now.settings.max_num_seqs, 512)
    return float((min(largest, 512) / 512) ** 0.5)


def lora(now: Situation) -> Estimate:
    """Slots are allocated at load for every targeted linear of every layer, whether or not an adapter is loaded."""
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
    """Inputs and outputs of a layer's adapted linears: the A matrices are whole on every rank, the B matrices are cut."""
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
    """A draft model's weights, or the checkpoint's own draft layers where they are used."""
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
