"""Models as small as a configuration can be made of, and what a platform without GPUs cannot judge even so."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

COMMON: dict[str, Any] = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024,
    "hidden_act": "silu", "num_hidden_layers": 8, "max_position_embeddings": 65536, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-6,
    "rope_theta": 1000000, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "dense": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
    "mixture": {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "moe_intermediate_size": 128, "num_experts": 8,
        "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True,
    },
    "draft": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 2},
    "head": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1, "draft_vocab_size": 1024},
}  # fmt: skip
HEADS = ("eagle", "eagle3")
WORDS = ("<unk>", "<s>", "</s>", "<think>", "</think>", "word")
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None, "decoder": None,
    "added_tokens": [
        {"id": number, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for number, word in enumerate(WORDS[:-1])
    ],
    "model": {"type": "WordLevel", "vocab": {word: number for number, word in enumerate(WORDS)}, "unk_token": "<unk>"},
}  # fmt: skip
NAMED = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "unk_token": "<unk>",
    "bos_token": "<s>",
    "eos_token": "</s>",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """What is refused here and taken elsewhere."""

    why: str
    words: tuple[str, ...]
    """A line that has one of them, spaces and all, is not judged."""
    example: tuple[str, ...]
    message: str
    versions: tuple[str, ...] = ("0.33.0", "0.20.2")


UNJUDGED = (
    Unjudged(
        why="only platforms that can give memory back sleep",
        words=("--enable-sleep-mode ",),
        example=("--enable-sleep-mode",),
        message="Sleep mode is not supported on current platform",
    ),
    Unjudged(
        why="experts are moved between GPUs alone",
        words=("--enable-eplb ",),
        example=("--tensor-parallel-size", "2", "--enable-expert-parallel", "--enable-eplb"),
        message="Expert parallelism load balancing is only supported on",
    ),
    Unjudged(
        why="Ray is a package that the image brings",
        words=("--distributed-executor-backend ray ",),
        example=("--tensor-parallel-size", "2", "--distributed-executor-backend", "ray"),
        message="Ray",
    ),
    Unjudged(
        why="LMCache is a package that the image brings",
        words=("--kv-offloading-backend lmcache ",),
        example=("--kv-offloading-size", "8", "--kv-offloading-backend", "lmcache"),
        message="lmcache",
        versions=("0.33.0",),
    ),
    Unjudged(
        why="its layers are a part of checkpoints that were trained with them",
        words=('"method":"mtp"',),
        example=("--speculative-config", '{"method":"mtp","num_speculative_tokens":1}'),
        message="Unsupported speculative method: 'mtp'",
    ),
    Unjudged(
        why="only models of several parts have one of that name",
        words=('"text_config"',),
        example=("--hf-overrides", '{"text_config":{"rope_parameters":{"factor":4.0,"rope_type":"linear"}}}'),
        message="num_attention_heads",
    ),
)
UNREAD: dict[str, dict[str, tuple[str, ...]]] = {
    "--quantization": {
        "0.33.0": (
            "auto_awq", "auto_gptq", "awq", "awq_marlin", "compressed-tensors", "fbgemm_fp8", "fp_quant", "gptq", "gptq_marlin", "inc",
            "modelopt", "modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8", "moe_wna16", "online", "quark", "torchao",
        ),
        "0.20.2": (
            "awq", "awq_marlin", "compressed-tensors", "cpu_awq", "fbgemm_fp8", "fp_quant", "gptq", "gptq_marlin", "humming", "inc",
            "modelopt", "modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8", "moe_wna16", "online", "quark", "torchao",
        ),
    },
    "--reasoning-parser": {
        "0.33.0": ("beam", "hf", "k2_horizon", "minimax_m3", "mistral", "olmo3", "poolside_v1"),
        "0.20.2": ("gemma4", "mistral", "openai_gptoss", "seed_oss"),
    },
    "--kv-cache-dtype": {
        "0.33.0": ("float16",),
        "0.20.2": (
            "fp8", "fp8_ds_mla", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_per_token_head", "int8_per_token_head", "nvfp4",
        ),
    },
}  # fmt: skip
"""Values that want more of a model than a configuration (a checkpoint quantized so, words in the tokenizer, another dtype), a package of
their own, or a word more (the engine's word that they are deprecated); and caches that the older version keeps on no CPU."""
NEVER_JUDGED = ("--enable-sleep-mode", "--enable-eplb", "group by Ray")


def write(folder: Path) -> Mapping[str, Path]:
    """Folders of models by name."""
    made = {}
    for name, shape in SHAPES.items():
        place = made[name] = folder / name
        place.mkdir()
        for file, content in (
            ("config.json", COMMON | shape),
            ("tokenizer.json", TOKENIZER),
            ("tokenizer_config.json", NAMED),
        ):
            (place / file).write_text(json.dumps(content), "utf-8")
    return made


def with_models(words: Sequence[str], models: Mapping[str, Path], *, mixture: bool) -> list[str]:
    """The same line with models that are here in the places of those it names."""
    own = str(models["mixture" if mixture else "dense"])
    line = [own, *words[1:]]
    for place, word in enumerate(words):
        if word == "--tokenizer":
            line[place + 1] = own
        elif word == "--speculative-config":
            asked = json.loads(words[place + 1])
            if "model" in asked:
                asked["model"] = str(models["head" if asked["method"] in HEADS else "draft"])
            line[place + 1] = json.dumps(asked)
    return line


def unjudged(words: Sequence[str], version: str) -> bool:
    text = " ".join(words) + " "
    unread = any(value in UNREAD.get(flag, {}).get(version, ()) for flag, value in pairwise(words))
    return unread or any(word in text for one in UNJUDGED if version in one.versions for word in one.words)
