"""The supervisor brings a model from a hub, is killed in the middle, goes on, and the real engine serves it without asking the hub."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, Final

import pytest

import models
from asking import Engine
from build import NAME, build
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.engine import ENVIRONMENT, EngineUnavailable, ensure_engine
from cluster.processes import free_port
from real import left_out
from tests.runtime.hub_site import TOKEN, Cdn, HubSite, Repository

pytestmark = pytest.mark.real_engine

REPOSITORY: Final = "acme/dense"
PATIENCE_SECONDS: Final = 300.0
LAYERS: Final = 2
LARGE: Final = "?" * 64 + ".plimsoll-done"
"""What is noted of large files, which are called by their sum."""
WORDS: Final = ("--enforce-eager", "--max-model-len=2048", "--max-num-seqs=4", "--host=127.0.0.1")


def files() -> dict[str, bytes]:
    """The tiny model with two layers and numbers for weights, in two files and an index as large models have."""
    plain = models.dense().files
    config = json.loads(plain["config.json"]) | {"num_hidden_layers": LAYERS}
    hidden, inner, kv, head = (config["hidden_size"], config["intermediate_size"], 128, config["head_dim"])
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    for layer in range(LAYERS):
        inside = {
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
            **{
                f"self_attn.{name}_proj": (width, hidden)
                for name, width in (("q", hidden), ("k", kv), ("v", kv), ("o", hidden))
            },
            **{f"self_attn.{name}_norm": (head,) for name in "qk"},
            **{f"mlp.{name}_proj": (inner, hidden) for name in ("gate", "up")},
            "mlp.down_proj": (hidden, inner),
        }
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in inside.items()}
    names = sorted(shapes)
    found: dict[str, bytes] = {}
    index: dict[str, str] = {}
    for number, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        found[file] = safetensors({name: shapes[name] for name in part})
        index |= dict.fromkeys(part, file)
    found["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": index}).encode()
    return {**plain, **found, "config.json": json.dumps(config).encode()}


def safetensors(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """bfloat16: a random byte of the fraction and one of two exponents, which are small numbers of both signs."""
    chance, header, data = random.Random(3), {}, bytearray()
    for name, shape in shapes.items():
        start, count = len(data), prod(shape)
        numbers = bytearray(2 * count)
        numbers[::2] = chance.randbytes(count)
        numbers[1::2] = bytes(0x3C | byte & 0x80 for byte in chance.randbytes(count))
        data += numbers
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, len(data)]}
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + bytes(data)


class Life:
    """One supervisor with its engine, until it is closed."""

    def __init__(self, python: Path, packed: Path, folder: Path, hub: str, name: str) -> None:
        engine, side = free_port(), free_port()
        self.url, self._side = f"http://127.0.0.1:{engine}", f"http://127.0.0.1:{side}"
        self._output = folder / name
        own = [
            f"--port={side}",
            "--grace=5",
            f"--termination-log={folder / 'why'}",
            f"--fetch=hf://{REPOSITORY}#main",
        ]
        serve = [
            "-m",
            "vllm.entrypoints.cli.main",
            "serve",
            REPOSITORY,
            "--revision=main",
            *WORDS,
            f"--port={engine}",
        ]
        environment = {name: value for name, value in ENVIRONMENT.items() if name != "HF_HUB_OFFLINE"}
        environment |= {
            "HF_ENDPOINT": hub,
            "HF_HOME": str(folder / "cache"),
            "HF_TOKEN": TOKEN,
            "HOME": str(folder),
        }
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", packed, "serve", *own, "--", python, *serve],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": os.defpath, **environment},
            )

    def facts(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self._side}/facts", timeout=10) as answer:
                told: dict[str, Any] = json.load(answer)
                return told
        except OSError:
            return {"state": "", "progress": None}

    def until(self, state: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (facts := self.facts())["state"] != state:
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.1)
        return facts

    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)  # no answer is waited for
        self.process.wait(PATIENCE_SECONDS)


@pytest.fixture
def hub() -> Iterator[HubSite]:
    cdn = Cdn()
    site = HubSite({REPOSITORY: Repository(files(), gated=True)}, cdn)
    yield site
    site.close()
    cdn.close()


def test_a_model_that_was_half_there_is_gone_on_with_and_serves(hub: HubSite, tmp_path: Path) -> None:
    try:
        python = ensure_engine(Places.of(os.environ), Progress(sys.stderr))  # noqa: TID251 - the default of an entry point
    except EngineUnavailable as why:
        left_out(str(why))
    packed, cdn = build(tmp_path / NAME), hub.cdn
    assert cdn is not None
    cdn.hold = threading.Event()
    total = sum(map(len, hub.repositories[REPOSITORY].files.values()))
    first = Life(python, packed, tmp_path, hub.url, "first")
    try:
        while (first.facts()["progress"] or {"bytes": 0})["bytes"] < total * 2 // 5:
            assert first.process.poll() is None, first.said()
            time.sleep(0.05)
        while not any(file.stat().st_size for file in tmp_path.rglob(LARGE)):
            time.sleep(0.05)
        first.process.kill()
        first.process.wait()
    finally:
        first.close()
    cdn.hold.set()
    cdn.hold, before = None, len(cdn.asked)
    second = Life(python, packed, tmp_path, hub.url, "second")
    try:
        facts = second.until("serving")
        assert facts["fetched"] == [
            {"source": f"hf://{REPOSITORY}", "revision": hub.repositories[REPOSITORY].commit}
        ]
        assert Engine(url=second.url).complete(REPOSITORY, [5, 6, 7], 4)
    finally:
        second.close()
    again = [one.headers["range"] for one in cdn.asked[before:] if "range" in one.headers]
    assert any(not one.startswith("bytes=0-") for one in again), "nothing was gone on with"
    engines = {
        one.headers.get("user-agent", "")
        for one in hub.asked
        if "plimsoll-runtime" not in one.headers.get("user-agent", "")
    }
    assert engines == set(), "the engine asked the hub"
