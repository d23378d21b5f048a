"""How a checkpoint is quantized, from `quantization_config`, hf_quant_config.json, or a name that a person gives.

What most of the weights are stored in becomes the main format, every other part a deviation from it with its share;
bytes need no more, and no rule has to know the dialects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from plimsoll.facts.architecture import Deviation, Part, Quantization
from plimsoll.facts.configs.dialects import Recipe, read_recipe
from plimsoll.facts.configs.fields import ConfigError, Fields
from plimsoll.facts.configs.modules import Module
from plimsoll.facts.dtypes import Dtype

_Formats = Mapping[Part, Counter[Dtype | None]]


def read_quantization(raw: Mapping[str, object], linears: Sequence[Module]) -> Quantization | None:
    """How a checkpoint is quantized; None where the object says that nothing is."""
    inner = raw.get("quantization")  # hf_quant_config.json holds everything one level down
    if isinstance(inner, Mapping):
        raw = {"quant_method": "modelopt", **inner}
    config = Fields(raw)
    method = config.text("quant_method") or ("modelopt" if "quant_algo" in raw else "")
    recipe = read_recipe(config, method.lower().replace("_", "-"))
    return None if recipe is None else _summary(recipe, linears, _cache_dtype(config))


def _summary(recipe: Recipe, linears: Sequence[Module], cache: Dtype | None) -> Quantization | None:
    formats: dict[Part, Counter[Dtype | None]] = {}
    for module in linears:
        kept = recipe.experts_only and module.part is not Part.EXPERTS
        stored = None if kept else recipe.stored(module.names)
        formats.setdefault(module.part, Counter())[stored] += module.parameters
    main = _main_format(formats)
    if main is None:
        return None
    deviations = [
        Deviation(part=part, dtype=dtype, share=number / counts.total())
        for part, counts in formats.items()
        for dtype, number in counts.items()
        if dtype is not main
    ]
    for part, name in ((Part.LM_HEAD, "lm_head"), (Part.EMBEDDING, "embed_tokens")):
        stored = recipe.stored((name,))
        if stored is not None:
            deviations.append(Deviation(part=part, dtype=stored))
    kept_parts = {d.part for d in deviations if d.dtype is None and d.share > 0.5}
    return Quantization(
        method=recipe.method,
        weights=main,
        experts_only=Part.EXPERTS in formats and set(formats) - {Part.EXPERTS} <= kept_parts,
        skips_attention=Part.ATTENTION in kept_parts,
        group_size=recipe.group_size,
        block=recipe.block,
        activations=recipe.activations,
        act_order=recipe.act_order,
        zero_points=recipe.zero_points,
        kv_cache=cache,
        deviations=tuple(sorted(deviations, key=lambda d: (d.part, str(d.dtype)))),
    )


def _main_format(formats: _Formats) -> Dtype | None:
    """The format that most of the largest part has: of experts where there are any, else of dense feed-forward parts, else of any part."""
    for part in (Part.EXPERTS, Part.FFN, *formats):
        for dtype, _ in formats.get(part, Counter()).most_common():
            if dtype is not None:
                return dtype
    return None


def _cache_dtype(config: Fields) -> Dtype | None:
    scheme = config.mapping("kv_cache_scheme")
    if scheme:
        return Dtype.NVFP4 if scheme.get("num_bits") == 4 else Dtype.FP8
    algorithm = config.text("kv_cache_quant_algo", "kv_cache_scheme") or ""
    return {"FP8": Dtype.FP8, "NVFP4": Dtype.NVFP4}.get(algorithm.upper())


def with_expert_format(quantization: Quantization | None, spelled: str | None) -> Quantization | None:
    """DeepSeek-V4 says the format of its experts beside the quantization of everything else."""
    if quantization is None or spelled not in {"fp4", "mxfp4"} or quantization.weights is not Dtype.FP8:
        return quantization
    others = tuple(
        Deviation(part=part, dtype=quantization.weights)
        for part in (Part.ATTENTION, Part.SHARED_EXPERTS)
        if part not in {d.part for d in quantization.deviations}
    )
    return replace(quantization, weights=Dtype.MXFP4, deviations=(*quantization.deviations, *others))


def quantization_named(name: str, linears: Sequence[Module]) -> Quantization | None:
    """What a bare name usually means (`FP8-dynamic`, `AWQ`, `w4a16`, ...); None for names of full precision."""
    key = name.lower().replace("_", "-")
    if key in {"", "bf16", "fp16", "bfloat16", "float16", "none"}:
        return None
    raw = _NAMED.get(key)
    if raw is None:
        raise ConfigError(f"quantization: {name!r} is unknown; known are {', '.join(sorted(_NAMED))}")
    if "NVFP4" in str(raw.get("quant_algo")) and any(module.part is Part.EXPERTS for module in linears):
        raw = {
            **raw,
            "ignore": ["*self_attn*", "*linear_attn*", "*mixer.?_proj*"],
        }  # as published for models with experts
    return read_quantization(raw, linears)


def _group(weights: Mapping[str, object], inputs: Mapping[str, object] | None) -> dict[str, object]:
    """As the usual recipes write it: linear-attention layers stay as they are."""
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    ignore = ["lm_head", "re:.*linear_attn.*"]
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ignore}


_FLOAT8, _INT8 = {"type": "float", "num_bits": 8}, {"type": "int", "num_bits": 8}
_INT4 = {"type": "int", "num_bits": 4, "group_size": 128, "symmetric": True}
_GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
_NAMED: dict[str, Mapping[str, object]] = {
    "fp8": {"quant_method": "fp8"},
    "fp8-block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "fp8-per-block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "fp8-per-tensor": {"quant_method": "fp8"},
    "fp8-per-channel": {"quant_method": "fp8"},
    "fp8-dynamic": _group(_FLOAT8, _FLOAT8),
    "compressed-tensors": _group(_FLOAT8, _FLOAT8),
    "modelopt": {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
    "nvfp4": {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "group_size": 16,
        "kv_cache_quant_algo": "FP8",
    },
    "modelopt-fp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    "gptq": _GPTQ,
    "gptq-int4": _GPTQ,
    "gptq-int8": {"quant_method": "gptq", "bits": 8, "group_size": 128},
    "w4a16": _group(_INT4, None),
    "w8a16": _group(_INT8, None),
    "w8a8": _group(_INT8, _INT8),
    "int8": _group(_INT8, _INT8),
    "int4": _group(_INT4, None),
    "autoround": {"quant_method": "auto-round", "bits": 4, "group_size": 128},
    "mxfp4": {"quant_method": "mxfp4"},
    "bitsandbytes": {"quant_method": "bitsandbytes", "load_in_4bit": True},
    "bnb-4bit": {"quant_method": "bitsandbytes", "load_in_4bit": True},
    "experts-int8": {"quant_method": "experts_int8"},
}
