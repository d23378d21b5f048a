"""How long a replica may take to start and to end: what probes, the engine's own limits and the grace period are made of.

Both are limits and no predictions: a start that is given too long costs a late alarm, one that is given too little is
killed again and again. What was decided here is frozen with the set.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.workload import TokenPercentiles
from plimsoll.planning.plan import PlanSet

BESIDE_LOADING_SECONDS: Final = 300
"""Imports, compilation with an empty cache, profiling, graphs: 277 s were published for 35B on one GPU, most of it these."""
PULL_SECONDS: Final = 1200
"""Beside the engine's start, before a rollout counts as stuck: an engine's image has some 10 GB."""
BYTES_PER_SECOND: Final = {"hub": 50_000_000, "volume": 100_000_000, "node": 200_000_000}
"""Half a gigabit line to a hub or store; a shared file system at its base rate; a disk of the node. Slower ones are common
enough, and for them there is rollout.deadlineSeconds."""
LEAST_DRAIN, MOST_DRAIN, UNKNOWN_DRAIN = 30, 600, 120
TAIL: Final = 4
"""A long answer, in typical ones, where no percentile is declared."""


def reads_from(spec: LLMDeploymentSpec) -> str:
    """What the weights come through when a pod starts: hub, volume or node."""
    weights = spec.storage.weights
    if spec.model.scheme == "pvc" or (
        weights is not None and weights.claim is not None and weights.claim.read_only
    ):
        return "volume"
    if spec.model.scheme in ("oci", "path") or (weights is not None and weights.image is not None):
        return "node"
    return "hub"


def start_seconds(spec: LLMDeploymentSpec, weight_bytes: int) -> int:
    """The longest start that is waited for; the user's deadline where it is longer, so that no probe is stricter."""
    computed = BESIDE_LOADING_SECONDS + ceil(weight_bytes / BYTES_PER_SECOND[reads_from(spec)])
    return max(computed, spec.rollout.deadline_seconds or 0)


def drain_seconds(spec: LLMDeploymentSpec, chosen: PlanSet) -> int:
    """Time for running answers to finish: the user's, else one long answer at the slow end of the prediction."""
    if spec.rollout.drain_seconds is not None:
        return spec.rollout.drain_seconds
    return min(MOST_DRAIN, max(LEAST_DRAIN, answer_seconds(spec, chosen) or UNKNOWN_DRAIN))


def answer_seconds(spec: LLMDeploymentSpec, chosen: PlanSet) -> int | None:
    """How long a long answer takes; None where nothing is predicted."""
    if chosen.performance is None:
        return None
    tokens = _long(spec.workload.output_tokens)
    if tokens is None:
        tokens = TAIL * chosen.load.output_tokens if chosen.load.generates else 1
    tokens = min(tokens, chosen.settings.max_model_len)
    return ceil((chosen.performance.ttft_ms.high + tokens * chosen.performance.tpot_ms.high) / 1000)


def _long(length: TokenPercentiles | None) -> int | None:
    if length is None:
        return None
    return length.p99 or length.p95 or (length.p50 or 0) * TAIL or None
