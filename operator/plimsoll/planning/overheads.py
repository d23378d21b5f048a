"""What a rank takes beside weights and cache: the profile run's peak, CUDA graphs, contexts, adapters, encoders, drafts.

The engine runs one forward pass of the most tokens it may schedule and one sampling pass of the most sequences, and
keeps what the larger of the two needed. The formulas are those of its code by version; what code does not tell, a few
constants say, fitted to start-up logs (`constants`). Adding the terms up is `ledger`'s work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    DenseFfn,
    LatentAttention,
    LinearAttention,
    MoeFfn,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu, LinkKind, Vendor
from plimsoll.facts.model import Certainty, ModelFacts
from plimsoll.planning.constants import Constant, Constants
from plimsoll.planning.kv_rules import version_of
from plimsoll.planning.layout import Layout
from plimsoll.planning.settings import EngineSettings

GIB: Final = 2**30
TRITON_SAMPLING: Final = Version(0, 17)
"""From here top-k and top-p are found without sorting, so half of the sampler's buffers are gone."""
HELD_WORKSPACE: Final = Version(0, 14)
"""From here the experts' workspace stays allocated after the profile run."""
FUSED_ALLREDUCE: Final = Version(0, 17)
"""From here ranks on one fast fabric keep buffers for collectives fused with the norms that follow them."""
LEAN_RUNNER: Final = Version(0, 25)
"""From here models without experts and states run on the second runner, whose profile samples nothing but the best token."""
LEAN_FOR_ALL: Final = Version(0, 29)
"""From here all models do, and the second runner estimates its graphs too; before, it took them to be free."""
FULL_WARMUP: Final = Version(0, 33)
"""From here its profile samples once more with everything a request may ask for."""
ROCM_GRAPHS_COUNTED: Final = Version(0, 28)
DATA_CENTRE_GIB: Final = 70
ASSUMED_SPREAD: Final = 0.03
"""Of the weights, where the architecture was in part filled in by rules."""
PADDED: Final = 256
"""4-bit float experts are padded to whole multiples of this many channels."""
GATHERED_CONTEXTS: Final = 40
GATHERED_KEY_BYTES: Final = 132
LATENT_PREFILL_TOKENS: Final = 65_536
"""Most tokens of latent context that a prefill expands at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A term before it is a term: GiB would be told, bytes are computed."""

    bytes: float
    spread: float
    formula: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    certainty: Certainty = Certainty.CALIBRATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The inputs every term reads, gathered once."""

    model: ModelFacts
    gpu: Gpu
    layout: Layout
    engine: EngineFacts
    settings: EngineSettings
    constants: Constants
    device_bytes: int

    @property
    def arch(self) -> Architecture:
        return self.model.architecture

    @property
    def version(self) -> Version:
        return version_of(self.engine)

    @property
    def rocm(self) -> bool:
        return self.gpu.vendor is Vendor.AMD

    @property
    def small(self) -> bool:
        """Cards below the data centre's, whose pools are a few GiB, so that every MiB shows."""
        return self.device_bytes < DATA_CENTRE_GIB * GIB

    @property
    def fast_fabric(self) -> bool:
        return self.gpu.link.kind in {LinkKind.NVLINK, LinkKind.XGMI, LinkKind.XELINK, LinkKind.ROCE}


def activation(now: Situation, *, last_stage: bool = True) -> Estimate:
    """The profile run's transient peak: what stays between the passes, and the larger of the passes."""
    arch, settings = now.arch, now.settings
    tokens = settings.max_num_batched_tokens
    rows = min(settings.max_num_seqs, tokens)
    hidden = tokens * arch.hidden * 2
    held = encoder_bytes(now) + gathered_tokens(now)
    workspace = max(expert_workspace(now), scorer_workspace(now))
    kept = workspace if now.version >= HELD_WORKSPACE else 0
    copies = sampler_copies(now)
    sampler = copies.value * rows * arch.vocab * 4 if last_stage and not arch.encoder else 0
    forward = max(_dense_forward(now), latent_prefill(now), _linear_forward(now), workspace - kept)
    unexplained = now.constants[unexplained_name(now)]
    return Estimate(
        bytes=hidden + held + kept + max(forward, sampler) + unexplained.value * GIB,
        # What no formula explains, of all terms together, was measured as one figure and is carried here.
        spread=unexplained.spread * GIB,
        formula=(
            "hidden states T*H*2 B + encoder outputs + expert workspace + "
            "max(forward pass, sampler c*min(S, T)*V*4 B)"
        ),
        inputs={
            "T": str(tokens),
            "S": str(settings.max_num_seqs),
            "V": str(arch.vocab),
            "H": str(arch.hidden),
            "c": f"{copies.value:g}",
            "forward": gib_text(forward),
            "sampler": gib_text(sampler),
            "experts": gib_text(kept),
            "encoder": gib_text(held),
        },
    )


def sampler_copies(now: Situation) -> Constant:
    """How many float32 copies of the logits the sampler's pass holds at once; ranks gather them, so TP does not divide."""
    return now.constants[_sampler_name(now)]


def _sampler_name(now: Situation) -> str:
    version = now.version
    if version < TRITON_SAMPLING:
        return "samplerCopiesSort"
    if not _on_second_runner(now):
        return "samplerCopiesTriton"
    return "samplerCopiesFull" if version >= FULL_WARMUP else "samplerCopiesLean"


def _on_second_runner(now: Situation) -> bool:
    plain = not now.arch.is_moe and not now.arch.is_hybrid
    return now.version >= LEAN_FOR_ALL or (now.version >= LEAN_RUNNER and plain)


def unexplained_name(now: Situation) -> str:
    """How far real starts stray goes by what is hard to know: other vendors, small cards, experts, many ranks, encoders."""
    if now.engine.whole_prompts:
        return "unexplainedFirst"
    if now.rocm:
        return "unexplainedRocmMoe" if now.arch.is_moe else "unexplainedRocm"
    if now.small:
        return "unexplainedSmall"
    single = now.layout.gpus == 1
    if now.arch.is_moe:
        return "unexplainedMoe" if single else "unexplainedMoeMulti"
    plain = not (now.arch.is_hybrid or now.arch.is_latent or now.arch.vision)
    return "unexplainedPlain" if single and plain else "unexplainedDense"


def _dense_forward(now: Situation) -> float:
    """One layer's widest moment: the residual, its input, and a gated product beside what it is made from."""
    widths = [layer.ffn.intermediate for layer in now.arch.layers if isinstance(layer.ffn, DenseFfn)]
    widths += [layer.ffn.shared_intermediate for layer in now.arch.layers if isinstance(layer.ffn, MoeFfn)]
    inner = max(widths, default=0) / now.layout.tensor
    return now.settings.max_num_batched_tokens * (now.arch.hidden + 3 * inner) * 2


def _linear_forward(now: Situation) -> float:
    """Chunked linear attention keeps, a token and head, products within a chunk and a state for each chunk.

    A gate a channel (split convolutions) doubles them: gates and gated keys are float32 of their own.
    """
    mixers = [layer.mixer for layer in now.arch.layers if isinstance(layer.mixer, LinearAttention)]
    if not mixers:
        return 0.0
    mixer = mixers[0]
    chunk = 64
    floats = 2 * chunk + mixer.value_dim * (2 if mixer.split_conv else 1)
    halves = 6 * mixer.value_dim + mixer.key_dim * mixer.value_dim / chunk
    heads = mixer.value_heads / now.layout.tensor
    per_head = (4 * floats + 2 * halves) * (2 if mixer.split_conv else 1)
    return now.settings.max_num_batched_tokens * heads * per_head


def expert_workspace(now: Situation) -> float:
    """Two buffers of every token's chosen experts: inputs to the second matrix, and outputs before they are summed."""
    if now.rocm or _fused_experts(now):
        return 0.0
    sizes = [
        layer.ffn.top_k
        * (max(layer.ffn.latent or now.arch.hidden, 2 * layer.ffn.intermediate / now.layout.tensor))
        for layer in now.arch.layers
        if isinstance(layer.ffn, MoeFfn)
    ]
    return now.settings.max_num_batched_tokens * max(sizes, default=0) * 2 * 2


def scorer_workspace(now: Situation) -> float:
    """Sparse attention gathers the scorer's keys of forty contexts of the greatest length, one prefill after another.

    The experts' workspace is the same memory at another time, so only the larger of the two counts.
    """
    scored = any(getattr(layer.mixer, "indexer", None) is not None for layer in now.arch.layers)
    return GATHERED_CONTEXTS * now.settings.max_model_len * GATHERED_KEY_BYTES if scored else 0.0


def gathered_tokens(now: Situation) -> float:
    """Experts spread over data-parallel ranks see every rank's tokens: they are gathered before and summed after."""
    if now.layout.data == 1 or not now.arch.is_moe:
        return 0.0
    return 2 * now.settings.max_num_batched_tokens * now.layout.data * now.arch.hidden * 2


def _fused_experts(now: Situation) -> bool:
    """Kernels for checkpoints of this toolkit and for 4-bit floats run all experts in one pass, without a workspace."""
    quantization = now.arch.quantization
    return quantization is not None and (
        quantization.method.startswith("modelopt") or quantization.weights in {Dtype.MXFP4, Dtype.NVFP4}
    )


def latent_prefill(now: Situation) -> float:
    """Latent attention expands the context of a prefill to keys and values of every head, a chunk at a time."""
    mixers = [layer.mixer for layer in now.arch.layers if isinstance(layer.mixer, LatentAttention)]
    if not mixers:
        return 0.0
    mixer = mixers[0]
    if mixer.indexer is not None or mixer.compress_ratio > 1 or mixer.window is not None:
        return 0.0
    settings = now.settings
    tokens = min(max(8 * settings.max_model_len, 64 * settings.max_num_seqs), LATENT_PREFILL_TOKENS)
    return tokens * mixer.heads / now.layout.tensor * (mixer.qk_nope_head_dim + mixer.v_head_dim) * 2


def encoder_bytes(now: Situation) -> float:
    """Outputs of the encoder that the profile run holds: as many items as the budget of embeddings takes."""
    vision = now.arch.vision
    if vision is None or now.settings.multimodal_items == 0:
        return 0.0
    budget = max(now.settings.max_num_batched_tokens, vision.max_item_tokens)
    return budget * now.arch.hidden * 2


def graphs_counted(now: Situation) -> bool:
    """Whether the engine takes its estimate of graphs out of the budget; on ROCm and in its second runner it came later."""
    if not now.engine.graphs_in_budget or (now.rocm and now.version < ROCM_GRAPHS_COUNTED):
        return False
    return now.version >= LEAN_FOR_ALL or not _on_second_runner(now)


def graphs(now: Situation) -> Estimate:
    """Pools of captured graphs grow with the layers they hold; eager mode has none."""
    if now.settings.eager:
        return Estimate(bytes=0, spread=0, formula="0 without graphs", certainty=Certainty.EXACT)
    constant = now.constants["graphsPerLayerRocm" if now.rocm else "graphsPerLayer"]
    layers = len(now.arch.layers) / now.layout.pipeline
    share = _capture_share(now)
    return Estimate(
        bytes=constant.value * GIB * layers * share,
        spread=0.0,
        formula="layers x constant x (largest captured batch / 512)^0.5",
        inputs={"layers": f"{layers:g}", "constant": f"{constant.value * 1024:.1f} MiB"},
    )


def _capture_share(now: Situation) -> float:
    """Few sequences mean few and small graphs: sizes go up to twice the sequences, at most 512."""
    largest = now.settings.max_graph_batch or min(2 * now.settings.max_num_seqs, 512)
    return float((min(largest, 512) / 512) ** 0.5)


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
    if now.engine.whole_prompts:
        return "contextFirst" if single else "contextFirstMulti"
    if now.rocm:
        return "contextSingleRocm" if single else "contextMultiRocm"
    if single:
        return "contextSingle"
    if not now.fast_fabric:
        return "contextMultiPcie"
    return "contextMultiFused" if now.version >= FUSED_ALLREDUCE and now.layout.tensor > 1 else "contextMulti"


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


def loaded_weights(now: Situation, rank_bytes: int, expert_bytes: int) -> Estimate:
    """Checkpoint bytes of the rank, as they lie in memory once the engine has repacked them."""
    loaded = now.constants["weightsLoaded"]
    factor = expert_factor(now)
    size = (rank_bytes - expert_bytes) * loaded.value + expert_bytes * factor.value * loaded.value
    exact = now.model.weights.certainty is Certainty.EXACT
    return Estimate(
        bytes=size,
        spread=rank_bytes * (ASSUMED_SPREAD if now.arch.assumed else 0.0),
        formula="checkpoint bytes of this rank, as loaded",
        inputs={
            "checkpoint": gib_text(rank_bytes),
            "experts": gib_text(expert_bytes),
            "layout": str(now.layout),
        },
        certainty=Certainty.CALIBRATED if exact else now.model.weights.certainty,
    )


EXACTLY: Final = Constant(value=1.0, spread=0.0, rows=0, fitted_on="")


def expert_factor(now: Situation) -> Constant:
    """Expert matrices grow where kernels want other shapes: padded 4-bit floats, shuffled copies on ROCm."""
    quantization = now.arch.quantization
    if quantization is not None and quantization.weights is Dtype.MXFP4:
        inner = now.arch.hidden
        return Constant(value=PADDED * ceil(inner / PADDED) / inner, spread=0.01, rows=0, fitted_on="")
    if now.rocm and quantization is None and now.arch.is_moe:
        return now.constants["weightsRocmExperts"]
    return EXACTLY


def gib_text(size: float) -> str:
    return f"{size / GIB:.2f} GiB"
