"""`python -m kube.measure --owners 1000`: what the index of children and its writers cost, on a control plane of its own.

Each owner has five children. They are written by the applier, all owners at once; then a process of its own sees them from
nothing. Deployments stand at 0 replicas, so that what is measured is the door and not the making of pods.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from cluster import Cluster
from common import ROOT
from kube.things import Seen, family
from plimsoll.api.config import OperatorConfig
from plimsoll.kube.credentials import Access
from plimsoll.kube.door import Door
from plimsoll.kube.sight import Sight
from plimsoll.objects import Owner

NAMESPACE = "default"


async def write(kubeconfig: str, owners: int) -> dict[str, float]:
    """All children of all owners. The owners themselves are made up, and so are their uids: garbage collection is off."""
    async with Door(await Access.find(file=kubeconfig)) as door:
        seen = Seen(door)
        seen.children.start()
        await seen.children.synced()
        all_owners = [Owner(NAMESPACE, f"llm-{index:05}", f"uid-{index:05}") for index in range(owners)]
        began, cpu = time.monotonic(), time.process_time()
        applied = await asyncio.gather(*(seen.applier.apply(one, family(one)) for one in all_owners))
        took = time.monotonic() - began
        incomplete = [one for one in applied if not one.complete]
        assert not incomplete, f"{len(incomplete)} are not complete: {incomplete[0]}"
        await asyncio.sleep(1)
        found = {
            "s": round(took, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
            "most_in_flight": door.calls.most_in_flight,
            "woken": seen.woken.total(),
        }
        began = time.monotonic()
        again = await asyncio.gather(*(seen.applier.apply(one, family(one)) for one in all_owners))
        found["again_s"] = round(time.monotonic() - began, 2)
        found["again_writes"] = sum(len(one.written) for one in again)
        await seen.children.stop()
        return found


async def see(kubeconfig: str) -> dict[str, float]:
    """From nothing to all that there is, in this process."""
    empty = _rss_mb()
    woken: set[str] = set()
    async with Door(await Access.find(file=kubeconfig)) as door:
        began, cpu = time.monotonic(), time.process_time()
        sight = Sight(door, OperatorConfig(), woken.add, lambda: None)
        await sight.start()
        found = {
            "children": len(sight.children),
            "s": round(time.monotonic() - began, 2),
            "cpu_s": round(time.process_time() - cpu, 2),
            "empty_mb": empty,
            "peak_mb": _peak_mb(),
            "rss_mb": _rss_mb(),
            "woken": len(woken),
        }
        await sight.stop()
        return found


def _rss_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024


def _peak_mb() -> int:
    """Not by getrusage, which hands a parent's peak on to its children."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m kube.measure", description=__doc__)
    parser.add_argument("--owners", type=int, default=1000)
    parser.add_argument("--see", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.see:
        print(json.dumps(asyncio.run(see(chosen.see))))
        return
    with Cluster() as cluster:
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        # Children of owners that do not exist are garbage, and what would collect them is not measured here.
        cluster.processes.kill("kube-controller-manager")
        file = str(cluster.kubeconfig)
        print("write", json.dumps(asyncio.run(write(file, chosen.owners))), flush=True)
        command = [sys.executable, "-m", "kube.measure", "--see", file]
        print("see", subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


if __name__ == "__main__":
    main()
