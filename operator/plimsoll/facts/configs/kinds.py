"""Which kind of mixer each layer has: the many ways in which configs spell a pattern of layers.

A kind is one of: full, sliding, chunked (softmax attention by how far it looks), mamba, linear (fixed state), both
(attention and state-space side by side in one layer), feed (no mixer), nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.facts.configs.fields import ConfigError, Fields

_SPELLINGS = {
    "full_attention": "full", "attention": "full", "full": "full", "global": "full", "global_attention": "full",
    "hybrid_attention": "both", "hybrid": "both", "parallel_hybrid": "both",
    "sliding_attention": "sliding", "sliding": "sliding", "local": "sliding", "sliding_window": "sliding",
    "chunked_attention": "chunked", "linear_attention": "linear", "lightning_attention": "linear",
    "mamba": "mamba", "mamba2": "mamba", "conv": "mamba",
    "moe": "feed", "mlp": "feed",
    "deepseek_sparse_attention": "full", "compressed_sparse_attention": "full", "heavily_compressed_attention": "full",
    "minimax_m3_sparse": "full", "indexed_attention": "full", "kda": "linear",
}  # fmt: skip
_LETTERS = {"M": "mamba", "*": "full", "-": "feed", "E": "feed"}

# Families whose sliding layers follow a rule of the family where the config states only the window:
# one full layer in so many, at the end of each run.
_FULL_EVERY = {
    "gemma2": 2, "gemma3_text": 6, "gemma3": 6, "gemma3n_text": 5, "gemma4_text": 6, "gemma4_unified_text": 6,
    "cohere2": 4, "cohere2_moe": 4, "exaone4": 4, "exaone_moe": 4, "gpt_oss": 2, "olmo3": 4, "modernbert": 3,
}  # fmt: skip


def layer_kinds(fields: Fields, count: int) -> tuple[str, ...]:
    """The kind of each layer; a pattern that does not cover the layers is an error, never cut or padded in silence."""
    for found in (_listed(fields), _lettered(fields), _numbered(fields, count), _periodic(fields, count)):
        if found is not None:
            return _checked(fields, found, count)
    return tuple(_by_window(fields, count))


def window(fields: Fields) -> int | None:
    """The sliding window in force; one wider than the context hides nothing, yet the engine groups and counts its layers as sliding."""
    if fields.flag("use_sliding_window") is False:
        return None
    return fields.integer("sliding_window", "sliding_window_size", "local_attention") or None


def _checked(fields: Fields, kinds: Sequence[str], count: int) -> tuple[str, ...]:
    if len(kinds) != count:
        raise ConfigError(
            f"config.json: the layer pattern names {len(kinds)} layers, num_hidden_layers says {count}; they must agree"
        )
    slides = window(fields) is not None
    return tuple("full" if kind == "sliding" and not slides else kind for kind in kinds)


def _listed(fields: Fields) -> list[str] | None:
    listed = fields.sequence("layer_types", "layers_block_type", "block_types")
    if listed is None:
        return None
    kinds = []
    for word in listed:
        kind = _SPELLINGS.get(word) if isinstance(word, str) else None
        if kind is None:
            raise ConfigError(
                f"config.json: layer_types holds {word!r}; known are {', '.join(sorted(set(_SPELLINGS)))}"
            )
        kinds.append(kind)
    return kinds


def _lettered(fields: Fields) -> list[str] | None:
    pattern = fields.text("hybrid_override_pattern")
    if pattern is None:
        return None
    unknown = set(pattern) - set(_LETTERS)
    if unknown:
        raise ConfigError(
            f"config.json: hybrid_override_pattern holds {min(unknown)!r}; "
            "known are M (mamba), * (attention), - (dense) and E (experts)"
        )
    return [_LETTERS[letter] for letter in pattern]


def _numbered(fields: Fields, count: int) -> list[str] | None:
    """Lists of layer numbers, or one number a layer that says which of two kinds it is."""
    full = fields.within("linear_attn_config").integers("full_attn_layers")
    if full is not None:  # counted from one
        return ["full" if i + 1 in full else "linear" for i in range(count)]
    indices = fields.sequence("attn_layer_indices", "full_attn_idxs")
    if indices is not None:
        return ["full" if i in indices else "mamba" for i in range(count)]
    kinds = fields.sequence("attn_type_list")
    if kinds is not None:
        return ["full" if kind == 1 else "linear" for kind in kinds[:count]]
    sliding = fields.sequence("hybrid_layer_pattern")
    if sliding is not None:
        return ["sliding" if kind == 1 else "full" for kind in sliding]
    rope = fields.sequence("no_rope_layers")
    if fields.integer("attention_chunk_size") and rope:
        return ["chunked" if kind else "full" for kind in rope]
    return None


def _periodic(fields: Fields, count: int) -> list[str] | None:
    if fields.model_type == "falcon_h1":
        return ["both"] * count
    step = fields.integer("mamba_step", least=1)
    # Plamo 2 has one attention in the middle of each step; the engine keeps every token of it, whatever window it states.
    if step is not None and fields.flag("mamba_enabled") is not False:
        return ["full" if i % step == step // 2 else "mamba" for i in range(count)]
    group = fields.integer("layer_group_size", least=1) or 1
    if group > 1:  # lightning attention, but for the last of each group and what no group is left for
        whole = count // group * group
        return ["full" if i >= whole or (i + 1) % group == 0 else "linear" for i in range(count)]
    offset = fields.integer("attn_layer_offset")
    if offset is not None:
        period = fields.integer("attn_layer_period", least=1) or 1
        return ["full" if i % period == offset else "mamba" for i in range(count)]
    every = fields.integer("full_attention_interval", least=1)
    if every is not None and fields.integer("linear_num_value_heads"):
        return ["full" if (i + 1) % every == 0 else "linear" for i in range(count)]
    if fields.integer("attention_chunk_size") and fields.model_type == "llama4_text":
        every = fields.integer("no_rope_layer_interval", least=1) or 4
        return ["full" if (i + 1) % every == 0 else "chunked" for i in range(count)]
    if fields.integer("num_attention_heads", "n_head") is None and fields.integer("state_size"):
        return ["mamba"] * count
    return None


def _by_window(fields: Fields, count: int) -> list[str]:
    if window(fields) is None:
        return ["full"] * count
    letters = fields.text("sliding_window_pattern", "sliding_pattern")
    if letters:
        return ["sliding" if letters[i % len(letters)] == "L" else "full" for i in range(count)]
    every = fields.integer(
        "sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers", least=1
    )
    every = every or _FULL_EVERY.get(fields.model_type)
    if fields.model_type == "modernbert":  # its global layers open each run instead of closing it
        return ["sliding" if i % (every or 3) else "full" for i in range(count)]
    if every is None:
        upper = fields.integer("max_window_layers")
        below = upper if upper is not None and fields.flag("use_sliding_window") else 0
        return ["full" if i < below else "sliding" for i in range(count)]
    return ["full" if (i + 1) % every == 0 else "sliding" for i in range(count)]
