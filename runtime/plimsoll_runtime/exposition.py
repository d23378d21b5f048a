"""The supervisor's facts in Prometheus' text format. A figure that is not known is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll_runtime.said import STATES

ADAPTER_STATES = ("Waiting", "Fetching", "Loaded", "Failed")
_BYTES = {
    "weightsBytes": "weights",
    "consumedBytes": "consumed",
    "activationBytes": "activation",
    "nonTorchBytes": "non_torch",
    "graphsBytes": "graphs",
    "graphsEstimatedBytes": "graphs_estimated",
    "kvBytes": "kv",
}

_FETCH = (
    ("bytes", "fetch_bytes", "Of the model, so far."),
    ("of", "fetch_total_bytes", "Of the model in all."),
    ("rate", "fetch_bytes_per_second", "Over the last half minute."),
    ("left", "fetch_left_seconds", "Until the model is there, at this rate."),
)


def exposition(facts: Mapping[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _lines(facts))


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("state", "Of the engine: 1 for the one it is in.")
    for state in STATES:
        yield f'plimsoll_runtime_state{{state="{state}"}} {int(state == facts["state"])}'
    yield from _head("phase_seconds", "How long each phase of the start took, the current one until now.")
    for phase in facts["phases"]:
        yield f'plimsoll_runtime_phase_seconds{{phase="{phase["name"]}"}} {phase["seconds"]}'
    progress = facts["progress"] or {}
    for name, word, text in _FETCH:
        if progress.get(name) is not None:
            yield from _head(word, text)
            yield f"plimsoll_runtime_{word} {progress[name]}"
    measured = facts["measured"]
    known = [(word, measured[name]) for name, word in _BYTES.items() if measured[name] is not None]
    if known:
        yield from _head("measured_bytes", "Memory of one rank, as the engine says.")
        for word, value in known:
            yield f'plimsoll_runtime_measured_bytes{{term="{word}"}} {value}'
    if measured["kvTokens"] is not None:
        yield from _head("kv_tokens", "Tokens that the KV cache holds, as the engine says.")
        yield f"plimsoll_runtime_kv_tokens {measured['kvTokens']}"
    if measured["compileCache"] is not None:
        yield from _head("compile_cache_warm", "Whether the compiled model came from the cache.")
        yield f"plimsoll_runtime_compile_cache_warm {int(measured['compileCache'] == 'warm')}"
    if facts["adapters"] is not None:
        yield from _head("adapters", "LoRA adapters as declared, by how far they are.")
        for state in ADAPTER_STATES:
            count = sum(1 for one in facts["adapters"] if one["state"] == state)
            yield f'plimsoll_runtime_adapters{{state="{state}"}} {count}'
    yield from _troubles(facts)


def _troubles(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["warnings"]:
        yield from _head("warning", "What is not as the plan counts on, and ends nothing.")
        for warning in facts["warnings"]:
            yield f'plimsoll_runtime_warning{{word="{warning["word"]}"}} 1'
    if facts["failure"] is not None:
        yield from _head("failure", "Why the engine ended.")
        yield f'plimsoll_runtime_failure{{word="{facts["failure"]["word"]}"}} 1'


def _head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP plimsoll_runtime_{name} {text}"
    yield f"# TYPE plimsoll_runtime_{name} gauge"
