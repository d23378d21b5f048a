"""Which layers are dense, which hold experts, and how wide each is: the many spellings of mixture-of-experts configs."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll.facts.architecture import DenseFfn, Ffn, MoeFfn
from plimsoll.facts.configs.fields import ConfigError, Fields

_INTERMEDIATE = (
    "intermediate_size",
    "ff_intermediate_size",
    "ffn_dim",
    "n_inner",
    "ffn_hidden_size",
    "d_ff",
    "hidden_dim",
    "ffn_inner_dim",
)
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts")
_TOP_K = (
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k",
    "moe_k", "num_experts_per_topk",
)  # fmt: skip
_EXPERT_WIDTH = (
    "moe_intermediate_size",
    "expert_ffn_hidden_size",
    "expert_hidden_size",
    "moe_ffn_hidden_size",
)

# Families whose feed-forward part is two matrices, not three; the others gate.
_PLAIN = frozenset(
    [
        "gpt2",
        "opt",
        "falcon",
        "bloom",
        "gpt_neox",
        "gptj",
        "phi",
        "starcoder2",
        "mpt",
        "gpt_bigcode",
        "nemotron",
        "nemotron_h",
        "bert",
        "roberta",
        "xlm-roberta",
        "camembert",
        "distilbert",
        "arcee",
        "gpt_neo",
        "codegen",
        "persimmon",
        "apertus",
    ]
)
_STATES_ALONE = frozenset(["mamba", "mamba2", "falcon_mamba"])
"""Pure state-space families have no feed-forward part at all."""
_BOTH_HALVES = frozenset(["qwen", "molmo"])
"""Families whose width counts the gate and what it gates together."""


def feed_forward(fields: Fields, hidden: int, count: int) -> tuple[Ffn | None, ...]:
    """The feed-forward part of each of `count` decoder layers."""
    blocks = fields.objects("block_configs")
    if blocks is not None:
        return tuple(_searched(block, hidden) for block in blocks)
    if fields.model_type in _STATES_ALONE:
        return (None,) * count
    gated = _gated(fields)
    experts = _first(fields, _EXPERTS)
    if experts is None or experts < 2:
        width = _first(fields, _INTERMEDIATE)
        if width is None:  # four times the model's width is what these families mean by silence
            width = (
                4 * hidden if fields.model_type in _PLAIN else fields.assume("intermediate_size", 4 * hidden)
            )
        if fields.model_type in _BOTH_HALVES:
            width = -(-width // 2)
        dense = DenseFfn(intermediate=width, gated=gated)
        return (_doubled(fields, dense, count)) if fields.flag("use_double_wide_mlp") else (dense,) * count
    sparse = _experts(fields, experts, gated)
    is_sparse = _sparse_layers(fields, count)
    return tuple(sparse if is_sparse(i) else _dense_beside_experts(fields, gated) for i in range(count))


def _first(fields: Fields, names: tuple[str, ...]) -> int | None:
    """A number that some families give once and some for each layer; in practice it is the same for all layers with experts."""
    for name in names:
        listed = fields.integers(name)
        if listed:
            return max(listed)
        found = None if listed is not None else fields.integer(name)
        if found is not None:
            return found
    return None


def _first_number(fields: Fields, *names: str) -> int | None:
    """A number, or the first of a list with one for each kind of expert: the text's."""
    for name in names:
        listed = fields.integers(name)
        found = listed[0] if listed else None if listed is not None else fields.integer(name)
        if found is not None:
            return found
    return None


def _gated(fields: Fields) -> bool:
    activation = fields.text("mlp_hidden_act", "hidden_act") or ""
    return fields.model_type not in _PLAIN and activation not in {"relu2", "relu"}


def _experts(fields: Fields, experts: int, gated: bool) -> MoeFfn:
    width = _first(fields, (*_EXPERT_WIDTH, *_INTERMEDIATE))
    widths = next((listed for name in _EXPERT_WIDTH if (listed := fields.integers(name))), [])
    if len(widths) > 1 and len(fields.integers("moe_num_experts") or ()) == len(widths):
        # ERNIE-VL: as many experts again, narrower, for images; a token goes to one of the two kinds.
        width = sum(widths)
        fields.assumed.append("moe_num_experts")
    if not width:
        raise ConfigError("config.json: moe_intermediate_size is missing; the experts' size is unknown")
    top_k = _first(fields, _TOP_K)
    return MoeFfn(
        experts=experts,
        top_k=top_k or fields.assume("num_experts_per_tok", 2),
        intermediate=width,
        shared_intermediate=_shared_width(fields, max(widths, default=width)),
        gated=gated,
        latent=fields.integer("moe_latent_size", "routed_expert_hidden_size", least=1),
    )


def _shared_width(fields: Fields, expert_width: int) -> int:
    stated = fields.integer(
        "shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size",
        "share_expert_dim",
    )  # fmt: skip
    if stated is not None:
        return stated
    # Some run a dense part beside the experts: Gemma-4 and Grok-2 in every layer, LongCat across its pairs of layers.
    if (
        fields.model_type in {"llama4_text", "longcat_flash"}
        or fields.flag("enable_moe_block")
        or fields.flag("residual_moe")
    ):
        return fields.required("intermediate_size", "ffn_hidden_size")
    if fields.model_type == "arctic" and fields.flag("use_residual") is not False:
        return fields.required("hidden_size")
    return (
        _first(
            fields, ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
        )
        or 0
    ) * expert_width


def _dense_beside_experts(fields: Fields, gated: bool) -> DenseFfn:
    width = fields.integer("intermediate_size_mlp", "dense_intermediate_size", *_INTERMEDIATE, least=1)
    if width is None:
        raise ConfigError("config.json: intermediate_size is missing, though some layers have no experts")
    return DenseFfn(intermediate=width, gated=gated)


def _sparse_layers(fields: Fields, count: int) -> Callable[[int], bool]:
    """Which layers have experts: by a list, else by a period; where there is neither, all have."""
    for name, word in (("mlp_layer_types", "sparse"), ("moe_layer_freq", 1)):
        listed = fields.sequence(name)
        if listed is not None and len(listed) >= count:
            kinds = listed
            return lambda i: kinds[i] == word
    if fields.model_type == "longcat_flash":
        return lambda i: i % 2 == 1
    numbered = fields.integers("moe_layers")
    named = fields.text("moe_layers_enum")
    if numbered is None and named:
        numbered = [int(part) for part in named.split(",") if part.strip().isdecimal()]
    if numbered is not None:
        chosen = frozenset(numbered)
        return lambda i: i in chosen
    first = _first_number(fields, "first_k_dense_replace", "moe_layer_start_index", "num_dense_layers") or 0
    last = _first_number(fields, "moe_layer_end_index")
    offset = fields.integer("expert_layer_offset")
    if offset is not None:
        period = fields.integer("expert_layer_period", least=1) or 1
        return lambda i: i % period == offset
    step = (
        fields.integer("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", least=1) or 1
    )
    freq = fields.integer("moe_layer_freq", least=1) or 1
    dense = frozenset(fields.integers("mlp_only_layers") or ())
    return lambda i: (
        i >= first
        and i not in dense
        and i % freq == 0
        and (i + 1) % step == 0
        and (last is None or i <= last)
    )


def _doubled(fields: Fields, dense: DenseFfn, count: int) -> tuple[DenseFfn, ...]:
    """Layers that read another's cache have room for a feed-forward part twice as wide (Gemma-4's small models)."""
    shared = min(fields.integer("num_kv_shared_layers") or 0, count)
    wide = DenseFfn(intermediate=2 * dense.intermediate, gated=dense.gated)
    return (dense,) * (count - shared) + (wide,) * shared


def _searched(blocks: Fields, hidden: int) -> Ffn | None:
    """A layer of an architecture found by search: widths by multiplier, some layers without the part."""
    part = blocks.within("ffn")
    if part.value("no_op") is True:
        return None
    if part.value("replace_with_linear") is True:
        return DenseFfn(intermediate=hidden // 2, gated=False)
    stated = part.integer("intermediate_size", least=1)
    if stated is not None:
        return DenseFfn(intermediate=stated)
    multiplier = part.number("ffn_mult")
    if not multiplier:
        raise ConfigError(
            "config.json: block_configs has a layer whose ffn states neither ffn_mult nor intermediate_size"
        )
    return DenseFfn(intermediate=-(-int(2 * multiplier * hidden / 3) // 256) * 256)
