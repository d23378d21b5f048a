"""How a checkpoint is quantized: `quantization_config` in its many dialects, or the name a user or a repository gives.

A dialect is read into a recipe: the format of each linear module. What most of the weights have becomes the main format,
every other part a deviation from it with its share; bytes need no more, and no rule has to know the dialects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.facts.architecture import Deviation, Layer, Part, Quantization
from plimsoll.facts.configs.fields import ConfigError
from plimsoll.facts.configs.modules import Patterns, modules
from plimsoll.facts.dtypes import Dtype

_Names = tuple[str, ...]
_ALGORITHMS = {
    "FP8": Dtype.FP8, "FP8_PB_WO": Dtype.FP8, "FP8_PER_CHANNEL_PER_TOKEN": Dtype.FP8, "MXFP8": Dtype.FP8,
    "NVFP4": Dtype.NVFP4, "W4A16_NVFP4": Dtype.NVFP4, "NVFP4_AWQ": Dtype.NVFP4, "W4A8_NVFP4_FP8": Dtype.NVFP4,
    "W4A16_AWQ": Dtype.INT4, "W4A8_AWQ": Dtype.INT4, "W8A8_SQ_PER_CHANNEL": Dtype.INT8, "INT8_SQ": Dtype.INT8,
    "MXFP4": Dtype.MXFP4, "W4A8_MXFP4_FP8": Dtype.MXFP4,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    method: str
    stored: Callable[[_Names], Dtype | None]
    """The format of a module by its possible names; None is the model's own."""
    experts_only: bool = False
    group_size: int | None = None
    block: tuple[int, int] | None = None
    activations: Dtype | None = None
    act_order: bool = False
    zero_points: bool = False


def read_quantization(raw: Mapping[str, object], layers: Sequence[Layer]) -> Quantization | None:
    """None where the object says that nothing is quantized."""
    inner = raw.get("quantization")  # hf_quant_config.json holds everything one level down
    if isinstance(inner, Mapping):
        raw = {"quant_method": "modelopt", **inner}
    method = (
        str(raw.get("quant_method") or ("modelopt" if "quant_algo" in raw else "")).lower().replace("_", "-")
    )
    reader = _READERS.get(method)
    if reader is None:
        raise ConfigError(
            f"quantization_config: quant_method is {raw.get('quant_method')!r}; known are {', '.join(sorted(_READERS))}"
        )
    recipe = reader(raw)
    return None if recipe is None else _summary(recipe, layers, _cache_dtype(raw))


def _summary(recipe: _Recipe, layers: Sequence[Layer], cache: Dtype | None) -> Quantization | None:
    counts: dict[Part, Counter[Dtype | None]] = {}
    for part, names in modules(layers):
        kept = recipe.experts_only and part is not Part.EXPERTS
        counts.setdefault(part, Counter())[None if kept else recipe.stored(names)] += 1
    main = _main_format(counts)
    if main is None:
        return None
    deviations = [
        Deviation(part=part, dtype=dtype, share=number / sum(formats.values()))
        for part, formats in counts.items()
        for dtype, number in formats.items()
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
        experts_only=Part.EXPERTS in counts and set(counts) - {Part.EXPERTS} <= kept_parts,
        skips_attention=Part.ATTENTION in kept_parts,
        group_size=recipe.group_size,
        block=recipe.block,
        activations=recipe.activations,
        act_order=recipe.act_order,
        zero_points=recipe.zero_points,
        kv_cache=cache,
        deviations=tuple(sorted(deviations, key=lambda d: (d.part, str(d.dtype)))),
    )


def _main_format(counts: Mapping[Part, Counter[Dtype | None]]) -> Dtype | None:
    """What most of the largest part has: experts where there are any, else the dense feed-forward parts, else anything."""
    for part in (Part.EXPERTS, Part.FFN, *counts):
        for dtype, _ in counts.get(part, Counter()).most_common():
            if dtype is not None:
                return dtype
    return None


def _cache_dtype(raw: Mapping[str, object]) -> Dtype | None:
    scheme = raw.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme:
        return Dtype.FP8 if scheme.get("num_bits", 8) == 8 else Dtype.NVFP4
    algorithm = raw.get("kv_cache_quant_algo")
    if not isinstance(algorithm, str):
        return None
    return {"FP8": Dtype.FP8, "NVFP4": Dtype.NVFP4}.get(algorithm.upper())


def _skipped(raw: Mapping[str, object], *keys: str) -> Patterns:
    """Patterns under these keys, and the modules every method leaves alone unless it names them."""
    listed: list[object] = ["lm_head", "embed_tokens"]
    for key in keys:
        found = raw.get(key)
        if isinstance(found, Sequence) and not isinstance(found, str):
            listed.extend(found)
    return Patterns(listed)


def _all_but(skipped: Patterns, dtype: Dtype) -> Callable[[_Names], Dtype | None]:
    return lambda names: None if skipped.mean(names) else dtype


def _fp8(raw: Mapping[str, object]) -> _Recipe:
    block = raw.get("weight_block_size")
    shape = (int(block[0]), int(block[1])) if isinstance(block, Sequence) and len(block) == 2 else None
    skipped = _skipped(raw, "modules_to_not_convert", "ignored_layers")
    return _Recipe(method="fp8", stored=_all_but(skipped, Dtype.FP8), block=shape, activations=Dtype.FP8)


def _packed(raw: Mapping[str, object]) -> _Recipe:
    """AWQ, GPTQ and AutoRound: integers with a scale (and a zero point) a group."""
    method = str(raw["quant_method"]).lower().replace("_", "-")
    bits = _number(raw, "bits", "w_bit", default=4)
    dtype = _by_bits(bits)
    extra = raw.get("extra_config")
    dense = [name for name, how in extra.items() if _bits_of(how) == 16] if isinstance(extra, Mapping) else []
    rules = raw.get("dynamic")
    dense += (
        [f"re:{rule[2:]}" for rule in rules if str(rule).startswith("-:")]
        if isinstance(rules, Mapping)
        else []
    )
    skipped = _skipped({**raw, "dense": dense}, "modules_to_not_convert", "dense")
    packed_head = raw.get("lm_head") is True
    group = _number(raw, "group_size", "q_group_size", default=128)
    return _Recipe(
        method=method,
        stored=lambda names: (
            dtype if packed_head and names == ("lm_head",) else _all_but(skipped, dtype)(names)
        ),
        group_size=group if group > 0 else None,
        act_order=raw.get("desc_act") is True,
        zero_points=raw.get("zero_point") is True or method in {"gptq", "auto-round"},
    )


def _bits_of(how: object) -> object:
    return how.get("bits") if isinstance(how, Mapping) else None


def _number(raw: Mapping[str, object], *names: str, default: int) -> int:
    for name in names:
        found = raw.get(name)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return default


def _by_bits(bits: int, kind: str = "int") -> Dtype:
    table = {
        ("int", 2): Dtype.INT4, ("int", 3): Dtype.INT4, ("int", 4): Dtype.INT4, ("int", 8): Dtype.INT8,
        ("float", 8): Dtype.FP8, ("float", 4): Dtype.NVFP4,
    }  # fmt: skip
    found = table.get((kind, bits))
    if found is None:
        raise ConfigError(
            f"quantization_config: {bits} bits of kind {kind!r} are unknown; known are int 2-8, float 4 and 8"
        )
    return found


def _compressed(raw: Mapping[str, object]) -> _Recipe | None:
    groups = raw.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return None
    skipped = Patterns(raw.get("ignore") or ())  # type: ignore[arg-type]
    chosen: list[tuple[Patterns | None, Dtype, Mapping[str, object], Mapping[str, object]]] = []
    for name in sorted(groups):
        group = groups[name]
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        dtype = _compressed_dtype(weights, str(group.get("format") or raw.get("format") or ""))
        targets = group.get("targets") or ["Linear"]
        every = any(str(target) in {"Linear", "FusedMoE", "MoEGate"} for target in targets)
        inputs = group.get("input_activations")
        chosen.append(
            (
                None if every else Patterns(targets),
                dtype,
                weights,
                inputs if isinstance(inputs, Mapping) else {},
            )
        )
    if not chosen:
        return None

    def stored(names: _Names) -> Dtype | None:
        if skipped.mean(names) or names == ("embed_tokens",):
            return None
        named = next(
            (dtype for targets, dtype, _, _ in chosen if targets is not None and targets.mean(names)), None
        )
        if named is not None or names == ("lm_head",):
            return named
        return next((dtype for targets, dtype, _, _ in chosen if targets is None), None)

    _, _, weights, inputs = chosen[0]
    structure = weights.get("block_structure")
    group = weights.get("group_size")
    return _Recipe(
        method="compressed-tensors",
        stored=stored,
        group_size=group if isinstance(group, int) and group > 0 else None,
        block=(int(structure[0]), int(structure[1]))
        if isinstance(structure, Sequence) and len(structure) == 2
        else None,
        activations=_by_bits(_number(inputs, "num_bits", default=8), str(inputs.get("type", "float")))
        if inputs
        else None,
        act_order=weights.get("actorder") in {"group", True},
        zero_points=weights.get("symmetric") is False,
    )


def _compressed_dtype(weights: Mapping[str, object], layout: str) -> Dtype:
    kind, bits = str(weights.get("type", "int")), _number(weights, "num_bits", default=8)
    if kind == "float" and bits == 4:
        return Dtype.MXFP4 if "mxfp4" in layout or weights.get("group_size") == 32 else Dtype.NVFP4
    return _by_bits(bits, kind)


def _modelopt(raw: Mapping[str, object]) -> _Recipe | None:
    algorithm = str(raw.get("quant_algo") or "").upper()
    skipped = _skipped(raw, "exclude_modules", "ignore")
    listed = raw.get("quantized_layers")
    if isinstance(listed, Mapping):
        by_format: dict[Dtype, list[object]] = {}
        for name, how in listed.items():
            dtype = _ALGORITHMS.get(str(how.get("quant_algo") if isinstance(how, Mapping) else "").upper())
            if dtype is not None:
                by_format.setdefault(dtype, []).append(name)
        named = [(dtype, Patterns(names)) for dtype, names in sorted(by_format.items())]
        return _Recipe(
            method="modelopt",
            stored=lambda names: next((dtype for dtype, patterns in named if patterns.mean(names)), None),
            activations=Dtype.FP8,
        )
    if algorithm in {"", "NONE", "MIXED_PRECISION"}:
        return None if algorithm != "MIXED_PRECISION" else _compressed(raw)
    dtype = _ALGORITHMS.get(algorithm)
    if dtype is None:
        raise ConfigError(
            f"quantization_config: quant_algo is {algorithm!r}; known are {', '.join(sorted(_ALGORITHMS))}"
        )
    weight_only = algorithm.startswith("W4A16")
    group = _number(raw, "group_size", default=0)
    return _Recipe(
        method="modelopt",
        stored=_all_but(skipped, dtype),
        group_size=group or (128 if dtype is Dtype.INT4 else None),
        activations=None if weight_only else (Dtype.FP8 if dtype is Dtype.INT4 else dtype),
    )


def _mxfp4(raw: Mapping[str, object]) -> _Recipe:
    return _Recipe(
        method="mxfp4",
        stored=_all_but(_skipped(raw, "modules_to_not_convert"), Dtype.MXFP4),
        experts_only=True,
    )


def _bitsandbytes(raw: Mapping[str, object]) -> _Recipe:
    dtype = Dtype.INT8 if raw.get("load_in_8bit") is True else Dtype.INT4
    skipped = _skipped(raw, "llm_int8_skip_modules")
    return _Recipe(
        method="bitsandbytes", stored=_all_but(skipped, dtype), group_size=64 if dtype is Dtype.INT4 else None
    )


def _experts_int8(raw: Mapping[str, object]) -> _Recipe:
    return _Recipe(method="experts_int8", stored=_all_but(_skipped(raw), Dtype.INT8), experts_only=True)


def _quark(raw: Mapping[str, object]) -> _Recipe | None:
    overall = raw.get("global_quant_config")
    weight = overall.get("weight") if isinstance(overall, Mapping) else None
    if not isinstance(weight, Mapping):
        return None
    spelled = str(weight.get("dtype"))
    dtype = {"fp4": Dtype.MXFP4, "fp8_e4m3": Dtype.FP8, "int8": Dtype.INT8, "int4": Dtype.INT4}.get(spelled)
    if dtype is None:
        raise ConfigError(
            f"quantization_config: weight dtype is {spelled!r}; known are fp4, fp8_e4m3, int8 and int4"
        )
    return _Recipe(method="quark", stored=_all_but(_skipped(raw, "exclude"), dtype), activations=dtype)


_READERS: dict[str, Callable[[Mapping[str, object]], _Recipe | None]] = {
    "fp8": _fp8, "fbgemm-fp8": _fp8, "deepseek-v4-fp8": _fp8,
    "awq": _packed, "gptq": _packed, "auto-round": _packed, "intel/auto-round": _packed, "inc": _packed,
    "awq-marlin": _packed, "gptq-marlin": _packed, "auto-awq": _packed, "auto-gptq": _packed,
    "compressed-tensors": _compressed, "modelopt": _modelopt, "modelopt-fp4": _modelopt, "modelopt-mixed": _modelopt,
    "mxfp4": _mxfp4, "gpt-oss-mxfp4": _mxfp4, "bitsandbytes": _bitsandbytes, "experts-int8": _experts_int8, "quark": _quark,
}  # fmt: skip


def with_expert_format(quantization: Quantization | None, spelled: str | None) -> Quantization | None:
    """DeepSeek-V4 says the format of its experts beside the quantization of everything else."""
    if quantization is None or spelled not in {"fp4", "mxfp4"}:
        return quantization
    others = tuple(
        Deviation(part=part, dtype=quantization.weights)
        for part in (Part.ATTENTION, Part.SHARED_EXPERTS)
        if part not in {d.part for d in quantization.deviations}
    )
    return replace(quantization, weights=Dtype.MXFP4, deviations=(*quantization.deviations, *others))


def quantization_named(name: str, layers: Sequence[Layer]) -> Quantization | None:
    """What a bare name usually means (`FP8-dynamic`, `AWQ`, `w4a16`, ...); None for names of full precision."""
    key = name.lower().replace("_", "-")
    if key in {"", "bf16", "fp16", "bfloat16", "float16", "none"}:
        return None
    raw = _NAMED.get(key)
    if raw is None:
        raise ConfigError(f"quantization: {name!r} is unknown; known are {', '.join(sorted(_NAMED))}")
    return read_quantization(raw, layers)


def _group(weights: Mapping[str, object], inputs: Mapping[str, object] | None) -> dict[str, object]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"]}


_FLOAT8, _INT8 = {"type": "float", "num_bits": 8}, {"type": "int", "num_bits": 8}
_INT4 = {"type": "int", "num_bits": 4, "group_size": 128, "symmetric": True}
_NAMED: dict[str, Mapping[str, object]] = {
    "fp8": {"quant_method": "fp8"},
    "fp8-block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "fp8-per-tensor": {"quant_method": "fp8"},
    "fp8-per-channel": {"quant_method": "fp8"},
    "fp8-dynamic": _group(_FLOAT8, _FLOAT8),
    "modelopt": {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
    "nvfp4": {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "group_size": 16,
        "kv_cache_quant_algo": "FP8",
    },
    "modelopt-fp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    "gptq-int4": {"quant_method": "gptq", "bits": 4, "group_size": 128},
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
    "compressed-tensors": _group(_FLOAT8, _FLOAT8),
    "experts-int8": {"quant_method": "experts_int8"},
}
