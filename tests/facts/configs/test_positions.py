"""Position tables: what each rank holds beside the checkpoint, as engines have logged it."""

import pytest

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
