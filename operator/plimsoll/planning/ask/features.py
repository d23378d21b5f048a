"""Optional abilities of a deployment as engine settings: cache dtype, adapter slots, speculation, media."""

from __future__ import annotations

from typing import Final

from plimsoll.api.v1alpha1.features import Speculative
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.architecture import Architecture, Attention, LatentAttention
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.values import explained
from plimsoll.planning.layouts.readable import SCALED_FP8
from plimsoll.planning.plan import Origin, Value
from plimsoll.planning.settings import LoraSlots, Speculation

FIELD: Final = "memory.kvCacheDtype"
PACKED_LATENTS: Final = "nvfp4_ds_mla"
"""The engine's word for a cache whose records hold latents in 4 bits together with their positions."""
LATENT_FORMATS: Final = frozenset(
    ["auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_inc", "fp8_ds_mla", PACKED_LATENTS]
)
"""Formats that some kernel of latent attention keeps, as of vLLM 0.32. The one kernel of AMD that takes fp8_e5m2 too is off by default."""
PACKED_FP8: Final = "fp8_ds_mla"
E5M2: Final = "fp8_e5m2"
BY_HEAD: Final = "_per_token_head"
"""How the engine's words end for caches with a scale for each token and head."""
SCALED_E4M3: Final = frozenset(["fp8", "modelopt", "quark"])
"""Methods of checkpoints that may bring scales for a cache of FP8, all for e4m3: the engine takes no e5m2 beside them."""
MOST_SLOTS: Final = 8
"""The most adapters that are kept loaded where the user does not say how many."""
ADAPTER_RANK: Final = 16
"""The largest rank of adapters where the user does not say it; the engine's own default."""
GUESSES: Final = {"ngram": 4, "draft": 4, "eagle": 3, "eagle3": 3, "mtp": 1}
"""By method: tokens that are guessed at a time where the user does not say how many."""
SPECULATION_METHODS: Final = {"draft": "draft_model"}


def kv_dtype(intent: Intent, architecture: Architecture) -> tuple[Dtype | None, Value]:
    asked = intent.spec.memory.kv_cache_dtype
    if asked is not None and asked != "auto":
        origin, source = intent.source_of(FIELD)
        return parse_kv_dtype(asked), _value(asked, "as set", origin, source)
    own = kv_word(None, architecture)
    if own is not None:
        return None, _value(
            f"auto ({own})", "the checkpoint carries cache scales", Origin.MODEL, "quantization_config"
        )
    return None, _value(
        f"auto ({architecture.dtype.value})", "the model's own", Origin.MODEL, "the model's config"
    )


def parse_kv_dtype(word: str) -> Dtype | None:
    """The format that one of the engine's many words for it means; None for an unknown word."""
    if word.startswith("int8") or word == SCALED_FP8:
        return Dtype.INT8
    if word.startswith("fp8"):
        return Dtype.FP8
    if word.startswith("nvfp4"):
        return Dtype.NVFP4
    if word.startswith("int4"):
        return Dtype.INT4
    plain = {
        "bf16": Dtype.BFLOAT16,
        "bfloat16": Dtype.BFLOAT16,
        "half": Dtype.FLOAT16,
        "float16": Dtype.FLOAT16,
    }
    return plain.get(word)


def kv_word(asked: str | None, architecture: Architecture) -> str | None:
    """The engine's word for the cache's format: what is asked for, else that of the checkpoint's scales; None is the model's own dtype."""
    if asked is not None and asked != "auto":
        return asked
    own = architecture.quantization.kv_cache if architecture.quantization is not None else None
    return own.value if own is not None else None


def unkept(word: str, architecture: Architecture) -> str | None:
    """Why no kernel keeps a cache of this model in this format, whatever the GPU (as of vLLM 0.32), and what to write; or None."""
    if architecture.is_latent and word not in LATENT_FORMATS:
        return (
            f"{architecture.name} caches latents, which the engine keeps in no such format; write fp8 or, where the engine reads it, "
            f"{PACKED_LATENTS}"
        )
    mixers = [layer.mixer for layer, _ in architecture.kinds]
    picked = any(isinstance(mixer, LatentAttention) and mixer.indexer is not None for mixer in mixers)
    if not {PACKED_FP8: picked, PACKED_LATENTS: architecture.is_latent}.get(word, True):
        return "only latents of which a scorer picks some are packed so; write fp8"
    quantization = architecture.quantization
    scaled = quantization is not None and (
        quantization.kv_cache is not None or quantization.method in SCALED_E4M3
    )
    if word == E5M2 and scaled:
        return "the checkpoint may bring scales of its own, which are for e4m3; write fp8"
    uneven = any(isinstance(mixer, Attention) and mixer.head_dim != mixer.v_head_dim for mixer in mixers)
    if uneven and (word == E5M2 or word.endswith(BY_HEAD)):
        return (
            "keys and values differ in width, for which the engine has no kernel that reads this; write fp8"
        )
    return None


def lora_slots(spec: LLMDeploymentSpec) -> LoraSlots | None:
    adapters = spec.adapters
    if adapters is None:
        return None
    loaded = adapters.max_loaded
    if loaded is None:
        # The number of slots is fixed for the engine's life, so a list of adapters that may grow while it runs does not decide it.
        counted = min(MOST_SLOTS, max(1, len(adapters.items)))
        loaded = MOST_SLOTS if adapters.runtime_loading else counted
    return LoraSlots(
        max_loras=loaded,
        max_rank=adapters.max_rank if adapters.max_rank is not None else ADAPTER_RANK,
        max_cpu_loras=adapters.max_on_host if adapters.max_on_host is not None else loaded,
    )


def guesses(wish: Speculative) -> int:
    """Tokens that are guessed at a time."""
    return wish.tokens if wish.tokens is not None else GUESSES[wish.method]


def speculation(spec: LLMDeploymentSpec, model: ModelFacts, draft: ModelFacts | None) -> Speculation | None:
    wish = spec.speculative
    if wish is None:
        return None
    tokens = guesses(wish)
    method = SPECULATION_METHODS.get(wish.method, wish.method)
    if wish.method == "ngram":
        return Speculation(method=method, tokens=tokens)
    if wish.method == "mtp":
        return Speculation(method=method, tokens=tokens, draft_layers=model.architecture.mtp_layers)
    if draft is None:
        # The draft model is not known, which is told elsewhere; here its layers count nothing.
        return Speculation(method=method, tokens=tokens)
    return Speculation(
        method=method,
        tokens=tokens,
        draft_weight_bytes=draft.weights.total,
        draft_kv_bytes_per_token=cache_bytes_per_token(draft.architecture),
        draft_layers=len(draft.architecture.layers),
    )


def cache_bytes_per_token(architecture: Architecture) -> int:
    """Bytes that one token adds to the cache of a draft model on one rank, in the model's own dtype."""
    total = 0.0
    for layer in architecture.layers:
        mixer = layer.mixer
        if isinstance(mixer, Attention) and not mixer.shares_cache:
            total += mixer.kv_heads * (mixer.head_dim + mixer.v_head_dim) * architecture.dtype.bytes
        elif isinstance(mixer, LatentAttention):
            total += (mixer.kv_lora_rank + mixer.qk_rope_head_dim) * architecture.dtype.bytes
    return int(total)


def multimodal_items(spec: LLMDeploymentSpec) -> int | None:
    media = spec.multimodal
    if media.text_only:
        return 0
    counts = [count for count in (media.images, media.videos) if count is not None]
    return sum(counts) if counts else None


def _value(value: str, formula: str, origin: Origin, source: str) -> Value:
    return explained("kv_dtype", value, formula, origin=origin, source=source, changes=FIELD, field=FIELD)
