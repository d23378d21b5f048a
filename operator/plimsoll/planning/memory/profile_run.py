"""The peak of the profile run: one forward pass with the most tokens, and one sampling pass with the most sequences.

The engine keeps room for what the larger of the two passes needed, and for what stays allocated between them. The formulas are those
of its code, by version; the few constants are fitted to start-up logs (`constants`).
"""

from __future__ import annotations

from typing import Final

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    DenseFfn,
    LatentAttention,
    LinearAttention,
    MoeFfn,
    Span,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.gpus import GIB
from plimsoll.facts.model import Certainty
from plimsoll.planning.memory.constants import MemoryConstant
from plimsoll.planning.memory.situation import Estimate, Situation, gib_text

TRITON_SAMPLING: Final = Version(0, 17)
"""From this version on top-k and top-p are found without sorting, so the sampler has only half as many buffers."""
HELD_WORKSPACE: Final = Version(0, 14)
"""From this version on the workspace of experts stays allocated after the profile run."""
SHARED_BUFFERS: Final = Version(0, 10)
"""From this version on it does so with kernels for block-scaled weights."""
SHARED_BUFFERS_GONE: Final = Version(0, 12)
"""From this version on it does not any more, until HELD_WORKSPACE."""
FULL_WARMUP: Final = Version(0, 33)
"""From this version on the second runner samples once more with everything that a request may ask for; before, only the best token."""
GATHERED_CONTEXTS: Final = 40
"""For how many contexts of the greatest length sparse attention gathers the scorer's keys."""
GATHERED_KEY_BYTES: Final = 132
"""Bytes of one such key: 128 values of 8 bits and a float32 scale."""
LATENT_PREFILL_TOKENS: Final = 65_536
"""The most tokens of a latent context that a prefill expands at once."""
CHUNK: Final = 64
"""Tokens of a chunk of linear attention."""


def activation(now: Situation, *, last_stage: bool = True) -> Estimate:
    """The peak of the profile run: what stays allocated between the passes, and the larger of the two passes."""
    arch, settings = now.arch, now.settings
    tokens = settings.max_num_batched_tokens
    rows = min(settings.max_num_seqs, tokens)
    hidden = tokens * arch.hidden * 2
    held = gathered_tokens(now)
    workspace = max(expert_workspace(now), scorer_workspace(now))
    kept = workspace if _keeps_workspace(now) else 0
    copies = sampler_copies(now)
    sampler = copies.value * rows * arch.vocab * 4 if last_stage and not arch.encoder else 0
    forward = max(_dense_forward(now), latent_prefill(now), _linear_forward(now), workspace - kept)
    unexplained = now.constants[unexplained_name(now)]
    guessed = copies.rows == 0 and sampler > forward
    return Estimate(
        bytes=hidden + held + kept + max(forward, sampler) + unexplained.value * GIB,
        # The spread of what no formula explains was measured for all terms together, and the ledger shares it out. A constant that was
        # only read in the engine's code has a spread beyond that.
        spread=unexplained.spread * GIB + (copies.spread * rows * arch.vocab * 4 if guessed else 0.0),
        formula=(
            "hidden states T*H*2 B + expert workspace + tokens gathered from other ranks + "
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
            **({"gathered": gib_text(held)} if held else {}),
        },
        certainty=Certainty.ASSUMED if guessed else Certainty.CALIBRATED,
    )


def _keeps_workspace(now: Situation) -> bool:
    """Whether the workspace of experts stays allocated after the pass; in early versions only with kernels for block-scaled weights."""
    quantization = now.arch.quantization
    scaled = quantization is not None and quantization.block is not None
    return now.version >= HELD_WORKSPACE or (scaled and SHARED_BUFFERS <= now.version < SHARED_BUFFERS_GONE)


def sampler_copies(now: Situation) -> MemoryConstant:
    """How many float32 copies of the logits the sampling pass holds at once. Every rank has all logits, so tensor ranks do not divide them."""
    return now.constants[_sampler_name(now)]


def _sampler_name(now: Situation) -> str:
    version = now.version
    if version < TRITON_SAMPLING:
        return "samplerCopiesSort"
    if not now.on_second_runner:
        return "samplerCopiesTriton"
    return "samplerCopiesFull" if version >= FULL_WARMUP else "samplerCopiesLean"


def unexplained_name(now: Situation) -> str:
    """The constant for what no formula explains, by what makes a start hard to predict: other vendors, small cards, experts, many ranks,
    encoders."""
    if now.engine.whole_prompts:
        return "unexplainedFirst"
    if now.rocm:
        return "unexplainedRocmMoe" if now.arch.is_moe else "unexplainedRocm"
    plain = _is_plain(now.arch)
    if now.small:
        return "unexplainedSmallPlain" if plain else "unexplainedSmall"
    single = now.layout.gpus == 1
    if now.arch.is_moe:
        return "unexplainedMoe" if single else "unexplainedMoeMulti"
    return "unexplainedPlain" if single and plain else "unexplainedDense"


def _is_plain(arch: Architecture) -> bool:
    """Whether a model is a classic decoder: dense, for text only, and with every layer attending to everything."""
    mixers = [layer.mixer for layer in arch.layers]
    return not (arch.is_moe or arch.vision) and all(
        isinstance(mixer, Attention) and mixer.span is Span.FULL for mixer in mixers
    )


def _dense_forward(now: Situation) -> float:
    """The most that a dense layer holds at once: the residual, and a gated product beside its two factors."""
    widths = [layer.ffn.intermediate for layer in now.arch.layers if isinstance(layer.ffn, DenseFfn)]
    widths += [layer.ffn.shared_intermediate for layer in now.arch.layers if isinstance(layer.ffn, MoeFfn)]
    inner = max(widths, default=0) / now.layout.tensor
    return now.settings.max_num_batched_tokens * (now.arch.hidden + 3 * inner) * 2


def _linear_forward(now: Situation) -> float:
    """What chunked linear attention holds: for each token and head the products within a chunk, and a state for each chunk.

    A gate for each channel (where convolutions are split) doubles that, as gates and gated keys are held in float32 as well.
    """
    mixers = [layer.mixer for layer in now.arch.layers if isinstance(layer.mixer, LinearAttention)]
    if not mixers:
        return 0.0
    mixer = mixers[0]
    floats = 2 * CHUNK + mixer.value_dim * (2 if mixer.split_conv else 1)
    halves = 6 * mixer.value_dim + mixer.key_dim * mixer.value_dim / CHUNK
    heads = mixer.value_heads / now.layout.tensor
    per_head = (4 * floats + 2 * halves) * (2 if mixer.split_conv else 1)
    return now.settings.max_num_batched_tokens * heads * per_head


def expert_workspace(now: Situation) -> float:
    """Two buffers for the experts that every token chose: the inputs of their second matrix, and their outputs before they are summed."""
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
    """What sparse attention takes to gather the scorer's keys of so many contexts of the greatest length.

    The workspace of experts is in the same memory at another time, so only the larger of the two counts.
    """
    scored = any(getattr(layer.mixer, "indexer", None) is not None for layer in now.arch.layers)
    return GATHERED_CONTEXTS * now.settings.max_model_len * GATHERED_KEY_BYTES if scored else 0.0


def gathered_tokens(now: Situation) -> float:
    """Buffers for the tokens of all data ranks, which experts spread over these ranks see: gathered before them, and summed after them."""
    if now.layout.data == 1 or not now.arch.is_moe:
        return 0.0
    return 2 * now.settings.max_num_batched_tokens * now.layout.data * now.arch.hidden * 2


def _fused_experts(now: Situation) -> bool:
    """Whether all experts run in one pass without a workspace, as kernels for ModelOpt's checkpoints and for 4-bit floats do."""
    quantization = now.arch.quantization
    return quantization is not None and (
        quantization.method.startswith("modelopt") or quantization.weights in {Dtype.MXFP4, Dtype.NVFP4}
    )


def latent_prefill(now: Situation) -> float:
    """What latent attention takes to expand the context of a prefill to keys and values of every head, a chunk at a time."""
    mixers = [layer.mixer for layer in now.arch.layers if isinstance(layer.mixer, LatentAttention)]
    if not mixers:
        return 0.0
    mixer = mixers[0]
    if mixer.indexer is not None or mixer.compress_ratio > 1 or mixer.window is not None:
        return 0.0
    settings = now.settings
    tokens = min(max(8 * settings.max_model_len, 64 * settings.max_num_seqs), LATENT_PREFILL_TOKENS)
    return tokens * mixer.heads / now.layout.tensor * (mixer.qk_nope_head_dim + mixer.v_head_dim) * 2


def encoder(now: Situation) -> Estimate:
    """The encoder's outputs that the profile run holds: as many as the limit of embeddings in a step allows."""
    vision = now.arch.vision
    if vision is None or now.settings.multimodal_items == 0:
        return Estimate(bytes=0, spread=0, formula="0 without images or videos", certainty=Certainty.EXACT)
    budget = max(now.settings.max_num_batched_tokens, vision.max_item_tokens)
    return Estimate(
        bytes=budget * now.arch.hidden * 2,
        spread=0,
        formula="max(T, tokens of the largest item)*H*2 B",
        inputs={"T": str(now.settings.max_num_batched_tokens), "item": str(vision.max_item_tokens)},
    )
