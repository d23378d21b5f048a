"""Which catalogue entry a name means, and which names mean none."""

import pytest

from plimsoll.facts.model_names import NameMatch, match_name

ENTRIES = (
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "a/Twin",
    "b/Twin",
    "Qwen/Qwen3-32B-FP8",
)


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3-32B", "hf://Qwen/Qwen3-32B", "qwen/qwen3-32b", " Qwen/Qwen3_32B "]
)
def test_the_repository_itself_is_an_exact_match(name):
    assert match_name(name, ENTRIES) == NameMatch("Qwen/Qwen3-32B", None, "")


@pytest.mark.parametrize(
    ("name", "entry", "quantization"),
    [
        ("Qwen3-32B", "Qwen/Qwen3-32B", None),
        ("somebody/Qwen3-32B", "Qwen/Qwen3-32B", None),
        ("RedHatAI/Qwen3-32B-FP8-dynamic", "Qwen/Qwen3-32B", "fp8-dynamic"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", None, None),
        ("RedHatAI/Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct", "fp8"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct", "modelopt"),
        ("nvidia/Qwen3-8B-NVFP4", "Qwen/Qwen3-8B", "nvfp4"),
        ("Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B", "fp8-block"),
        ("Qwen/Qwen3-8B-AWQ", "Qwen/Qwen3-8B", "awq"),
        ("x/Qwen3-8B-GPTQ-Int4", "Qwen/Qwen3-8B", "gptq-int4"),
        ("x/Qwen3-8B-quantized.w4a16", "Qwen/Qwen3-8B", "w4a16"),
        ("x/Qwen3-8B-W8A8", "Qwen/Qwen3-8B", "w8a8"),
        ("x/Qwen3-8B-AWQ-4bit", "Qwen/Qwen3-8B", "awq"),
        ("Qwen3-8B AutoRound int4", "Qwen/Qwen3-8B", "autoround-int4"),
        ("Qwen/Qwen3-8B (fp8)", "Qwen/Qwen3-8B", "fp8-block"),
        ("Qwen3-32B-FP8", "Qwen/Qwen3-32B-FP8", None),
    ],
)
def test_variants_are_matched_by_taking_the_suffix_off(name, entry, quantization):
    found = match_name(name, ENTRIES)
    if entry is None:
        assert found is None
        return
    assert found is not None
    assert (found.entry, found.exact) == (entry, False)
    assert found.quantization in (quantization, "autoround")
    assert entry in found.note


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3-30B", "Qwen/Qwen4-8B", "Twin", "", "/", "Qwen3", "FP8", "-FP8", "Qwen3-32B-GGUF"]
)
def test_sizes_generations_and_doubtful_names_are_never_guessed(name):
    assert match_name(name, ENTRIES) is None


def test_a_variant_says_where_its_quantization_comes_from():
    found = match_name("RedHatAI/Qwen3-8B-FP8-dynamic", ENTRIES)
    assert found is not None
    assert found.note == "Qwen/Qwen3-8B with quantization fp8-dynamic, as the name says"
