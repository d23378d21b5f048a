"""A small model that lies where a test wants it, with files beside it that no engine reads; and whoever asks for it."""

from __future__ import annotations

import json
import random
import struct
import threading
from pathlib import Path

from plimsoll_runtime.sources.fetch import Fetched, fetch
from plimsoll_runtime.sources.trouble import Patience
from tests.runtime.hub_site import HubSite

QUICK = Patience(attempts=4, first=0.01, most=0.05, timeout=10.0)
NAME = "acme/tiny"


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.lines: list[str] = []
        self.waited: list[str | None] = []
        self.end = threading.Event()

    def progress(self, done: int, of: int) -> None:
        self.seen.append((done, of))

    def says(self, text: str) -> None:
        self.lines.append(text)

    def waits(self, text: str | None) -> None:
        self.waited.append(text)

    def stopped(self) -> bool:
        return self.end.is_set()


def safetensors(size: int, seed: int = 1) -> bytes:
    body = random.Random(seed).randbytes(size)
    head = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(head)) + head + body


def shards() -> dict[str, bytes]:
    names = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    index = {
        "metadata": {"total_size": 900_000},
        "weight_map": {f"w{place}": name for place, name in enumerate(names)},
    }
    return {
        "config.json": b'{"architectures": ["X"], "num_hidden_layers": 1}',
        "tokenizer.json": b"{}",
        "model.safetensors.index.json": json.dumps(index).encode(),
        **{name: safetensors(300_000, seed) for seed, name in enumerate(names)},
        "pytorch_model.bin": b"old" * 1000,
        "original/consolidated.00.pth": b"old" * 1000,
        "picture.png": b"x",
        "processing/settings.json": b"[]",
    }


WANTED = {
    "config.json",
    "tokenizer.json",
    "model.safetensors.index.json",
    "processing/settings.json",
    *(f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)),
}


def get(
    hub: HubSite,
    into: Path,
    told: Listener | None = None,
    *,
    revision: str | None = None,
    load_format: str | None = None,
    **environment: str,
) -> Fetched:
    given = {"HF_ENDPOINT": hub.url, **environment}
    told = told or Listener()
    return fetch(f"hf://{NAME}", revision, into, told, given, load_format=load_format, patience=QUICK)


def files_of(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
