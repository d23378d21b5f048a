"""Which caches may be sharded over decode ranks: the engine asserts that none of them keeps only a window."""

from dataclasses import replace

import pytest

from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.layouts.rules import Question, Wishes, first_refusal
from tests.planning.architectures import architecture, attention, latent

SHARDED = Layout(tensor=8, decode_context=2)
FULL = attention(kv_heads=4)
WINDOWED = attention(kv_heads=4, window=4096)


def refusal(*mixers):
    return first_refusal(SHARDED, Question(architecture=architecture([*mixers]), wishes=Wishes()))


@pytest.mark.parametrize(
    ("mixer", "tokens"),
    [(WINDOWED, "4,096"), (attention(kv_heads=4, chunk=8192), "8,192"), (latent(window=128), "128")],
    ids=["sliding", "chunked", "latent"],
)
def test_a_layer_that_keeps_only_a_window_is_never_sharded(mixer, tokens):
    refused = refusal(FULL, mixer)
    assert refused == (
        "context-parallel",
        f"layers that keep only the last {tokens} tokens cannot be sharded",
    )


@pytest.mark.parametrize(
    "mixer", [FULL, latent(), replace(WINDOWED, shares_cache=True)], ids=["full", "latent", "reader"]
)
def test_layers_that_keep_everything_or_have_no_cache_of_their_own_are(mixer):
    assert refusal(FULL, mixer) is None
