"""Models of a few megabytes, made on the spot: what an engine reads of a checkpoint, without weights, which it makes up itself.

The same bytes every time. Small enough for a ConfigMap, so that a pod without rights mounts a model as any other file.
"""

from __future__ import annotations

import base64
import json
import random
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from cluster.api import Object

VOCABULARY: Final = 1024
SPECIAL: Final = ("<|pad|>", "<|begin|>", "<|end|>")
"""First in the vocabulary; nothing in a text becomes one of them."""
CONTEXT: Final = 32768
TEMPLATE: Final = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
COMMON: Final[Mapping[str, Any]] = {
    "torch_dtype": "bfloat16",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """Files of one model, or of one adapter, by name."""

    name: str
    files: Mapping[str, bytes]

    def write(self, folder: Path) -> Path:
        """As a folder that an engine is given."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder

    def config_map(self) -> Object:
        """As an object that a pod mounts."""
        content = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"model-{self.name}"},
            "binaryData": content,
        }


def volume(folder: Path, name: str, namespace: str) -> list[Object]:
    """A folder of this machine, which real nodes see, and a claim to it: pods only read there."""
    lent: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadOnlyMany"],
        "hostPath": {"path": str(folder), "type": "Directory"},
        "claimRef": {"namespace": namespace, "name": name},
    }
    claim: Object = {
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": lent},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": claim,
        },
    ]


def dense() -> TinyModel:
    """Grouped-query attention; two tensor-parallel ranks have two key-value heads each."""
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 8}
    return TinyModel(name="dense", files=_files(config))


def experts() -> TinyModel:
    """A mixture of experts: eight, of which two are used."""
    config = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_hidden_layers": 4,
        "moe_intermediate_size": 128,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
    }
    return TinyModel(name="experts", files=_files(config))


def shaped(name: str, config: Mapping[str, Any]) -> TinyModel:
    """A model of any shape, by its config.json, for an engine that makes up its weights: the vocabulary has words as here, the rest is spare."""
    spare = config["vocab_size"] - VOCABULARY
    words = tokenizer()
    pieces = {**words["model"]["vocab"], **{f"spare{place}": VOCABULARY + place for place in range(spare)}}
    files = _files(config)
    return TinyModel(
        name=name,
        files={
            **files,
            "config.json": _json({**config, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}),
            "tokenizer.json": _json({**words, "model": {**words["model"], "vocab": pieces}}),
        },
    )


def adapter(rank: int = 8, hidden: int = COMMON["hidden_size"]) -> TinyModel:
    """A LoRA adapter of the dense model, on two projections of each layer; with another width, of some other model."""
    # Both read 256 numbers. A model of made-up weights repeats itself, unless an adapter writes to what every layer adds to.
    layers = 8
    outputs = {"v_proj": COMMON["num_key_value_heads"] * COMMON["head_dim"], "o_proj": hidden}
    shapes = {}
    for layer in range(layers):
        for target, width in outputs.items():
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{target}"
            shapes[f"{prefix}.lora_A.weight"] = (rank, hidden)
            shapes[f"{prefix}.lora_B.weight"] = (width, rank)
    about = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "dense",
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(outputs),
    }
    files = {"adapter_config.json": _json(about), "adapter_model.safetensors": _safetensors(shapes)}
    return TinyModel(name="adapter", files=files)


def _files(config: Mapping[str, Any]) -> dict[str, bytes]:
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "pad_token": SPECIAL[0],
        "bos_token": SPECIAL[1],
        "eos_token": SPECIAL[2],
        "chat_template": TEMPLATE,
    }
    return {
        "config.json": _json({**COMMON, **config}),
        "tokenizer.json": _json(tokenizer()),
        "tokenizer_config.json": _json(about),
    }


@cache
def tokenizer() -> Object:
    """Byte-level pair encoding, learned from words that nobody uses."""
    letters = _byte_letters()
    merges = _merges(_words(random.Random(1)), VOCABULARY - len(SPECIAL) - len(letters))
    pieces = [*SPECIAL, *letters, *("".join(pair) for pair in merges)]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": place, "content": piece, **plain} for place, piece in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {piece: place for place, piece in enumerate(pieces)},
            "merges": [list(pair) for pair in merges],
        },
    }


def _byte_letters() -> list[str]:
    """One printable letter for each byte, as byte-level encodings have it: the byte's own where that can be seen."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, spare = [], 0
    for byte in range(256):
        if byte in seen:
            letters.append(chr(byte))
        else:
            letters.append(chr(256 + spare))
            spare += 1
    return letters


def _words(chance: random.Random) -> Counter[tuple[str, ...]]:
    """Random words, each with the letter that stands for the space before it."""
    space = _byte_letters()[ord(" ")]
    found: Counter[tuple[str, ...]] = Counter()
    for _ in range(1500):
        syllables = (
            chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(chance.randint(1, 4))
        )
        found[tuple(space + "".join(syllables))] += 1
    return found


def _merges(words: Counter[tuple[str, ...]], count: int) -> list[tuple[str, str]]:
    """The pair that is seen most becomes one piece, again and again; among equals the first in the alphabet."""
    merges = []
    for _ in range(count):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = Counter({_joined(word, best): times for word, times in words.items()})
    return merges


def _joined(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    if pair[0] not in word:
        return word
    pieces: list[str] = []
    for piece in word:
        if pieces and (pieces[-1], piece) == pair:
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return tuple(pieces)


def _safetensors(shapes: Mapping[str, tuple[int, int]]) -> bytes:
    """Random numbers of 16 bits (bfloat16: the upper half of a float32), a thousand times what an engine makes up for weights."""
    chance = random.Random(2)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, shape in sorted(shapes.items()):
        start = len(data)
        for _ in range(shape[0] * shape[1]):
            data += struct.pack("<f", chance.uniform(-1.0, 1.0))[2:]
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, len(data)]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + bytes(data)


def _json(content: object) -> bytes:
    return json.dumps(content, indent=1, sort_keys=False).encode() + b"\n"
