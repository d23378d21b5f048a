"""The dialects of `quantization_config`, each read into one recipe: the format of every linear module.

A dialect is what a quantizing tool writes: block FP8, compressed-tensors, AWQ and GPTQ, ModelOpt, MXFP4 and a few more.
What the recipe means for bytes is `quantization`; how patterns meet module names is `modules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plimsoll.facts.configs.fields import ConfigError, Fields
from plimsoll.facts.configs.modules import Patterns
from plimsoll.facts.dtypes import Dtype

Names = tuple[str, ...]

_ALGORITHMS = {
    "FP8": Dtype.FP8, "FP8_PB_WO": Dtype.FP8, "FP8_PER_CHANNEL_PER_TOKEN": Dtype.FP8, "MXFP8": Dtype.FP8,
    "NVFP4": Dtype.NVFP4, "W4A16_NVFP4": Dtype.NVFP4, "NVFP4_AWQ": Dtype.NVFP4, "W4A8_NVFP4_FP8": Dtype.NVFP4,
    "W4A16_AWQ": Dtype.INT4, "W4A8_AWQ": Dtype.INT4, "W8A8_SQ_PER_CHANNEL": Dtype.INT8, "INT8_SQ": Dtype.INT8,
    "MXFP4": Dtype.MXFP4, "W4A8_MXFP4_FP8": Dtype.MXFP4,
}  # fmt: skip
_WIDTHS = {
    ("int", 2): Dtype.INT4, ("int", 3): Dtype.INT4, ("int", 4): Dtype.INT4, ("int", 8): Dtype.INT8,
    ("float", 4): Dtype.NVFP4, ("float", 8): Dtype.FP8,
}  # fmt: skip
_QUARK = {"fp4": Dtype.MXFP4, "fp8_e4m3": Dtype.FP8, "int8": Dtype.INT8, "int4": Dtype.INT4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    method: str
    stored: Callable[[Names], Dtype | None]
    """The format of a module by its possible names; None is the model's own."""
    experts_only: bool = False
    group_size: int | None = None
    block: tuple[int, int] | None = None
    activations: Dtype | None = None
    act_order: bool = False
    zero_points: bool = False


def read_recipe(config: Fields, method: str) -> Recipe | None:
    """What the object of a quantizing tool says; None where it says that nothing is quantized."""
    reader = _READERS.get(method)
    if reader is None:
        raise ConfigError(
            f"quantization_config: quant_method is {method!r}; known are {', '.join(sorted(_READERS))}"
        )
    return reader(config)


def _skipped(config: Fields, *keys: str) -> Patterns:
    """Patterns under these keys, and the modules every method leaves alone unless it names them."""
    listed: list[object] = ["lm_head", "embed_tokens"]
    for key in keys:
        listed.extend(config.sequence(key) or ())
    return Patterns(listed)


def _all_but(skipped: Patterns, dtype: Dtype) -> Callable[[Names], Dtype | None]:
    return lambda names: None if skipped.mean(names) else dtype


def _group_size(config: Fields, *names: str) -> int | None:
    """The size of a group; None where there is one group for each channel (minus one), whose scales take next to nothing."""
    found = config.integer(*names, least=-1)
    return found if found is not None and found > 0 else None


def _block(config: Fields, key: str) -> tuple[int, int] | None:
    shape = config.sequence(key)
    if not shape:
        return None
    match tuple(shape):
        case (int(rows), int(columns)) if rows > 0 and columns > 0:
            return rows, columns
    raise ConfigError(f"quantization_config: {key} is {shape!r}; it must be two positive whole numbers")


def _by_bits(bits: int, kind: str = "int") -> Dtype:
    found = _WIDTHS.get((kind, bits))
    if found is None:
        raise ConfigError(
            f"quantization_config: {bits} bits of kind {kind!r} are unknown; known are int 2, 3, 4, 8 and float 4, 8"
        )
    return found


def _named(patterns_by_format: Mapping[Dtype, list[object]]) -> Callable[[Names], Dtype | None]:
    named = [(dtype, Patterns(patterns)) for dtype, patterns in sorted(patterns_by_format.items())]
    return lambda names: next((dtype for dtype, patterns in named if patterns.mean(names)), None)


def _listed_formats(config: Fields) -> dict[Dtype, list[object]]:
    """ModelOpt's list of layers with a format each."""
    found: dict[Dtype, list[object]] = {}
    for name in config.mapping("quantized_layers") or {}:
        algorithm = config.within("quantized_layers").within(name).text("quant_algo") or ""
        dtype = _ALGORITHMS.get(algorithm.upper())
        if dtype is not None:
            found.setdefault(dtype, []).append(name)
    return found


def _fp8(config: Fields) -> Recipe:
    everywhere = _all_but(_skipped(config, "modules_to_not_convert", "ignored_layers"), Dtype.FP8)
    special = _named(_listed_formats(config))  # experts in a narrower format beside the rest in FP8
    # The engine has a reader of its own for this one, and asks for consent before it takes it.
    of_fbgemm = (config.text("quant_method") or "").lower().replace("_", "-") == "fbgemm-fp8"
    return Recipe(
        method="fbgemm_fp8" if of_fbgemm else "fp8",
        stored=lambda names: special(names) or everywhere(names),
        block=_block(config, "weight_block_size"),
        activations=Dtype.FP8,
    )


def _packed(config: Fields) -> Recipe:
    """AWQ, GPTQ and AutoRound: integers with a scale (and a zero point) a group."""
    method = (config.text("quant_method") or "").lower().replace("_", "-")
    dtype = _by_bits(config.integer("bits", "w_bit", least=1) or 4)
    extra = config.within("extra_config")
    dense: list[object] = [name for name in extra.raw if extra.within(name).integer("bits") == 16]
    dense += [f"re:{rule[2:]}" for rule in config.mapping("dynamic") or () if rule.startswith("-:")]
    skipped = Patterns(
        ["lm_head", "embed_tokens", *dense, *(config.sequence("modules_to_not_convert") or ())]
    )
    head = dtype if config.value("lm_head") is True else None
    body = _all_but(skipped, dtype)
    return Recipe(
        method=method,
        stored=lambda names: head if names == ("lm_head",) else body(names),
        group_size=_group_size(config, "group_size", "q_group_size"),
        act_order=config.value("desc_act") is True,
        zero_points=config.value("zero_point") is True or "awq" not in method,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """One of compressed-tensors' groups: which modules, and how they are stored."""

    targets: Patterns | None
    """None is every linear module."""
    dtype: Dtype
    weights: Fields
    inputs: Fields


def _compressed(config: Fields) -> Recipe | None:
    groups = list(_groups(config))
    if not groups:
        return None
    skipped = Patterns(config.sequence("ignore") or ())

    def stored(names: Names) -> Dtype | None:
        if skipped.mean(names) or names == ("embed_tokens",):
            return None
        named = next((g.dtype for g in groups if g.targets is not None and g.targets.mean(names)), None)
        if named is not None or names == ("lm_head",):
            return named
        return next((g.dtype for g in groups if g.targets is None), None)

    first = groups[0]
    inputs = first.inputs
    return Recipe(
        method="compressed-tensors",
        stored=stored,
        group_size=_group_size(first.weights, "group_size"),
        block=_block(first.weights, "block_structure"),
        activations=_by_bits(inputs.integer("num_bits", least=1) or 8, inputs.text("type") or "float")
        if inputs.raw
        else None,
        act_order=first.weights.value("actorder") in ("group", True),
        zero_points=first.weights.value("symmetric") is False,
    )


def _groups(config: Fields) -> list[_Group]:
    found = []
    listed = config.within("config_groups")
    for name in sorted(listed.raw):
        group = listed.within(name)
        weights = group.within("weights")
        if not weights.raw:
            continue
        targets = group.sequence("targets") or ["Linear"]
        every = any(target in ("Linear", "FusedMoE") for target in targets)
        dtype = _compressed_dtype(weights, group.text("format") or config.text("format") or "")
        found.append(
            _Group(None if every else Patterns(targets), dtype, weights, group.within("input_activations"))
        )
    return found


def _compressed_dtype(weights: Fields, layout: str) -> Dtype:
    kind, bits = weights.text("type") or "int", weights.integer("num_bits", least=1) or 8
    if (kind, bits) == ("float", 4):
        return (
            Dtype.MXFP4 if "mxfp4" in layout or weights.integer("group_size", least=-1) == 32 else Dtype.NVFP4
        )
    return _by_bits(bits, kind)


def _modelopt(config: Fields) -> Recipe | None:
    algorithm = (config.text("quant_algo") or "").upper()
    listed = _listed_formats(config)
    if listed:
        return Recipe(method="modelopt", stored=_named(listed), activations=Dtype.FP8)
    if algorithm in {"", "NONE"}:
        return None
    if algorithm == "MIXED_PRECISION":
        return _compressed(config)
    dtype = _ALGORITHMS.get(algorithm)
    if dtype is None:
        raise ConfigError(
            f"quantization_config: quant_algo is {algorithm!r}; known are {', '.join(sorted(_ALGORITHMS))}"
        )
    operand = Dtype.FP8 if dtype is Dtype.INT4 else dtype
    return Recipe(
        method="modelopt",
        stored=_all_but(_skipped(config, "exclude_modules", "ignore"), dtype),
        group_size=_group_size(config, "group_size") or (128 if dtype is Dtype.INT4 else None),
        activations=None if algorithm.startswith("W4A16") else operand,
    )


def _mxfp4(config: Fields) -> Recipe:
    skipped = _skipped(config, "modules_to_not_convert")
    return Recipe(method="mxfp4", stored=_all_but(skipped, Dtype.MXFP4), experts_only=True)


def _bitsandbytes(config: Fields) -> Recipe:
    dtype = Dtype.INT8 if config.value("load_in_8bit") is True else Dtype.INT4
    skipped = _skipped(config, "llm_int8_skip_modules")
    group = 64 if dtype is Dtype.INT4 else None
    return Recipe(method="bitsandbytes", stored=_all_but(skipped, dtype), group_size=group)


def _experts_int8(config: Fields) -> Recipe:
    return Recipe(method="experts_int8", stored=_all_but(_skipped(config), Dtype.INT8), experts_only=True)


def _quark(config: Fields) -> Recipe:
    spelled = config.within("global_quant_config").within("weight").text("dtype")
    dtype = _QUARK.get(spelled or "")
    if dtype is None:
        raise ConfigError(
            f"quantization_config: global_quant_config.weight.dtype is {spelled!r}; known are {', '.join(sorted(_QUARK))}"
        )
    return Recipe(method="quark", stored=_all_but(_skipped(config, "exclude"), dtype), activations=dtype)


_READERS: dict[str, Callable[[Fields], Recipe | None]] = {
    "fp8": _fp8, "fbgemm-fp8": _fp8, "deepseek-v4-fp8": _fp8,
    "awq": _packed, "gptq": _packed, "auto-round": _packed, "intel/auto-round": _packed, "inc": _packed,
    "awq-marlin": _packed, "gptq-marlin": _packed, "auto-awq": _packed, "auto-gptq": _packed,
    "compressed-tensors": _compressed, "modelopt": _modelopt, "modelopt-fp4": _modelopt, "modelopt-mixed": _modelopt,
    "mxfp4": _mxfp4, "gpt-oss-mxfp4": _mxfp4, "bitsandbytes": _bitsandbytes, "experts-int8": _experts_int8,
    "quark": _quark,
}  # fmt: skip
