"""What one engine is told, as values: the words of its command line, and the pool and step times that follow from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from plimsoll.facts.engines import EngineFacts, engine_facts
from plimsoll.simulate.interference import NONE, Interference
from plimsoll.simulate.steps import Limits, StepTimes

TIMES: Final = StepTimes(
    decode=(0.0, *(0.01 + 0.0002 * n for n in range(1, 1025))),
    kv_token=2e-8,
    chunk=0.004,
    prompt_token=4e-5,
    seen_token=1e-9,
)
"""Of no engine in particular: a model of some 8B parameters on one GPU, in round numbers."""
LIMITS: Final = Limits(
    blocks=2000, block_size=16, max_num_seqs=64, max_num_batched_tokens=2048, max_model_len=8192
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """`times` and `limits` are the engine model's."""

    model: str = "standin"
    """The name it serves under."""
    version: str = "0.33.0"
    times: StepTimes = TIMES
    limits: Limits = LIMITS
    interference: Interference = NONE
    cache: Mapping[str, str] = field(default_factory=dict)
    """What the flags say of the cache, beyond what the limits do."""
    drain_s: float = 0.0
    """--shutdown-timeout."""
    closes: bool = False
    """Whether an answer closes its connection: --middleware, with the supervisor's."""

    @property
    def facts(self) -> EngineFacts:
        return engine_facts("vllm", self.version)

    def cache_labels(self) -> dict[str, str]:
        """Of `cache_config_info`: the engine's own answer to how much cache it got."""
        limits = self.limits
        labels = {
            "block_size": str(limits.block_size),
            "cache_dtype": "auto",
            "enable_prefix_caching": str(limits.prefix_caching),
            "gpu_memory_utilization": f"{self.facts.utilization_default:g}",
            "is_attention_free": "False",
            "kv_cache_memory_bytes": "None",
            "num_cpu_blocks": "None",
            "num_gpu_blocks": str(limits.blocks),
            "num_gpu_blocks_override": "None",
            "prefix_caching_hash_algo": "sha256",
            "sliding_window": "None",
            "user_specified_block_size": "False",
            **self.cache,
        }
        if "admissionRejections" in self.facts.metrics:
            labels["kv_cache_size_tokens"] = str(limits.kv_tokens)
            labels["kv_cache_max_concurrency"] = f"{limits.kv_tokens / limits.max_model_len:g}"
        return labels


def write_times(times: StepTimes, interference: Interference = NONE) -> str:
    """As JSON, for a stand-in engine in a process of its own."""
    return json.dumps({**asdict(times), "interference": asdict(interference)})


def read_times(text: str) -> tuple[StepTimes, Interference]:
    data = json.loads(text)
    interference = Interference(**data.pop("interference", {}))
    return StepTimes(**{**data, "decode": tuple(data["decode"])}), interference
