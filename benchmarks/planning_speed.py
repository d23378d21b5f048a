"""How long a plan takes on fleets of 100, 1,000 and 10,000 mixed nodes, and 100 resources on one: time and memory as they grow.

Before each plan one node and one pod change, and the inventory is brought up to date as the operator would do it: that is
the parse of the change, and the plan follows. Nothing is handed from one plan to the next but what the operator has too
(facts of models and engines, and what they alone decide); every plan is another deployment's, and the first one of each
model is counted apart. Times are of the processor: plans wait for nothing, and other programs of the machine are none of
their business.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from arguments import count
from fleets import MixedFleet, mixed_fleet
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.models import lookup
from plimsoll.planning.fleet import Request, plan_fleet
from plimsoll.planning.planner import PlanFacts, plan

SIZES = (100, 1_000, 10_000)
TOGETHER = 100
MODELS = (
    ("meta-llama/Llama-3.1-8B-Instruct", "chat"),
    ("Qwen/Qwen3-32B", "tool-calling"),
    ("meta-llama/Llama-3.3-70B-Instruct", "chat"),
    ("Qwen/Qwen3-30B-A3B", "chat-shared-prompts"),
    ("openai/gpt-oss-120b", "reasoning"),
    ("Qwen/Qwen3-235B-A22B", "batch"),
    ("deepseek-ai/DeepSeek-R1", "chat"),
    ("google/gemma-3-27b-it", "long-documents"),
)


def deployment(number: int) -> LLMDeployment:
    """Deployments that all differ, with and without a declared load."""
    model, preset = MODELS[number % len(MODELS)]
    workload: dict[str, Any] = {"preset": preset}
    if number % 3 == 1:
        workload["concurrency"] = 20 + 7 * (number % 40)
    metadata = {"name": f"llm-{number:03d}", "namespace": f"team-{number % 10}"}
    return LLMDeployment.model_validate(
        {"metadata": metadata, "spec": {"model": {"source": model}, "workload": workload}}
    )


def facts_of(asked: LLMDeployment) -> PlanFacts:
    return PlanFacts(model=lookup(asked.spec.model.source))


def filled(objects: MixedFleet) -> Fleet:
    fleet = Fleet()
    for node in objects.nodes:
        fleet.add_node(node)
    for pod in objects.pods:
        fleet.add_pod(pod)
    fleet.pods_are_known()
    return fleet


def changes(fleet: Fleet, objects: MixedFleet, count: int) -> Iterator[Inventory]:
    """The inventory after one node and one pod changed, again and again."""
    nodes = [node for node in objects.nodes if not node["spec"].get("unschedulable")]
    pods = [pod for pod in objects.pods if pod["metadata"]["name"].startswith("worker")]
    for number in range(count):
        # Away and back again, each pair of plans elsewhere in the fleet.
        node, pod = nodes[number // 2 * 37 % len(nodes)], pods[number // 2 * 53 % len(pods)]
        if number % 2:
            fleet.add_node(node)
            fleet.add_pod(pod)
        else:
            fleet.add_node({**node, "spec": {**node["spec"], "unschedulable": True}})
            fleet.remove_pod(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        yield fleet.inventory()


def measure(nodes: int, repeats: int) -> dict[str, float]:
    """One size, in a process of its own, so that its memory is its own."""
    objects = mixed_fleet(nodes)
    gc.collect()
    began = time.process_time()
    fleet = filled(objects)
    fleet.inventory()
    parse = time.process_time() - began
    asked = [deployment(number) for number in range(len(MODELS) + repeats)]
    facts = [facts_of(each) for each in asked]
    plans, updates = [], []
    began = time.process_time()
    pools = 0
    for each, known, inventory in zip(asked, facts, changes(fleet, objects, len(asked)), strict=True):
        updates.append(time.process_time() - began)
        began = time.process_time()
        plan(each, inventory, known)
        plans.append(time.process_time() - began)
        pools = len(inventory.pools)
        began = time.process_time()
    requests = [Request(deployment=each, facts=facts_of(each)) for each in map(deployment, range(TOGETHER))]
    began = time.process_time()
    plan_fleet(requests, fleet.inventory())
    together = time.process_time() - began
    first, plans = plans[: len(MODELS)], plans[len(MODELS) :]
    return {
        "plan_ms": round(statistics.median(plans) * 1000, 2),
        "first_ms": round(statistics.median(first) * 1000, 2),
        "plan_p90_ms": round(statistics.quantiles(plans, n=10)[-1] * 1000, 2),
        "plan_max_ms": round(max(plans) * 1000, 2),
        "change_ms": round(statistics.median(updates) * 1000, 2),
        "parse_ms": round(parse * 1000, 1),
        "pools": pools,
        "together": TOGETHER,
        "together_ms": round(together * 1000, 1),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.add_argument("--repeats", type=count, default=48, help="plans of each size (default 48)")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.repeats)))
        return 0
    found: dict[str, dict[str, float]] = {}
    for size in SIZES:
        command = [sys.executable, __file__, "--only", str(size), "--repeats", str(options.repeats)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this very file
        found[str(size)] = json.loads(done.stdout)
    if options.json:
        print(json.dumps({"by_nodes": found}))
        return 0
    print(
        f"{'nodes':>7} {'pools':>6} {'plan ms':>9} {'first':>8} {'p90':>8} {'max':>8} {'change ms':>10} {'parse ms':>9} {'100 plans ms':>13} {'RSS MB':>8}"
    )
    for nodes, row in found.items():
        print(
            f"{nodes:>7} {row['pools']:>6} {row['plan_ms']:>9} {row['first_ms']:>8} {row['plan_p90_ms']:>8} {row['plan_max_ms']:>8} "
            f"{row['change_ms']:>10} {row['parse_ms']:>9} {row['together_ms']:>13} {row['rss_mb']:>8}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
