"""What an engine says while it starts: how far it is, and what it measured. Fed line by line; a function of the lines and times.

The lines are those of vLLM 0.10 to 0.33, whose wording moved: a figure that a version does not print is None, never 0. Where several
workers print the same figure, weights are the largest of them and memory for KV the smallest, as the engine itself reckons.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

GIB = 1 << 30
FETCH = "fetch"
"""Before there is an engine, where its supervisor brings the model."""
IMPORTS, CONFIG, ENGINE, WEIGHTS, PREPARE = "imports", "config", "engine", "weights", "prepare"
COMPILE, PROFILE, WARMUP, SERVER = "compile", "profile", "warmup", "server"
PHASES = (IMPORTS, CONFIG, ENGINE, WEIGHTS, PREPARE, COMPILE, PROFILE, WARMUP, SERVER)
TEXTS = {
    IMPORTS: "importing the engine",
    CONFIG: "reading the configuration",
    ENGINE: "starting workers",
    WEIGHTS: "loading weights",
    PREPARE: "preparing the first run",
    COMPILE: "compiling the model",
    PROFILE: "measuring memory",
    WARMUP: "warming up and capturing graphs",
    SERVER: "starting the server",
}

_MARKS = (
    ("non-default args:", CONFIG),
    ("Initializing a V1 LLM engine", ENGINE),
    ("Initializing a V0 LLM engine", ENGINE),
    ("Initializing an LLM engine", ENGINE),
    ("distributed_init_method=", ENGINE),  # of a rank that has no engine of its own to announce
    ("Starting to load model", WEIGHTS),
    ("Loading model weights took", PREPARE),
    ("Model loading took", PREPARE),
    ("Using cache directory:", COMPILE),
    ("Warming up model for the compilation", COMPILE),  # on CPUs
    ("Dynamo bytecode transform time", COMPILE),
    ("torch.compile took", PROFILE),
    ("Initial profiling/warmup run took", PROFILE),
    ("KV cache size:", WARMUP),
    ("Graph capturing finished", SERVER),
    ("init engine (profile", SERVER),
    ("Starting vLLM server on", SERVER),
    ("Starting vLLM API server", SERVER),
)
_READY = "Application startup complete"


class Measured(NamedTuple):
    weights: int | None = None
    consumed: int | None = None
    """Weights and all that lasts beside them, where a version says no more than both together."""
    activation: int | None = None
    non_torch: int | None = None
    graphs: int | None = None
    graphs_estimated: int | None = None
    """Taken off the memory for KV, whatever the graphs then are."""
    kv: int | None = None
    kv_tokens: int | None = None
    blocks: int | None = None
    block_size: int | None = None
    compile_cache: str | None = None

    def told(self) -> dict[str, object]:
        return {
            "weightsBytes": self.weights,
            "consumedBytes": self.consumed,
            "activationBytes": self.activation,
            "nonTorchBytes": self.non_torch,
            "graphsBytes": self.graphs,
            "graphsEstimatedBytes": self.graphs_estimated,
            "kvBytes": self.kv,
            "kvTokens": self.kv_tokens,
            "blocks": self.blocks,
            "blockSize": self.block_size,
            "compileCache": self.compile_cache,
        }


class Phase(NamedTuple):
    name: str
    seconds: float


class _Figure(NamedTuple):
    pattern: re.Pattern[str]
    fields: tuple[str, ...]
    """One for each group."""
    joined: Callable[[int, int], int] = max
    """Of what several workers say."""


def _gib(name: str) -> str:
    return rf"(?P<{name}>-?\d+(?:\.\d+)?)\s?Gi?B"


_FIGURES = (
    _Figure(re.compile("(?:Model loading|Loading model weights) took " + _gib("weights")), ("weights",)),
    _Figure(re.compile("model weights take " + _gib("weights")), ("weights",)),
    _Figure(re.compile("weights memory: " + _gib("weights")), ("weights",)),
    _Figure(
        re.compile(
            "Actual usage is "
            + _gib("weights")
            + " for weights?, "
            + _gib("activation")
            + " for peak activation, "
            + _gib("non_torch")
            + " for non-torch memory, and "
            + _gib("graphs")
        ),
        ("weights", "activation", "non_torch", "graphs"),
    ),
    _Figure(
        re.compile(
            "Actual usage is "
            + _gib("consumed")
            + r" for consumed memory \(weights \+ non-torch\), "
            + _gib("activation")
            + " for peak activation, and "
            + _gib("graphs")
        ),
        ("consumed", "activation", "graphs"),
    ),
    _Figure(re.compile("(?:torch peak memory increase: )" + _gib("activation")), ("activation",)),
    _Figure(re.compile("activation peak memory takes? " + _gib("activation")), ("activation",)),
    _Figure(re.compile("non_torch_memory takes? " + _gib("non_torch")), ("non_torch",)),
    _Figure(re.compile("non-torch forward increase memory: " + _gib("non_torch")), ("non_torch",)),
    _Figure(re.compile("Graph capturing finished in .* took " + _gib("graphs")), ("graphs",)),
    _Figure(re.compile("Estimated CUDA graph memory: " + _gib("graphs_estimated")), ("graphs_estimated",)),
    _Figure(
        re.compile(
            "CUDA graph pool memory: "
            + _gib("graphs")
            + r" \(actual\), "
            + _gib("graphs_estimated")
            + r" \(est"
        ),
        ("graphs", "graphs_estimated"),
    ),
    _Figure(re.compile("Available KV cache memory: " + _gib("kv")), ("kv",), min),
    _Figure(re.compile("memory reserved for KV Cache is " + _gib("kv")), ("kv",), min),
    _Figure(re.compile("reserved " + _gib("kv") + " memory for KV Cache as specified"), ("kv",), min),
    _Figure(re.compile(r"Explicitly set \((?P<kv>\d+(?:\.\d+)?)/[\d.]+\) GiB for KV cache"), ("kv",), min),
    _Figure(re.compile(r"KV cache size: (?P<kv_tokens>\d[\d,]*) tokens"), ("kv_tokens",), min),
    _Figure(re.compile(r"# \w+ blocks: (?P<blocks>\d+)"), ("blocks",), min),
)
_COUNTS = frozenset({"kv_tokens", "blocks"})
_COLD = re.compile(
    "Compiling a graph for|Dynamo bytecode transform time|Compiling model again|saved AOT compiled function"
)
_WARM = re.compile("Directly load AOT compilation|Directly load the compiled graph|Directly load the .*graph")
_VERSION = re.compile(r"(?:vLLM API server version |LLM engine \(v|[█▀▄ ]\s+version )(\d[\w.+]*)")
_SHARDS = re.compile(r"checkpoint shards:.*\| (\d+)/(\d+) ")


class Startup:
    """The start of one engine. Not for several threads at once."""

    def __init__(self, now: float, fetching_since: float | None = None) -> None:
        self.began = now
        self.phase = IMPORTS
        self.measured = Measured()
        self.version: str | None = None
        self.shards: tuple[int, int] | None = None
        """Of the weights' files, how many are read."""
        self.ended: float | None = None
        """When it served."""
        before = [] if fetching_since is None else [(FETCH, fetching_since)]
        self._marks: list[tuple[str, float]] = [*before, (IMPORTS, now)]

    def take(self, line: str, now: float) -> None:
        if self.ended is not None:
            return
        if _READY in line:
            self.served(now)
            return
        for mark, phase in _MARKS:
            if mark in line:
                self._enter(phase, now)
                break
        for figure in _FIGURES:
            found = figure.pattern.search(line)
            if found is not None:
                self._measure(figure, found)
        if self.version is None and (said := _VERSION.search(line)) is not None:
            self.version = said[1].rstrip(".,")
        if self.phase == WEIGHTS and (read := _SHARDS.search(line)) is not None:
            self.shards = (int(read[1]), int(read[2]))
        self._compiled(line)

    def served(self, now: float) -> None:
        if self.ended is None:
            self.ended = now

    def phases(self, now: float) -> list[Phase]:
        """In the order they were entered; the last one until now, or until the engine served."""
        ends = [*(since for _, since in self._marks[1:]), now if self.ended is None else self.ended]
        return [Phase(name, round(max(0.0, end - since), 1)) for (name, since), end in zip(self._marks, ends)]

    def text(self) -> str:
        if self.phase == WEIGHTS and self.shards is not None:
            return f"{TEXTS[WEIGHTS]}: {self.shards[0]} of {self.shards[1]} files"
        return TEXTS[self.phase]

    def figures(self) -> Measured:
        """Since 0.26 the peak includes the estimate for graphs wherever a version prints consumed memory; without it here."""
        found = self.measured
        if found.consumed is None or found.activation is None or not found.graphs_estimated:
            return found
        return found._replace(activation=max(0, found.activation - found.graphs_estimated))

    def _enter(self, phase: str, now: float) -> None:
        # Workers lag behind one another: what one of them still does is not where the engine is.
        if PHASES.index(phase) > PHASES.index(self.phase):
            self.phase = phase
            self._marks.append((phase, now))

    def _measure(self, figure: _Figure, found: re.Match[str]) -> None:
        for field in figure.fields:
            text = found[field].replace(",", "")
            value = int(text) if field in _COUNTS else round(float(text) * GIB)
            earlier: int | None = getattr(self.measured, field)
            joined = value if earlier is None else figure.joined(earlier, value)
            changed: dict[str, Any] = {field: joined}
            self.measured = self.measured._replace(**changed)

    def _compiled(self, line: str) -> None:
        if _COLD.search(line):
            self.measured = self.measured._replace(compile_cache="cold")
        elif self.measured.compile_cache is None and _WARM.search(line):
            self.measured = self.measured._replace(compile_cache="warm")
