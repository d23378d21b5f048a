"""How long a replica may take to start and to end: probes, the engine's own limits and the grace period follow from it.

These are limits and no predictions. A limit that is too long only makes an alarm late, while one that is too short has a start killed
again and again. They are decided once for a set and stay as they are.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.workload import TokenPercentiles
from plimsoll.planning.plan import PlanSet

BESIDE_LOADING_SECONDS: Final = 300
"""Seconds for imports, compilation with an empty cache, profiling and graphs. A start of 277 s was published for 35B on one GPU, most of it
for these."""
HUB_WAIT_SECONDS: Final = 330
"""How long a hub may have a start wait that has asked for too much: they count over 5 minutes, and the supervisor heeds them for that long."""
PULL_SECONDS: Final = 1200
"""Seconds for pulling the image, which has some 10 GB, beside the engine's start, before a rollout counts as stuck."""
BYTES_PER_SECOND: Final = {"hub": 50_000_000, "volume": 100_000_000, "node": 200_000_000}
"""How fast weights are read at least: half of a gigabit line to a hub, a shared file system at its base rate, a disk of the node. Where it
is slower, as is common enough, users set rollout.deadlineSeconds."""
LEAST_DRAIN, MOST_DRAIN, UNKNOWN_DRAIN = 30, 600, 120
"""Seconds for running answers to finish: the least, the most, and where no prediction is known."""
TAIL: Final = 4
"""How many times as long as a typical answer a long one is, where no percentile is declared."""

LEAST_WAIT, MOST_WAIT = 600, 86_400
"""Seconds that a gateway waits for an answer: at least as long as OpenAI's own clients do, at most as long as a gateway may be told to."""
WAITING: Final = 2
"""How many times as long as it then takes an answer may take that waits first."""
UNKNOWN_TPOT_MS: Final = 100
"""Milliseconds a token where no prediction is known: slower than most people read."""


def reads_from(spec: LLMDeploymentSpec) -> str:
    """Where the weights are read from when a pod starts: hub, volume or node."""
    weights = spec.storage.weights
    if spec.model.scheme == "pvc" or (weights is not None and weights.is_read_only):
        return "volume"
    if spec.model.scheme in ("oci", "path") or (weights is not None and weights.image is not None):
        return "node"
    return "hub"


def start_seconds(spec: LLMDeploymentSpec, weight_bytes: int) -> int:
    """How long a start may take; the user's deadline where that is longer, so that no probe is stricter."""
    source = reads_from(spec)
    waits = HUB_WAIT_SECONDS if source == "hub" else 0
    computed = BESIDE_LOADING_SECONDS + waits + ceil(weight_bytes / BYTES_PER_SECOND[source])
    return max(computed, spec.rollout.deadline_seconds or 0)


def drain_seconds(spec: LLMDeploymentSpec, chosen: PlanSet) -> int:
    """Seconds for running answers to finish: the user's, else as long as a long answer takes at the slow end of the prediction."""
    if spec.rollout.drain_seconds is not None:
        return spec.rollout.drain_seconds
    return min(MOST_DRAIN, max(LEAST_DRAIN, answer_seconds(spec, chosen) or UNKNOWN_DRAIN))


def answer_seconds(spec: LLMDeploymentSpec, chosen: PlanSet) -> int | None:
    """Seconds that a long answer takes; None without a prediction."""
    if chosen.performance is None:
        return None
    tokens = long_length(spec.workload.output_tokens)
    if tokens is None:
        tokens = TAIL * chosen.load.output_tokens if chosen.load.generates else 1
    tokens = min(tokens, chosen.settings.max_model_len)
    return ceil((chosen.performance.ttft_ms.high + tokens * chosen.performance.tpot_ms.high) / 1000)


def wait_seconds(spec: LLMDeploymentSpec, chosen: PlanSet) -> int:
    """How long a gateway waits for a whole answer. It guards against requests that hang, so it is longer than any answer that the engine
    would end: of the whole context, or of many times the tokens that are declared, as even a p99 is passed by one in a hundred."""
    context, declared = chosen.settings.max_model_len, long_length(spec.workload.output_tokens)
    tokens = min(context, TAIL * declared) if declared else context
    told = chosen.performance
    first, each = (0.0, UNKNOWN_TPOT_MS) if told is None else (told.ttft_ms.high, told.tpot_ms.high)
    longest = first + (tokens * each if chosen.load.generates else 0)
    return min(MOST_WAIT, max(LEAST_WAIT, WAITING * ceil(longest / 1000)))


def long_length(length: TokenPercentiles | None) -> int | None:
    """Tokens of a long answer by what is declared; None where nothing is."""
    if length is None:
        return None
    return length.p99 or length.p95 or (length.p50 or 0) * TAIL or None
