"""What an adapter's files and the engine's refusals are taken for."""

from __future__ import annotations

import json
import struct

import pytest

from plimsoll_runtime.lora import ListUnreadable, Wanted, judged, refused, wanted_of
from plimsoll_runtime.lora_base import Base, base_of, misfit
from tests.runtime.lora_engine import an_adapter, item, listed


@pytest.mark.parametrize(
    ("make", "word", "said"),
    [
        (lambda folder: None, "NotMounted", "a new set"),
        (lambda folder: folder.mkdir(), "NotAnAdapter", "adapter_config.json"),
        (
            lambda folder: an_adapter(folder, rank=32),
            "AdapterRank",
            "spec.adapters.maxRank: 32, which makes a new set",
        ),
        (
            lambda folder: an_adapter(folder, rank_pattern={"q_proj": 200}),
            "AdapterRank",
            "spec.adapters.maxRank: 256",
        ),
        (lambda folder: an_adapter(folder, rank=4096), "AdapterRank", "an adapter of rank 512 or less"),
        (
            lambda folder: an_adapter(folder, peft_type="PROMPT_TUNING"),
            "NotAnAdapter",
            "spec.adapters.items[one].source",
        ),
        (
            lambda folder: (an_adapter(folder) / "adapter_model.safetensors").unlink(),
            "NotAnAdapter",
            "adapter_model",
        ),
        (
            lambda folder: (an_adapter(folder) / "adapter_config.json").write_text("[]"),
            "NotAnAdapter",
            "no JSON object",
        ),
        (
            lambda folder: (an_adapter(folder) / "adapter_config.json").write_text("[" * 100_000),
            "NotAnAdapter",
            "nested too deep",
        ),
    ],
)
def test_what_is_certain_to_be_refused_is_told_with_the_field_to_change(tmp_path, make, word, said):
    folder = tmp_path / "one"
    make(folder)
    failure = judged(Wanted("one", "1", "pvc://claim/one", None, str(folder)), folder, 16)
    assert failure is not None
    assert failure.word == word
    assert said in f"{failure.message} {failure.remedy}"


def test_an_adapter_that_may_fit_is_the_engines_to_judge(tmp_path):
    folder = an_adapter(tmp_path / "one", rank=16)
    assert judged(Wanted("one", "1", str(folder), None, str(folder)), folder, 16) is None


@pytest.mark.parametrize(
    ("status", "text", "word", "remedy"),
    [
        (
            500,
            '{"error": {"message": "LoRA rank 64 is greater than max_lora_rank 16."}}',
            "AdapterRank",
            "maxRank: 64",
        ),
        (
            400,
            '{"error": {"message": "The lora adapter \'x\' conflicts with a served base model."}}',
            "NameTaken",
            "name: another",
        ),
        (404, '{"detail": "Not Found"}', "NoRuntimeLoading", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"),
        (401, '{"error": "Unauthorized"}', "EngineKey", "apiKeySecret"),
        (
            500,
            '{"error": {"message": "While loading /a, expected target modules in {\'q\'} but received [\'z\']."}}',
            "OtherBaseModel",
            "spec.model.source",
        ),
        (500, "something else", "AdapterRefused", "spec.adapters.items[x].source"),
        (
            404,
            '{"error": {"message": "Loading lora x failed: No adapter found for /a"}}',
            "AdapterRefused",
            "source",
        ),
    ],
)
def test_what_the_engine_says_becomes_a_word_and_the_field_to_change(status, text, word, remedy):
    failure = refused(Wanted("x", "1", "/a"), status, text)
    assert failure.word == word
    assert remedy in failure.remedy


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        listed(schema=2),
        listed({"name": "one"}),
        listed(item("one"), item("one", number="2")),
        listed("one"),
        b'{"schema": 1, "adapters": 3}',
    ],
)
def test_a_list_of_another_form_is_refused_whole(text):
    with pytest.raises(ListUnreadable):
        wanted_of(text)


def test_fields_of_a_later_release_are_left_alone():
    assert wanted_of(listed(item("one") | {"weight": 1}))[0].name == "one"


def tensors(folder, width, layer=0, where="model.layers"):
    """An adapter of a model of this width, of no more than headers."""
    prefix = f"base_model.model.{where}.{layer}.self_attn"
    shapes = {f"{prefix}.q_proj.lora_A.weight": [8, width], f"{prefix}.o_proj.lora_B.weight": [width, 8]}
    listed = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()
    }
    head = json.dumps(listed).encode()
    (an_adapter(folder) / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head)
    return folder


@pytest.mark.parametrize(
    ("width", "layer", "where", "said"),
    [
        (256, 7, "model.layers", None),
        (64, 0, "model.layers", "64 wide, and the model is 256"),
        (512, 0, "model.layers", "512 wide"),
        (256, 8, "model.layers", "a layer 9, and the model has 8"),
        (64, 0, "vision_tower.layers", None),
    ],
)
def test_an_adapter_of_another_model_is_told_by_its_widths_and_layers(tmp_path, width, layer, where, said):
    folder = tensors(tmp_path / "one", width, layer, where)
    failure = misfit(Wanted("one", "1", "/a"), folder, Base(256, 8))
    assert (None if failure is None else failure.word) == (None if said is None else "OtherBaseModel")
    if failure is not None and said is not None:
        assert said in failure.message
        assert "spec.adapters.items[one].source" in failure.remedy
    assert misfit(Wanted("one", "1", "/a"), folder, None) is None
    assert misfit(Wanted("one", "1", "/a"), folder, Base(None, None)) is None


def test_tensors_that_are_no_safetensors_are_the_engines_to_judge(tmp_path):
    assert misfit(Wanted("one", "1", "/a"), an_adapter(tmp_path / "one"), Base(256, 8)) is None


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_size": 256, "num_hidden_layers": 8},
        {"text_config": {"hidden_size": 256, "num_hidden_layers": 8}},
    ],
)
def test_the_model_that_is_served_is_known_by_its_config_in_its_folder_or_in_the_hubs_cache(tmp_path, config):
    for folder in (tmp_path / "model", tmp_path / "hub/hub/models--acme--tiny/snapshots/c0"):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
    assert base_of(["vllm", "serve", str(tmp_path / "model")], {}) == Base(256, 8)
    environment = {"HF_HOME": str(tmp_path / "hub")}
    assert base_of(["vllm", "serve", "acme/tiny"], environment) == Base(256, 8)
    assert base_of(["vllm", "serve", "acme/other"], environment) is None
