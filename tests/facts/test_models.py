"""The built-in catalogue: its file, what it knows, and what it says where a match is not exact."""

import json
from importlib import resources

import pytest

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.models import catalogue_config, catalogue_names, lookup
from tests.facts.known_models import known

FILE = json.loads(resources.files("plimsoll.facts").joinpath("data/models.json").read_text("utf-8"))


def test_it_knows_many_models_of_many_families():
    families = {known(name).architecture.name for name in catalogue_names()}
    assert len(catalogue_names()) >= 250
    assert len(families) >= 40


def test_no_two_entries_share_a_name_without_organisation():
    bare = [name.rpartition("/")[2].lower() for name in catalogue_names()]
    assert sorted(set(bare)) == sorted(bare)


def test_entries_are_sorted_and_hold_only_what_they_may():
    assert list(FILE["models"]) == sorted(FILE["models"])
    for name, entry in FILE["models"].items():
        assert set(entry) <= {"config", "like", "assumed"}, name
        assert "config" in entry or "like" in entry, name
        assert entry.get("like", name) in FILE["models"], name


@pytest.mark.parametrize("name", catalogue_names())
def test_every_entry_is_read_by_the_same_reader_as_everything_else(name):
    facts = known(name)
    assert facts.origin == "catalogue"
    assert facts.source == f"hf://{name}"
    assert "model_type" not in facts.architecture.assumed
    assert "architectures" not in facts.architecture.assumed
    assert facts.architecture.max_positions >= 256


def test_an_entry_like_another_changes_only_what_it_names():
    assert catalogue_config("Qwen/Qwen2.5-7B")["max_position_embeddings"] == 131072
    short, long = known("Qwen/Qwen2.5-7B-Instruct"), known("Qwen/Qwen2.5-7B")
    assert short.architecture.layers == long.architecture.layers
    assert short.architecture.max_positions == 32768
    assert "quantization_config" not in catalogue_config("google/gemma-4-31B-it")


def test_a_variant_is_the_base_model_in_the_named_format_and_says_so():
    base, variant = (
        known("meta-llama/Llama-3.3-70B-Instruct"),
        known("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"),
    )
    assert variant.architecture.layers == base.architecture.layers
    assert variant.architecture.quantization.weights is Dtype.FP8
    assert variant.source == "hf://RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"
    assert variant.origin == (
        "catalogue: meta-llama/Llama-3.3-70B-Instruct with quantization fp8-dynamic, as the name says"
    )
    assert variant.digest != base.digest


def test_what_was_not_read_from_a_published_file_is_listed():
    assert "moe_intermediate_size" in known("sarvamai/sarvam-105b").architecture.assumed


@pytest.mark.parametrize(
    "name", ["", "Qwen", "unknown/Model-7B", "gpt-4", "🦙", "../../etc/passwd", "a" * 10_000]
)
def test_what_it_does_not_know_is_none(name):
    assert lookup(name) is None


def test_the_same_name_gives_the_same_digest():
    assert known("Qwen/Qwen3-32B").digest == known("Qwen3-32B").digest


def test_a_format_in_the_name_replaces_the_one_that_a_multimodal_config_keeps_inside():
    base, named = known("moonshotai/Kimi-K2.5"), known("moonshotai/Kimi-K2.5-FP8")
    assert base.architecture.quantization.weights is Dtype.INT4
    assert named.architecture.quantization.weights is Dtype.FP8
