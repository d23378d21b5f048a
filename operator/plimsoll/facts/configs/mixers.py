"""Softmax attention of each layer: its heads and its widths, by attention class. Mixers of fixed state are `states`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.facts.architecture import (
    Attention,
    Indexer,
    LatentAttention,
    Mixer,
    Span,
)
from plimsoll.facts.configs.families import ENCODERS
from plimsoll.facts.configs.fields import ConfigError, Fields
from plimsoll.facts.configs.kinds import window

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
_KV_HEADS = (
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num", "kv_n_heads",
)  # fmt: skip
HEAD_DIM = ("head_dim", "kv_channels", "attention_head_dim", "head_size", "hidden_size_per_head")
_SPANS = {"full": Span.FULL, "both": Span.FULL, "sliding": Span.SLIDING, "chunked": Span.CHUNKED}


def is_encoder(fields: Fields) -> bool:
    """True for families that read a text at once and keep no cache."""
    return fields.model_type in ENCODERS or fields.flag("is_causal") is False


def attention_layers(fields: Fields, hidden: int, kinds: Sequence[str]) -> dict[int, Mixer]:
    """Softmax attention of the layers that have any, by layer number."""
    blocks = fields.objects("block_configs")
    if blocks is not None:
        return _searched(fields, hidden, blocks)
    if fields.integer("kv_lora_rank", least=1):
        if fields.model_type == "minicpm3":
            return dict.fromkeys(range(len(kinds)), _expanded(fields))
        return {i: _latent(fields, i) for i, kind in enumerate(kinds) if kind in _SPANS}
    if fields.sequence("compress_ratios") is not None:
        return {i: _compressed(fields, i) for i in range(len(kinds))}
    sharers = len(kinds) - (fields.integer("num_kv_shared_layers") or 0)
    by_kind = {kind: _softmax(fields, hidden, kind) for kind in set(kinds) & set(_SPANS)}
    encoder = is_encoder(fields)
    return {
        i: replace(by_kind[kind], shares_cache=encoder or i >= sharers, indexer=_block_indexer(fields, i))
        for i, kind in enumerate(kinds)
        if kind in by_kind
    }


def _softmax(fields: Fields, hidden: int, kind: str) -> Attention:
    span = _SPANS[kind]
    heads = fields.required(*HEADS)
    kv_heads = _kv_heads(fields, heads)
    head_dim = fields.integer(*HEAD_DIM, least=1) or even_share(hidden, heads)
    # 0 where a family's latent attention is switched off.
    v_head_dim = fields.integer("v_head_dim") or head_dim
    keys_are_values = False
    if span is Span.SLIDING:
        other = fields.within("attention_other_setting")
        heads = fields.integer("swa_num_attention_heads") or other.integer("num_attention_heads") or heads
        kv_heads = (
            fields.integer("swa_num_key_value_heads") or other.integer("num_attention_groups") or kv_heads
        )
        head_dim = fields.integer("swa_head_dim") or head_dim
        v_head_dim = fields.integer("swa_v_head_dim") or v_head_dim
    elif fields.integer(
        "global_head_dim", least=1
    ):  # Gemma-4: wider and fewer heads where it looks at everything
        head_dim = v_head_dim = fields.required("global_head_dim")
        if fields.flag("attention_k_eq_v"):
            keys_are_values = True
            kv_heads = fields.integer("num_global_key_value_heads", least=1) or kv_heads
    if heads % kv_heads:
        raise ConfigError(
            f"config.json: num_attention_heads is {heads}, num_key_value_heads {kv_heads}; the second must divide the first"
        )
    reach = window(fields) if span is Span.SLIDING else None
    if span is Span.CHUNKED:
        reach = fields.required("attention_chunk_size")
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=v_head_dim,
        span=span,
        window=reach,
        values_are_keys=keys_are_values,
        output_gate=_has_output_gate(fields),
        query_rank=fields.integer("share_q_dim", least=1),
        input_width=fields.integer("attention_hidden_size", least=1),
    )


def _has_output_gate(fields: Fields) -> bool:
    """Whether attention has an output gate. Qwen3-Next and its successors have one by default and state it only since 3.5; AFMoE never does."""
    stated = fields.flag("attn_output_gate")
    return fields.model_type in {"qwen3_next", "afmoe"} if stated is None else stated


def _kv_heads(fields: Fields, heads: int) -> int:
    listed = fields.integers("num_key_value_heads")
    if listed:  # one number a layer (OpenELM); the widest layer decides
        return max(1, *listed)
    found = fields.integer(*_KV_HEADS, least=1)
    if found is not None and fields.model_type != "falcon":
        return found
    if fields.model_type == "falcon":  # before its new decoder the number is ignored and one head is shared
        return (
            (found or heads)
            if fields.flag("new_decoder_architecture")
            else _multi_query(fields, heads, default=True)
        )
    groups = fields.integer("num_attention_groups", least=1)
    return groups or _multi_query(fields, heads, default=fields.model_type == "gpt_bigcode")


def _multi_query(fields: Fields, heads: int, *, default: bool) -> int:
    stated = fields.flag("multi_query")
    return 1 if (default if stated is None else stated) else heads


def even_share(hidden: int, heads: int) -> int:
    if hidden % heads:
        raise ConfigError(
            f"config.json: head_dim is missing and hidden_size {hidden} is no multiple of {heads} heads; state head_dim"
        )
    return hidden // heads


def _latent(fields: Fields, layer: int) -> LatentAttention:
    return LatentAttention(
        heads=fields.required(*HEADS),
        kv_lora_rank=fields.required("kv_lora_rank"),
        q_lora_rank=fields.integer("q_lora_rank", least=1),
        qk_nope_head_dim=fields.required("qk_nope_head_dim"),
        qk_rope_head_dim=fields.integer("qk_rope_head_dim") or 0,
        v_head_dim=fields.required("v_head_dim"),
        indexer=_indexer(fields, layer),
        output_gate=fields.flag("mla_use_output_gate") or False,
    )


def _expanded(fields: Fields) -> Attention:
    """MiniCPM3 makes keys and values from a latent but caches them expanded, values padded to the keys' width."""
    heads = fields.required(*HEADS)
    width = fields.required("qk_nope_head_dim") + fields.required("qk_rope_head_dim")
    fields.assumed.append("v_head_dim")
    return Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=width,
        v_head_dim=width,
        query_rank=fields.integer("q_lora_rank", least=1),
        kv_rank=fields.required("kv_lora_rank"),
    )


def _indexer(fields: Fields, layer: int) -> Indexer | None:
    top_k = fields.integer("index_topk", least=1)
    if top_k is None or _reads_others_picks(fields, layer):
        return None
    return Indexer(
        heads=fields.required("index_n_heads"),
        head_dim=fields.required("index_head_dim"),
        top_k=top_k,
        pool=fields.integer("index_kpool", least=1) or 1,
    )


def _reads_others_picks(fields: Fields, layer: int) -> bool:
    """Whether a layer has no scorer, as it attends to what that of an earlier layer picked. Configs say so by letters (S), by a kind for each
    layer, or by every how many layers there is a scorer, counted from the last layer that surely has one."""
    letters = fields.text("index_topk_pattern")
    if letters is not None:
        return letters[layer : layer + 1] == "S"
    kinds = fields.sequence("indexer_types")
    if kinds is not None:
        return layer < len(kinds) and kinds[layer] == "shared"
    every = fields.integer("index_topk_freq", least=1) or 1
    own = fields.integer("index_skip_topk_offset", least=0)
    return max(layer + 1 - (2 if own is None else own), 0) % every != 0


def _block_indexer(fields: Fields, layer: int) -> Indexer | None:
    """MiniMax-M3: ordinary grouped attention that reads only the blocks a scorer picks."""
    sparse = fields.within("sparse_attention_config")
    where = sparse.sequence("sparse_attention_freq")
    if where is None or layer >= len(where) or where[layer] != 1:
        return None
    return Indexer(
        heads=sparse.required("sparse_num_index_heads"),
        head_dim=sparse.required("sparse_index_dim"),
        top_k=sparse.required("sparse_topk_blocks") * sparse.required("sparse_block_size"),
    )


def _compressed(fields: Fields, layer: int) -> LatentAttention:
    """DeepSeek-V4: one shared key-value head, stored as a latent; some layers keep one record for many tokens."""
    ratios = fields.integers("compress_ratios") or []
    ratio = ratios[layer] if layer < len(ratios) else -1
    if ratio < 0:
        raise ConfigError(
            f"config.json: compress_ratios has no ratio for layer {layer}; it needs one for every layer"
        )
    head_dim, rope = fields.required("head_dim"), fields.required("qk_rope_head_dim")
    return LatentAttention(
        heads=fields.required(*HEADS),
        kv_lora_rank=head_dim - rope,
        q_lora_rank=fields.integer("q_lora_rank", least=1),
        qk_nope_head_dim=head_dim - rope,
        qk_rope_head_dim=rope,
        v_head_dim=head_dim,
        indexer=_indexer(fields, layer) if 1 < ratio < 128 else None,
        compress_ratio=ratio,
        window=fields.integer("sliding_window", least=1),
        output_lora_rank=fields.integer("o_lora_rank", least=1),
        output_groups=fields.integer("o_groups", least=1) or 1,
    )


def _searched(fields: Fields, hidden: int, blocks: Sequence[Fields]) -> dict[int, Mixer]:
    """Architectures found by search: some layers have lost their attention or share heads more widely."""
    heads = fields.required(*HEADS)
    head_dim = fields.integer(*HEAD_DIM, least=1) or even_share(hidden, heads)
    found: dict[int, Mixer] = {}
    for i, block in enumerate(blocks):
        part = block.within("attention")
        if part.value("no_op") is True or part.value("replace_with_linear") is True:
            continue
        kv_heads = part.integer("num_key_value_heads", least=1)
        if kv_heads is None:
            kv_heads = max(1, heads // (part.integer("n_heads_in_group", least=1) or 1))
        found[i] = Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, v_head_dim=head_dim)
    return found
