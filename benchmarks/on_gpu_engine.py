"""A real engine on this machine's GPU, started as anyone starts it, and what it says of itself while it starts."""

from __future__ import annotations

import os
import re
import shlex
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cluster.engine import is_ready
from cluster.owner import Owner

READY_SECONDS: Final = 420.0
LINES: Final[Mapping[str, re.Pattern[str]]] = {
    "available_kv_gib": re.compile(r"Available KV cache memory: ([\d.]+) GiB"),
    "kv_tokens": re.compile(r"GPU KV cache size: ([\d,]+) tokens"),
    "max_concurrency": re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x"),
    "model_weights_gib": re.compile(r"Model loading took ([\d.]+) GiB"),
    "graphs_gib": re.compile(r"Graph capturing finished in [\d.]+ secs?, took ([\d.]+) GiB"),
    "graphs_s": re.compile(r"Graph capturing finished in ([\d.]+) secs?"),
    "compile_s": re.compile(r"torch\.compile (?:and initial profiling run )?took ([\d.]+) s"),
    "weights_s": re.compile(r"Model loading took [\d.]+ GiB(?: memory)? and ([\d.]+) seconds"),
}
"""Of the engine's log; a version that words one in another way leaves it out."""


class EngineOnGpu(Owner):
    """Use it with `with`: it serves a model's folder at `url`, and is gone afterwards."""

    called = "engine"

    def __init__(self, command: str, model: Path, *words: str, ready_s: float = READY_SECONDS) -> None:
        self._serve = [*shlex.split(command), "serve", str(model), "--load-format=dummy", *words]
        self._ready_s = ready_s
        self.version = ""

    def _start(self) -> None:
        # All that this program was started with: where the driver is, which packages, which caches.
        told = [f"{name}={value}" for name, value in os.environ.items()]  # noqa: TID251 - for another program

        def args(address: str) -> list[str]:
            host, _, port = address.rpartition(":")
            return [*told, *self._serve, f"--host={host}", f"--port={port}"]

        began = time.monotonic()
        self.url = f"http://{self._listening('engine', 'env', args, is_ready, self._ready_s)}"
        self.start_s = round(time.monotonic() - began, 1)
        with urllib.request.urlopen(f"{self.url}/version", timeout=10) as answer:  # noqa: S310 - this machine
            self.version = answer.read().decode().split('"')[3]

    def said(self) -> dict[str, float]:
        """What its log tells of its start, under the names of rows of observed starts."""
        log = self.processes.log("engine").read_text("utf-8", errors="replace")
        found = {name: line.findall(log) for name, line in LINES.items()}
        return {name: float(seen[-1].replace(",", "")) for name, seen in found.items() if seen}
