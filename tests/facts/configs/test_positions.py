"""Position tables: what each rank holds beside the checkpoint, as engines have logged it."""

import pytest

from plimsoll.facts.configs.fields import Fields
from plimsoll.facts.configs.positions import usable_positions
from tests.facts.known_models import known

GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 131_072 * 128 * 2 / GIB),
        ("meta-llama/Meta-Llama-3-8B", 8_192 * 128 * 2 / GIB),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", 0.25),  # multimodal positions: four times as long
        ("Qwen/Qwen3.5-35B-A3B", 0.125),  # the same, and a quarter of each head turns
        (
            "deepseek-ai/DeepSeek-R1",
            163_840 * 64 * 4 / GIB,
        ),  # stretched tables of latent attention are float32
        ("google/gemma-3-27b-it", 2 * 131_072 * 128 * 2 / GIB),  # one for near, one for far layers
        ("google/gemma-4-31B-it", 262_144 * (256 + 512) * 2 / GIB),
        ("facebook/opt-2.7b", 0),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", 0),
        ("moonshotai/Kimi-K3", 0),
        ("BAAI/bge-m3", 0),
    ],
)
def test_tables_are_as_long_and_wide_as_the_engine_lays_them_out(name, gib):
    assert known(name).architecture.position_table_bytes / GIB == pytest.approx(gib)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("BAAI/bge-m3", 8192),  # a table of 8,194 rows, of which the first two are never looked up
        ("BAAI/bge-reranker-large", 512),
        ("BAAI/bge-large-en-v1.5", 512),  # counts from the first row
        ("sentence-transformers/all-MiniLM-L6-v2", 256),  # says less of itself than its table has
        ("Qwen/Qwen3-32B", 40960),
    ],
)
def test_a_request_is_never_longer_than_the_engine_starts_with(name, tokens):
    assert known(name).architecture.max_positions == tokens


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"model_type": "xlm-roberta"}, 512),
        ({"model_type": "roberta", "pad_token_id": 0}, 513),
        ({"model_type": "camembert", "pad_token_id": 1}, 512),
        ({"model_type": "bert", "pad_token_id": 1}, 514),
        ({"model_type": "bert", "max_seq_length": 384}, 384),
        ({"model_type": "bert", "max_seq_length": 4096}, 514),
        ({"model_type": "roberta", "pad_token_id": 1_000_000}, 1),
    ],
)
def test_rows_before_the_first_position_hold_no_token(config, tokens):
    assert usable_positions(Fields(config), 514) == tokens
