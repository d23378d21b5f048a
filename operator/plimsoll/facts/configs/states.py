"""Mixers whose state has a fixed size: state-space layers, short convolutions, and linear attention of several kinds."""

from __future__ import annotations

from plimsoll.facts.architecture import LinearAttention, Mamba, Mixer
from plimsoll.facts.configs.fields import ConfigError, Fields
from plimsoll.facts.configs.mixers import HEAD_DIM, HEADS, even_share
from plimsoll.facts.dtypes import Dtype


def state_mixer(fields: Fields, hidden: int, kind: str, dtype: Dtype) -> Mixer:
    """The mixer of a layer of kind `mamba`, `linear` or `both`: a state of fixed size a sequence."""
    if kind == "linear":
        return _linear(fields, dtype)
    if fields.integer("conv_L_cache", least=1):  # LFM2's short convolutions: a window of inputs and no state
        return Mamba(
            heads=hidden, head_dim=1, groups=0, state_size=0,
            conv_kernel=fields.required("conv_L_cache"), state_dtype=dtype,
        )  # fmt: skip
    return _mamba(fields, hidden, dtype)


def _state_dtype(fields: Fields, default: Dtype) -> Dtype:
    """The format of states, as the config says; where it does not, the default, and full precision for Nemotron-H as in the engine."""
    stated = fields.dtype("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    return stated or (Dtype.FLOAT32 if fields.model_type == "nemotron_h" else default)


def _mamba(fields: Fields, hidden: int, dtype: Dtype) -> Mamba:
    expand = fields.integer("mamba_expand", "expand", least=1) or 2
    state_size = fields.integer("ssm_state_size", "mamba_d_state", "state_size", least=1)
    kernel = fields.integer("conv_kernel", "mamba_d_conv", "d_conv", least=1)
    if state_size is None:
        raise ConfigError(
            "config.json: ssm_state_size (mamba_d_state, state_size) is missing for a state-space layer"
        )
    alone = fields.model_type == "mamba2"  # no attention beside it whose heads the plain keys could mean
    heads = fields.integer(
        "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", *(["num_heads"] if alone else []), least=1
    )
    if heads is None:
        inner = fields.integer("mamba_d_ssm", least=1) or expand * hidden
        rank = fields.integer("mamba_dt_rank", "time_step_rank", least=1) or -(-hidden // 16)
        return Mamba(
            heads=inner, head_dim=1, groups=0, state_size=state_size, conv_kernel=kernel or 4,
            state_dtype=_state_dtype(fields, dtype), dt_rank=rank,
        )  # fmt: skip
    stated = fields.raw.get("mamba_d_head")
    width = (
        None
        if stated == "auto"
        else fields.integer(
            "mamba_head_dim",
            "mamba_d_head",
            "mamba_headdim",
            "hidden_size_per_head",
            *(["head_dim"] if alone else []),
            least=1,
        )
    )
    return Mamba(
        heads=heads,
        head_dim=width or expand * hidden // heads,
        # Plamo 2 convolves the inputs alone and makes what the groups share from them.
        groups=0
        if fields.integer("mamba_step", least=1)
        else fields.integer("n_groups", "mamba_n_groups", "mamba_ngroups", least=1) or 1,
        state_size=state_size,
        conv_kernel=kernel or 4,
        state_dtype=_state_dtype(fields, dtype),
    )


def _linear(fields: Fields, dtype: Dtype) -> LinearAttention:
    delta = fields.mapping("linear_attn_config")
    if delta is not None:  # Kimi's delta attention keeps its state in full precision unless told otherwise
        inner = fields.within("linear_attn_config")
        heads, width = inner.required("num_heads"), inner.required("head_dim")
        return LinearAttention(
            key_heads=heads, value_heads=heads, key_dim=width, value_dim=width,
            conv_kernel=inner.required("short_conv_kernel_size"),
            state_dtype=_state_dtype(fields, Dtype.FLOAT32), split_conv=True,
        )  # fmt: skip
    named = fields.integer("linear_num_heads", least=1)
    if named is not None:  # the same, spelled without the nested object
        width = fields.required("linear_head_dim")
        return LinearAttention(
            key_heads=named, value_heads=named, key_dim=width, value_dim=width,
            conv_kernel=fields.integer("linear_conv_kernel_dim", least=1) or 4,
            state_dtype=_state_dtype(fields, Dtype.FLOAT32), split_conv=True,
        )  # fmt: skip
    if (
        fields.integer("linear_num_value_heads") is None
    ):  # lightning attention: heads as in the softmax layers, no convolution
        heads = fields.required(*HEADS)
        width = fields.integer(*HEAD_DIM, least=1) or even_share(fields.required("hidden_size"), heads)
        return LinearAttention(
            key_heads=heads, value_heads=heads, key_dim=width, value_dim=width, conv_kernel=1,
            state_dtype=_state_dtype(fields, dtype),
        )  # fmt: skip
    return LinearAttention(
        key_heads=fields.required("linear_num_key_heads"),
        value_heads=fields.required("linear_num_value_heads"),
        key_dim=fields.required("linear_key_head_dim"),
        value_dim=fields.required("linear_value_head_dim"),
        conv_kernel=fields.integer("linear_conv_kernel_dim", "conv_kernel", least=1) or 4,
        state_dtype=_state_dtype(fields, dtype),
    )
