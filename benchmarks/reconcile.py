"""What the operator costs on a real API server: from an edit to the first child, bursts, a thousand edits, hands, rest, and starts.

Everything is measured in one run beside two others on the same control plane: a direct parallel writer of the same objects
with the same door (what the API server alone costs), and kube-controller-manager's Deployments (the peer that can be
started here). Resources ask for no replicas, so that neither kubelets nor schedulers are measured. Times are of the
clock, as a person waits for them; on a loaded machine compare ratios, not seconds. The load is printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "e2e"))  # programs there find one another by bare name, as those here do

import arguments  # noqa: E402
from cluster import Cluster  # noqa: E402
from cluster.fleet import read_fleet  # noqa: E402
from glass import PATIENCE, Glass, at_once, cpu_seconds, peak_mb, percentile, percentiles  # noqa: E402
from plimsoll.kube.credentials import Access  # noqa: E402
from plimsoll.kube.door import Door, Object  # noqa: E402
from plimsoll.kube.errors import KubeError  # noqa: E402
from plimsoll.kube.kinds import CONTROLLER_REVISION, DEPLOYMENT, OWNER, Kind  # noqa: E402
from reconcile_ground import (  # noqa: E402
    KINDS,
    MANAGER,
    OBJECTS,
    PLAIN,
    REPLICA_SET,
    SPACE,
    Bench,
    Sizes,
    apply,
    content,
    create,
    glass,
    gone,
    of_the_first,
    plain_deployment,
    quiet,
    remove,
    resource,
    spent,
)
from reconcile_restored import measure_restored  # noqa: E402
from reconcile_seed import alone, seed  # noqa: E402
from turns.running import Operator  # noqa: E402

CONTEXTS: Final = (8192, 16384)


async def measure_burst(bench: Bench) -> None:
    count = bench.sizes.burst
    before = await spent(bench)
    took = await create(bench, range(count))
    await quiet(bench)
    cost = (await spent(bench)).since(before, count)
    bench.say(f"{count} in {took:.1f} s; the direct writer")
    direct = await direct_writer(bench, count)
    bench.say(f"in {direct:.1f} s; kube-controller-manager's Deployments")
    peer = await deployments(bench, count)
    bench.found["burst"] = {
        "n": count, "s": round(took, 2), "direct_writer_s": round(direct, 2), "deployments_s": round(peer, 2),
        "ratio": round(took / direct, 2), **cost,
    }  # fmt: skip


async def direct_writer(bench: Bench, count: int) -> float:
    """The children of the first resource, under other names and owned by nobody, as often as there were resources."""
    bodies = [(kind, bare(kind, item)) for kind in KINDS for item in of_the_first(bench, kind)]
    if len(bodies) != len(OBJECTS):
        raise RuntimeError(f"the first resource has {len(bodies)} children, and {len(OBJECTS)} were expected")

    def written(kind: Kind, body: Object, number: int) -> Callable[[], Awaitable[object]]:
        copied = copy.deepcopy(body)
        name = copied["metadata"]["name"] = f"{body['metadata']['name']}-{number:05}"
        return lambda: bench.door.apply(kind.path(PLAIN, name), copied, manager=MANAGER)

    calls = [written(kind, body, number) for number in range(count) for kind, body in bodies]
    async with Glass(bench.door, PLAIN, [DEPLOYMENT]):  # the same eyes as before
        took = await at_once(calls)
    for kind, _ in bodies:
        bench.cluster.api.delete(kind.collection(PLAIN))
    await gone(bench, [DEPLOYMENT, REPLICA_SET], PLAIN)
    return took


def bare(kind: Kind, item: Object) -> Object:
    """What somebody would have written; under labels that the operator does not look at."""
    metadata = item["metadata"]
    kept = {"name": metadata["name"], "namespace": PLAIN, "annotations": metadata.get("annotations") or {}}
    return {"apiVersion": kind.api_version, "kind": kind.name, **content(item), "metadata": kept}


async def deployments(bench: Bench, count: int) -> float:
    """kube-controller-manager's: until each Deployment has its ReplicaSet."""
    async with Glass(bench.door, PLAIN, [REPLICA_SET]) as seen:
        began = time.monotonic()
        made = [partial(apply, bench, plain_deployment(f"plain-{number:05}")) for number in range(count)]
        creations = asyncio.create_task(at_once(made))
        done = await seen.until(lambda: seen.of("ReplicaSet") >= count)
        await creations
    await remove(bench, DEPLOYMENT, PLAIN)
    await gone(bench, [REPLICA_SET], PLAIN)
    return done - began


async def measure_singles(bench: Bench) -> None:
    """One after the other, each beside one of the peer's: edits of idle resources, and creations."""
    edited, created, peer = [], [], []
    before = await spent(bench)
    async with glass(bench) as seen, Glass(bench.door, PLAIN, [REPLICA_SET]) as theirs:
        for number in range(bench.sizes.singles):
            name = f"llm-{number % bench.sizes.burst:05}"
            body = resource(name, workload={"contextTokens": CONTEXTS[number // bench.sizes.burst % 2]})
            began = time.monotonic()
            await apply(bench, body)
            edited.append(await seen.next_of(name, began) - began)
            name = f"one-{number:05}"
            began = time.monotonic()
            await apply(bench, resource(name))
            created.append(await seen.next_of(name, began) - began)
            name = f"plain-{number:05}"
            began = time.monotonic()
            await apply(bench, plain_deployment(name))
            peer.append(await theirs.next_of(name, began) - began)
            await asyncio.sleep(0.3)
    cost = (await spent(bench)).since(before, 2 * bench.sizes.singles)
    bench.found["single"] = {**percentiles(edited), **percentiles(created, "created_"), **cost}
    bench.found["peer"] = {"deployment_controller": percentiles(peer, "single_")}
    for number in range(bench.sizes.singles):
        bench.cluster.api.delete(OWNER.path(SPACE, f"one-{number:05}"))
    await remove(bench, DEPLOYMENT, PLAIN)
    await quiet(bench)


async def measure_edits(bench: Bench) -> None:
    """All at once; of each from its answer until its status tells of it."""
    count = min(bench.sizes.edits, bench.sizes.burst)
    asked: dict[str, tuple[int, float]] = {}
    told: dict[str, float] = {}
    path = OWNER.collection(SPACE)

    async def edit(number: int) -> None:
        name = f"llm-{number:05}"
        answer = await apply(bench, resource(name, workload={"contextTokens": 24576}))
        asked[name] = answer["metadata"]["generation"], time.monotonic()

    async def watch() -> None:
        """All are read again where a watch ended, which the server orders every few minutes."""
        while True:
            version = ""
            async for page in bench.door.pages(path):
                version = page.version
                for item in page.items:
                    note(item)
            with contextlib.suppress(KubeError):
                async for event, item in bench.door.watch(path, version):
                    if event == "MODIFIED":
                        note(item)

    def note(item: Object) -> None:
        name, generation = item["metadata"]["name"], item["metadata"]["generation"]
        observed = (item.get("status") or {}).get("observedGeneration")
        if observed == generation > before.get(name, generation):
            told.setdefault(name, time.monotonic())

    before = {one["metadata"]["name"]: one["metadata"]["generation"] for one in bench.cluster.api.items(path)}
    cost = await spent(bench)
    watching = asyncio.create_task(watch())
    began = time.monotonic()
    await at_once([partial(edit, number) for number in range(count)])
    async with asyncio.timeout(PATIENCE):
        while len(told) < count:
            await asyncio.sleep(0.05)
    watching.cancel()
    took = [told[name] - max(began, at) for name, (_, at) in asked.items()]
    await quiet(bench)
    bench.found["edits_1000"] = {
        "n": count, "s": round(max(told.values()) - began, 2), "p99_s": round(percentile(took, 0.99), 2),
        **(await spent(bench)).since(cost, count),
    }  # fmt: skip


async def measure_idle(bench: Bench) -> None:
    writes, cpu = await asyncio.to_thread(bench.operator.writes), cpu_seconds(bench.operator.process.pid)
    await asyncio.sleep(bench.sizes.idle_minutes * 60)
    bench.found["idle"] = {
        "minutes": bench.sizes.idle_minutes,
        "writes": await asyncio.to_thread(bench.operator.writes) - writes,
        "cpu_s": round(cpu_seconds(bench.operator.process.pid) - cpu, 2),
    }


async def measure_start(bench: Bench, count: int) -> None:
    """From the start of the process until each resource has had its turn."""
    bench.operator.stop()
    began = time.monotonic()
    bench.operator.start()
    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(bench.operator.metric, "plimsoll_turns_total") < count:
            await asyncio.sleep(0.1)
    took = time.monotonic() - began
    await quiet(bench)
    bench.found.setdefault("start", {})[str(count)] = {
        "s": round(took, 2),
        "rss_mb": peak_mb(bench.operator.process.pid),
        "writes": await asyncio.to_thread(bench.operator.writes),
        "cpu_s": round(cpu_seconds(bench.operator.process.pid), 2),
    }


async def measure_starts(bench: Bench, counts: Iterable[int], there: int) -> int:
    """One after the other, with more and more that is there; how many there are at the end."""
    for count in counts:
        bench.say(f"start with {count}")
        if count > there:
            if not there:
                await create(bench, range(1))
                await quiet(bench)
            bench.operator.stop()
            began = time.monotonic()
            await seed(bench, range(max(1, there), count))
            bench.say(f"{count - there} were written in {time.monotonic() - began:.0f} s")
            there = count
        await measure_start(bench, count)
    return there


AMONG: Final = {
    "single": measure_singles, "edits": measure_edits, "restored": measure_restored, "idle": measure_idle,
}  # fmt: skip
"""What is measured with as many resources there as a burst makes."""
PARTS: Final = ("burst", *AMONG, "start")


async def measure(cluster: Cluster, sizes: Sizes, parts: Iterable[str], folder: Path) -> dict[str, Any]:
    """The chosen parts, on a cluster that has the CRD and a fleet, and no operator."""
    for space in (SPACE, PLAIN):
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    access = await Access.find(file=str(cluster.kubeconfig))
    small = [count for count in sizes.start if count < sizes.burst]
    large = [count for count in sizes.start if count >= sizes.burst]
    with Operator(cluster, folder) as operator:
        # A busy machine's answers are waited for: one that is given up would end the measurement.
        async with Door(access, seconds=PATIENCE) as door:
            bench = Bench(cluster, door, sizes, operator)
            await first_turn(bench)
            there = 0
            if "start" in parts:
                with alone(bench):
                    there = await measure_starts(bench, small, there)
            if "burst" in parts:
                if there:
                    await remove(bench, OWNER, SPACE)
                    await gone(bench, [DEPLOYMENT, CONTROLLER_REVISION], SPACE)
                    await quiet(bench)
                bench.say(f"burst of {sizes.burst}")
                await measure_burst(bench)
                there = sizes.burst
            if there < sizes.burst and not AMONG.keys().isdisjoint(parts):
                bench.say(f"making {sizes.burst}")
                await create(bench, range(there, sizes.burst))
                await quiet(bench)
                there = sizes.burst
            for part, done in AMONG.items():
                if part in parts:
                    bench.say(part)
                    await done(bench)
            if "start" in parts:
                with alone(bench):
                    await measure_starts(bench, large, there)
    return {**bench.found, "machine": {"cores": os.cpu_count(), "load_1m": round(os.getloadavg()[0], 2)}}


async def first_turn(bench: Bench) -> None:
    """What is read once is read: the model's facts, templates, engines."""
    await apply(bench, resource("first"))
    async with asyncio.timeout(PATIENCE):
        while not (bench.cluster.api.get(OWNER.path(SPACE, "first")).get("status") or {}).get("conditions"):
            await asyncio.sleep(0.1)
    await remove(bench, OWNER, SPACE)
    await gone(bench, [DEPLOYMENT], SPACE)


def main() -> int:
    default = Sizes()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help=f"what is measured: some of {', '.join(PARTS)}, with commas"
    )
    parser.add_argument("--singles", type=arguments.count, default=default.singles)
    parser.add_argument("--burst", type=arguments.count, default=default.burst, help="creations at once")
    parser.add_argument(
        "--start", type=arguments.counts, default=default.start, help="resources that are there, with commas"
    )
    parser.add_argument("--edits", type=arguments.count, default=default.edits)
    parser.add_argument("--idle-minutes", type=arguments.amount, default=default.idle_minutes)
    chosen = parser.parse_args()
    parts = chosen.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"--parts: {', '.join(unknown)} is none of {', '.join(PARTS)}")
    sizes = Sizes(
        singles=chosen.singles,
        burst=chosen.burst,
        start=chosen.start,
        edits=chosen.edits,
        idle_minutes=chosen.idle_minutes,
    )
    print(f"{time.strftime('%H:%M:%S')} a cluster", file=sys.stderr, flush=True)
    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        with cluster.fleet(read_fleet("h100")):
            found = asyncio.run(measure(cluster, sizes, parts, Path(folder)))
    print(json.dumps(found, indent=None if chosen.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
