"""What policies see, in tests: replicas that say this or that."""

from typing import Any

from plimsoll.control.situation import Replica, ReplicaState
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.simulate.policies.base import Policy, View

INF = float("inf")


def view(
    now: float, *seen: dict[str, Any], pending: int = 0, silent: int = 0, least: int = 1, most: int = 20
) -> View:
    """Ready replicas that say something, some that are silent, and some on their way."""
    samples = {f"r{place}": PodSample(pod=f"r{place}", at=now - 5, **said) for place, said in enumerate(seen)}
    ready = [*samples, *(f"s{place}" for place in range(silent))]
    replicas = [Replica(id=name, state=ReplicaState.READY, since=0.0, created=0.0) for name in ready]
    replicas += [
        Replica(id=f"p{place}", state=ReplicaState.STARTING, since=now, created=now)
        for place in range(pending)
    ]
    return View(
        now=now,
        replicas=tuple(replicas),
        latest=samples,
        arrived=tuple(samples.values()),
        told=len(replicas),
        least=least,
        most=most,
    )


def kv(*fractions: float) -> list[dict[str, Any]]:
    return [{"kv_fraction": each, "running": 20.0, "waiting": 0.0, "kv_tokens": 10_000} for each in fractions]


def wish(policy: Policy, seen: View) -> int:
    wanted = policy.decide(seen)
    return seen.told if wanted is None else wanted.replicas


def latencies(count: float, ttft: float, itl: float, finished: float) -> dict[str, Any]:
    bounds = (0.1, 1.0, INF)
    return {
        "ttft": Histogram(bounds, (0.0, 0.0, count), ttft * count),
        "itl": Histogram(bounds, (0.0, 0.0, 10 * count), itl * 10 * count),
        "prompt_lengths": Histogram((INF,), (finished,), 300.0 * finished),
        "output_lengths": Histogram((INF,), (finished,), 100.0 * finished),
        "finished": finished,
        "running": 0.0,
        "waiting": 0.0,
    }
