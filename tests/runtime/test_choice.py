"""Which files of a repository come: one form of the weights, as the engine chooses it, and what is small."""

from __future__ import annotations

import pytest

from plimsoll_runtime.sources.choice import INDEX, OWN_INDEX, WEIGHTS, chosen
from plimsoll_runtime.sources.listing import File

SHARDS = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
OWN = "consolidated.safetensors"
BOTH = ["config.json", "params.json", "tokenizer.json", "tokenizer.model.v3", INDEX, *SHARDS, OWN]


def weights(
    names: list[str] | dict[str, int], load_format: str | None = None, *, asks: bool = False
) -> list[str]:
    """The weights that come, of files with these names, or sizes by name."""
    sizes = names if isinstance(names, dict) else dict.fromkeys(names, 1000)

    def indexed(index: str) -> list[str]:
        return SHARDS if index == INDEX else ["consolidated-1.safetensors", "consolidated-2.safetensors"]

    found = chosen([File(*one) for one in sizes.items()], load_format, indexed, asks=asks)
    return [file.path for file in found if file.path.endswith(WEIGHTS)]


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize(
    ("load_format", "wanted"),
    [
        (None, [OWN]),
        ("auto", [OWN]),
        ("mistral", [OWN]),
        ("hf", SHARDS),
        ("safetensors", SHARDS),
        ("runai_streamer", SHARDS),
        ("dummy", []),
    ],
)
def test_the_makers_own_form_comes_with_its_tokenizer_where_there_is_no_other_and_the_engine_may_choose(
    load_format, wanted, asks
):
    bare = [name for name in BOTH if name != "tokenizer.json"]
    assert weights([*bare, "tekken.json"], load_format, asks=asks) == wanted


def test_with_a_common_tokenizer_the_common_form_comes_unless_the_engine_sees_the_other_at_the_hub():
    assert weights(BOTH) == weights([*BOTH, "tekken.json"]) == SHARDS
    assert weights(BOTH, asks=True) == [OWN]
    assert weights(BOTH, "safetensors", asks=True) == SHARDS


def test_of_the_makers_own_form_come_the_files_that_its_index_names():
    names = ["config.json", "tekken.json", INDEX, *SHARDS, OWN_INDEX, OWN]
    parts = ["consolidated-1.safetensors", "consolidated-2.safetensors"]
    assert weights([*names, *parts]) == parts


def test_an_index_of_the_makers_own_form_without_its_files_changes_nothing():
    assert weights(["config.json", "tekken.json", INDEX, OWN_INDEX, *SHARDS], asks=True) == SHARDS


MODEL = {"config.json": 1, "model.safetensors": 1000}


def test_of_a_large_model_there_is_room_for_fewer_parts():
    """A volume that ends with its pod is a tenth larger than the weights, and some besides."""
    sizes = {"config.json": 1, "model.safetensors": 400 * 2**30, "draft/config.json": 1}
    draft = "draft/model.safetensors"
    assert weights({**sizes, draft: 44 * 2**30}) == [draft, "model.safetensors"]
    assert weights({**sizes, draft: 45 * 2**30}) == ["model.safetensors"]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"2_Dense/config.json": 1, "2_Dense/model.safetensors": 9}, ["2_Dense/model.safetensors"]),
        ({"2_Dense/config.json": 1, "2_Dense/pytorch_model.bin": 9}, ["2_Dense/pytorch_model.bin"]),
        (
            {"d/config.json": 1, "d/pytorch_model.bin": 9, "d/model.safetensors": 9, "d/rust_model.ot": 9},
            ["d/model.safetensors"],
        ),
        (
            {"adapters/a/adapter_config.json": 1, "adapters/a/adapter_model.safetensors": 9},
            ["adapters/a/adapter_model.safetensors"],
        ),
        (
            {"e/config.json": 1, "e/model-1.safetensors": 125, "e/model-2.safetensors": 125},
            ["e/model-1.safetensors", "e/model-2.safetensors"],
        ),
        ({"e/config.json": 1, "e/model-1.safetensors": 125, "e/model-2.safetensors": 126}, []),
        (
            {f"{name}/config.json": 1 for name in "abc"}
            | {"a/model.safetensors": 120, "b/model.safetensors": 140, "c/model.safetensors": 110},
            ["a/model.safetensors", "c/model.safetensors"],
        ),
        ({"checkpoint-500/config.json": 1, "checkpoint-500/model.safetensors": 1000}, []),
        ({"4bit/config.json": 1, "4bit/model.safetensors": 280}, []),
        ({"a/adapter_config.json": 1, "a/training_args.bin": 9, "a/optimizer.bin": 9}, []),
        ({"1_Pooling/config.json": 1, "other/model.safetensors": 9}, []),
        ({"onnx/config.json": 1, "onnx/model.safetensors": 9}, []),
    ],
)
def test_the_weights_of_parts_that_have_a_config_of_their_own_come_too(more, wanted):
    assert weights({**MODEL, **more}) == sorted([*wanted, "model.safetensors"])
    assert weights({**MODEL, **more}, "dummy") == []
