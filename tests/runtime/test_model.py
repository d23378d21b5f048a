"""What a pod tells of a model and what the operator reads out of it must be what the operator reads of the files themselves."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from plimsoll.facts.model_told import ModelTellingUnreadable, read_model
from plimsoll.facts.resolve import facts_from_folder
from plimsoll_runtime.failure import MOST_BYTES
from plimsoll_runtime.model import Tensor, folded, model_of, told

DENSE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 48,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 4096,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}
MIXTURE = {
    **DENSE,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 256,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}

Tensors = dict[str, tuple[str, list[int]]]


def dense_tensors(layers: int) -> Tensors:
    found: Tensors = {
        "model.embed_tokens.weight": ("BF16", [4096, 512]),
        "lm_head.weight": ("BF16", [4096, 512]),
        "model.norm.weight": ("F32", [512]),
    }
    for layer in range(layers):
        before = f"model.layers.{layer}"
        found |= {
            f"{before}.self_attn.q_proj.weight": ("F8_E4M3", [512, 512]),
            f"{before}.self_attn.q_proj.weight_scale_inv": ("F32", [4, 4]),
            f"{before}.self_attn.k_proj.weight": ("BF16", [256, 512]),
            f"{before}.input_layernorm.weight": ("BF16", [512]),
            f"{before}.mlp.gate_proj.weight": ("BF16" if layer % 2 else "F32", [1024, 512]),
        }
    return found


def mixture_tensors(layers: int) -> Tensors:
    found = dense_tensors(layers)
    for layer in range(layers):
        for expert in range(128):
            for part in ("gate_proj", "up_proj", "down_proj"):
                found[f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight"] = ("BF16", [256, 512])
    return found


def folder_of(folder: Path, config: dict[str, Any], tensors: Tensors, files: int = 2) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    names = sorted(tensors)
    for number in range(files):
        listed: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        for name in names[number::files]:
            dtype, shape = tensors[name]
            listed[name] = {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
        text = json.dumps(listed).encode()
        (folder / f"model-{number}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    return folder


@pytest.mark.parametrize(
    ("config", "tensors"),
    [
        (DENSE, dense_tensors(48)),
        (DENSE, dense_tensors(49)),  # the last one is a draft
        (MIXTURE, mixture_tensors(48)),
        (DENSE, {}),
    ],
    ids=["dense", "with a draft layer", "mixture", "no headers"],
)
def test_what_a_pod_tells_is_what_the_files_say(tmp_path, config, tensors):
    folder = folder_of(tmp_path / "model", config, tensors, files=2 if tensors else 0)
    text = told(model_of(folder))
    assert len(text) <= MOST_BYTES
    here, there = facts_from_folder(folder), read_model(text, source="pvc://x/y", revision="abc")
    assert there.architecture == here.architecture
    assert there.weights == here.weights
    assert (there.source, there.revision, there.origin) == ("pvc://x/y", "abc", "facts pod")


@pytest.mark.parametrize(
    ("said", "tokens"), [({"max_seq_length": 256}, 256), ({"max_seq_length": None}, 8192)]
)
def test_a_pod_tells_the_length_that_a_sentence_model_says_of_itself(tmp_path, said, tokens):
    folder = folder_of(tmp_path / "model", DENSE, {}, files=0)
    (folder / "sentence_bert_config.json").write_text(json.dumps(said))
    there = read_model(told(model_of(folder)), source="pvc://x/y", revision=None)
    assert there.architecture.max_positions == facts_from_folder(folder).architecture.max_positions == tokens


def test_numbers_fold_but_not_those_of_layers_that_the_model_does_not_have():
    assert (
        folded("model.layers.3.mlp.experts.17.up_proj.weight", 4)
        == "model.layers.*.mlp.experts.*.up_proj.weight"
    )
    assert (
        folded("model.layers.4.mlp.experts.17.up_proj.weight", 4)
        == "model.layers.4.mlp.experts.*.up_proj.weight"
    )
    assert folded("lm_head.weight", 4) == "lm_head.weight"


def test_tensors_that_are_alike_are_counted(tmp_path):
    model = model_of(folder_of(tmp_path / "m", DENSE, dense_tensors(48)))
    assert model.tensors[Tensor("model.layers.*.self_attn.k_proj.weight", "BF16", (256, 512))] == 48


def test_long_lists_of_modules_are_left_out_where_all_would_not_fit(tmp_path):
    quantized = {
        "quant_method": "fp8",
        "ignored_layers": [f"model.layers.{n}.{hash((n, 7)) % 10**12}" for n in range(900)],
    }
    model = model_of(
        folder_of(tmp_path / "m", {**DENSE, "quantization_config": quantized}, dense_tensors(48))
    )
    text = told(model)
    assert len(text) <= MOST_BYTES
    assert read_model(text, source="s", revision=None).architecture.hidden == 512


def test_as_a_program_it_leaves_them_for_the_kubelet(packed, tmp_path):
    folder, message = folder_of(tmp_path / "m", DENSE, dense_tensors(48)), tmp_path / "message"
    run([sys.executable, "-I", "-S", packed, "facts", folder, f"--termination-log={message}"], 0)
    assert (
        read_model(message.read_text(), source="s", revision=None).weights
        == facts_from_folder(folder).weights
    )


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no config.json"),
        ({"config.json": b"{"}, "config.json is not JSON"),
        ({"config.json": b"[]"}, "holds a list"),
        ({"config.json": b"{}", "model.safetensors": b"abc"}, "is no safetensors file"),
        (
            {"config.json": b"{}", "model.safetensors": struct.pack("<Q", 3) + b"{]}"},
            "the header of model.safetensors",
        ),
    ],
)
def test_a_model_that_cannot_be_read_is_a_failure_with_a_reason(packed, tmp_path, files, said):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    message = tmp_path / "message"
    run([sys.executable, "-I", "-S", packed, "facts", tmp_path, f"--termination-log={message}"], 1)
    failure = json.loads(message.read_text())
    assert failure["word"] == "BadCheckpoint"
    assert said in failure["message"]


def run(argv: list[str | Path], code: int) -> None:
    assert subprocess.run(argv, check=False, capture_output=True, timeout=60).returncode == code


def packed_text(body: object) -> str:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return json.dumps({"schema": 1, "model": base64.b85encode(zlib.compress(raw)).decode()})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[]", "the message holds a list"),
        ('{"schema": 2}', "schema is 2"),
        ('{"schema": 1, "model": "~"}', "unpacked"),
        ('{"schema": 1, "model": "abcde"}', "unpacked"),
        (packed_text(b" " * (20 << 20)), "more than"),
        (packed_text([]), "model holds a list"),
        (packed_text({"config": []}), "config holds a list"),
        (packed_text({"config": DENSE, "tensors": {}}), "tensors is a dict"),
        (packed_text({"config": DENSE, "tensors": [["a", "BF16", [1]]]}), "tensors\\[0\\]"),
        (packed_text({"config": DENSE, "tensors": [["a", "BF16", [-1], 1]]}), "tensors\\[0\\]"),
        (packed_text({"config": DENSE, "tensors": [["a", "BF16", [1], True]]}), "tensors\\[0\\]"),
        (packed_text({"config": DENSE, "tensors": [["a", "odd", [1], 1]]}), "odd"),
        (packed_text({"config": {}, "tensors": []}), "told of s"),
        (packed_text({"config": DENSE, "tensors": [["a", "F32", [1], 1]] * 5000}), "5000 kinds"),
        (packed_text({"config": {**DENSE, "hidden_size": 10**400}, "tensors": []}), "told of s"),
        (packed_text({"config": {**DENSE, "intermediate_size": 10**30}, "tensors": []}), "told of s"),
        (packed_text({"config": DENSE, "tensors": [["a", "F32", [1 << 40] * 9, 1]]}), "told of s"),
        (packed_text({"config": DENSE, "tensors": [["a", "F32", [1 << 40] * 50_000, 1]]}), "50000 axes"),
    ],
)
def test_what_no_facts_pod_wrote_is_refused(text, said):
    with pytest.raises(ModelTellingUnreadable, match=said):
        read_model(text, source="s", revision=None)
