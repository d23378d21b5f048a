"""What a token asks of one layer: a window caps it, a state asks the same always, latents are narrow to decode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.architecture import Attention, Indexer, LatentAttention, LinearAttention, Mixer, Span
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.models import catalogue_names, lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import state_bytes
from plimsoll.planning.speed.attending import Attending, attending, tokens_seen

H100 = gpu_named("H100-SXM-80GB")
MODEL = lookup("meta-llama/Llama-3.1-8B-Instruct")
LATENT = LatentAttention(
    heads=128, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, q_lora_rank=1536
)


def of(mixer: Mixer | None, layout: Layout | None = None) -> Attending:
    assert MODEL is not None
    return attending(MODEL.architecture, H100, layout or Layout(), mixer, Dtype.BFLOAT16)


@pytest.mark.parametrize(
    ("span", "window", "context", "seen"),
    [
        (Span.FULL, None, 5_000, 5_000),
        (Span.SLIDING, 128, 5_000, 128),
        (Span.SLIDING, 128, 50, 50),
        (Span.CHUNKED, 8_192, 50_000, 4_096),
    ],
)
def test_windows_cap_what_a_layer_looks_at(span, window, context, seen):
    mixer = Attention(heads=8, kv_heads=8, head_dim=64, v_head_dim=64, span=span, window=window)
    assert tokens_seen(mixer, context) == seen


def test_where_nothing_is_kept_nothing_is_read():
    assert of(None).read(1_000) == of(None).decode_math(1_000) == of(None).prefill_math(1_000) == 0.0


def test_a_state_is_read_and_written_back_whole_however_many_tokens_came_before():
    mixer = LinearAttention(
        key_heads=16, value_heads=32, key_dim=128, value_dim=128, conv_kernel=4, state_dtype=Dtype.FLOAT32
    )
    one = of(mixer)
    assert one.read(10) == one.read(100_000) == 2 * state_bytes(mixer, Layout(), Dtype.BFLOAT16, 0)
    assert one.decode_math(10) == one.prefill_math(100_000) > 0


def test_latents_are_decoded_as_they_are_and_widened_to_heads_in_a_prompt():
    one = of(LATENT)
    assert one.read(1_000) == 1_000 * (512 + 64) * 2
    assert one.decode_math(1_000) / one.prefill_math(1_000) == pytest.approx(
        (2 * 512 + 64) / (128 + 64 + 128)
    )


def test_a_scorer_looks_at_every_key_so_that_its_layer_looks_at_few_tokens():
    scored = LatentAttention(
        heads=128,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        q_lora_rank=1536,
        indexer=Indexer(heads=64, head_dim=128, top_k=2_048),
    )
    more = of(scored).read(100_000) - of(scored).read(50_000)
    assert more == 50_000 * (128 + 4)
    assert of(scored).decode_math(100_000) < of(LATENT).decode_math(100_000)


@given(st.sampled_from(catalogue_names()), st.sampled_from((1, 2, 8)), st.floats(1, 1e6), st.floats(1, 1e6))
def test_a_longer_past_never_asks_less_and_more_ranks_never_ask_more_of_one(name, ranks, some, others):
    model = lookup(name)
    assert model is not None
    few, many = sorted((some, others))
    for layer, _ in model.architecture.kinds:
        alone = attending(model.architecture, H100, Layout(), layer.mixer, model.architecture.dtype)
        cut = attending(model.architecture, H100, Layout(tensor=ranks), layer.mixer, model.architecture.dtype)
        assert alone.read(few) <= alone.read(many)
        assert alone.decode_math(few) <= alone.decode_math(many)
        assert alone.prefill_math(few) <= alone.prefill_math(many)
        assert cut.decode_math(many) <= alone.decode_math(many)
        assert cut.read(many) <= alone.read(many)
