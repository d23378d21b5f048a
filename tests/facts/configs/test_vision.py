"""Encoders beside language models: their size, their largest item, and whether ranks share them out."""

import pytest

from tests.facts.known_models import known


@pytest.mark.parametrize(
    ("name", "millions", "tokens", "sharded"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", 676, 16_384, True),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", 540, 16_384, True),
        ("google/gemma-3-27b-it", 417, 256, True),
        ("google/gemma-4-26B-A4B", 560, 280, False),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 439, 3_025, False),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 870, 17 * 144, True),
        ("HuggingFaceTB/SmolVLM2-2.2B-Instruct", 434, 729, True),
        ("Qwen/Qwen3-32B", None, None, None),
    ],
)
def test_encoders_are_as_large_as_published(name, millions, tokens, sharded):
    vision = known(name).architecture.vision
    if millions is None:
        assert vision is None
        return
    assert vision.parameters / 1e6 == pytest.approx(millions, rel=0.05)
    assert (vision.max_item_tokens, vision.sharded) == (tokens, sharded)


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("zai-org/GLM-4.5V", (12,)),
        ("mistralai/Voxtral-Mini-3B-2507", (20,)),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", (16,)),
        ("Qwen/Qwen3-Omni-30B-A3B-Instruct", (16,)),
        ("moonshotai/Kimi-K2.5", ()),
        ("OpenGVLab/InternVL3-8B", ()),
        ("Qwen/Qwen2-Audio-7B-Instruct", ()),
    ],
)
def test_heads_are_known_of_encoders_that_the_engine_cuts_and_cannot_leave_whole_by_itself(name, heads):
    assert known(name).architecture.vision.heads == heads


@pytest.mark.parametrize(
    ("name", "cut"),
    [("HuggingFaceTB/SmolVLM2-2.2B-Instruct", False), ("Qwen/Qwen3-VL-8B-Instruct", True)],
)
def test_stages_are_for_models_whose_class_has_them_whatever_their_language_model_could(name, cut):
    assert known(name).architecture.supports_pipeline is cut
