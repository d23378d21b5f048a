"""What is seen of a real cluster: sets and their pods, the fleet and what is taken of it, what is served, who else scales."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster
from cluster.api import Object
from cluster.fleet import read_fleet
from kube.conftest import Doors, doors
from kube.things import LONGEST_SECONDS, child, deployment, soon, workload
from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.observe import observe
from plimsoll.facts.serving import Serving, Stage
from plimsoll.kube.applier import Applier
from plimsoll.kube.door import Door
from plimsoll.kube.kinds import POD
from plimsoll.kube.sight import Sight
from plimsoll.objects import Owner


class Looking:
    """All that is seen, and what it has woken."""

    def __init__(self, door: Door, namespaces: tuple[str, ...] = ()) -> None:
        self.woken: Counter[str] = Counter()
        self.moved = 0
        self.sight = Sight(door, OperatorConfig(), self._wake, self._move, namespaces=namespaces)
        self.applier = Applier(door, self.sight.children)

    def _wake(self, owner: str) -> None:
        self.woken[owner] += 1

    def _move(self) -> None:
        self.moved += 1


@asynccontextmanager
async def looking(door: Doors, *namespaces: str) -> AsyncIterator[Looking]:
    async with asyncio.timeout(LONGEST_SECONDS), door() as opened:
        looks = Looking(opened, namespaces)
        await looks.sight.start()
        try:
            yield looks
        finally:
            await looks.sight.stop()


@pytest.fixture
def owner(cluster: Cluster, namespace: str) -> Owner:
    return deployment(cluster.api, namespace)


def group(owner: Owner, number: int, pods: int = 2) -> Any:
    labels = {
        names.LABEL_DEPLOYMENT: owner.name,
        names.LABEL_SET: "0a1b2c3d",
        names.LABEL_ROLE: "serving",
        names.LABEL_GROUP: str(number),
    }
    spec = {
        "replicas": pods,
        "podManagementPolicy": "Parallel",
        "serviceName": "chat-headless",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "engine", "image": "engine:1"}]},
        },
    }
    made = child(owner, "apps/v1", "StatefulSet", f"{owner.name}-0a1b2c3d-{number}", spec=spec)
    made.body["metadata"]["labels"][names.LABEL_GROUP] = str(number)
    return made


def test_the_pods_of_a_set_are_seen_until_it_serves(cluster: Cluster, door: Doors, owner: Owner) -> None:
    async def does() -> None:
        async with looking(door) as looks:

            def seen() -> Serving:
                return looks.sight.serving(owner.key)

            assert not seen().sets
            await looks.applier.apply(owner, [workload(owner, replicas=2)])
            assert await soon(lambda: sum(len(one.pods) for one in seen().sets) == 2)
            (one,) = seen().sets
            assert (one.name, one.replicas, one.pods_per_replica) == ("chat-0a1b2c3d", 2, 1)
            with cluster.fleet(read_fleet("l40s")):
                assert await soon(lambda: seen().sets[0].ready == 2)
                assert all(pod.node and pod.created and pod.since for pod in seen().sets[0].pods)
                looks.woken.clear()
                await looks.applier.apply(owner, [workload(owner, replicas=0)])
                assert await soon(lambda: not seen().sets[0].pods)
                assert looks.woken[owner.key]

    asyncio.run(does())


def test_groups_are_counted_by_their_number(cluster: Cluster, door: Doors, owner: Owner) -> None:
    async def does() -> None:
        async with looking(door) as looks:
            await looks.applier.apply(owner, [group(owner, 0), group(owner, 2)])
            with cluster.fleet(read_fleet("l40s")):

                def ready() -> int:
                    return sum(one.ready for one in looks.sight.serving(owner.key).sets)

                assert await soon(lambda: ready() == 2)
                (one,) = looks.sight.serving(owner.key).sets
                assert (one.groups, one.replicas, one.pods_per_replica) == ((0, 2), 2, 2)
                assert sorted((pod.group, pod.rank) for pod in one.pods) == [(0, 0), (0, 1), (2, 0), (2, 1)]

    asyncio.run(does())


def gpu_pod(name: str, gpus: int, **labels: str) -> Object:
    asked = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec = {"containers": [{"name": "engine", "image": "engine:1", "resources": asked}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def test_the_fleet_is_what_a_look_from_nothing_gives_whatever_happens_to_it(
    cluster: Cluster, door: Doors, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def looked() -> Any:
        return observe(cluster.api.items("/api/v1/nodes"), cluster.api.items("/api/v1/pods"))

    async def does() -> None:
        async with looking(door) as looks:
            fleet = looks.sight.fleet

            async def same() -> bool:
                return await soon(lambda: fleet.fleet.inventory() == looked())

            assert not fleet.notes
            with cluster.fleet(read_fleet("h100")):
                assert await same()
                assert await soon(lambda: looks.moved > 0)
                free = sum(pool.free_devices for pool in fleet.fleet.inventory().pools)
                cluster.api.create(pods, gpu_pod("others", 4))
                serving = {
                    names.LABEL_ROLE: "serving",
                    names.LABEL_DEPLOYMENT: "chat",
                    names.LABEL_SET: "0a1b2c3d",
                }
                cluster.api.create(pods, gpu_pod("ours", 2, **serving))
                assert await soon(
                    lambda: sum(pool.free_devices for pool in fleet.fleet.inventory().pools) == free - 6
                )
                assert await same()
                held = [pool.held for pool in fleet.fleet.inventory().pools if pool.held]
                assert held == [{f"{namespace}/chat": 2}]
                version = fleet.version
                for name in ("others", "ours"):
                    cluster.api.delete(f"{pods}/{name}?gracePeriodSeconds=0")
                assert await soon(
                    lambda: sum(pool.free_devices for pool in fleet.fleet.inventory().pools) == free
                )
                assert await soon(lambda: fleet.version > version)
            assert await soon(lambda: not fleet.fleet.inventory().pools)

    asyncio.run(does())


def test_where_only_some_namespaces_may_be_seen_it_is_said(
    cluster: Cluster, door: Doors, namespace: str, owner: Owner
) -> None:
    async def does() -> None:
        async with looking(door, namespace, "default") as looks:
            assert not looks.sight.fleet.fleet.inventory().pools
            assert "node classes" in looks.sight.fleet.notes[0]
            await looks.applier.apply(owner, [workload(owner, replicas=1)])
            assert await soon(lambda: len(looks.sight.serving(owner.key).sets[0].pods) == 1)
            elsewhere = {
                names.LABEL_ROLE: "serving",
                names.LABEL_DEPLOYMENT: "chat",
                names.LABEL_SET: "0a1b2c3d",
            }
            there = cluster.new_namespace("elsewhere")
            pods = f"/api/v1/namespaces/{there}/pods"
            cluster.api.create(pods, gpu_pod("elsewhere", 1, **elsewhere))
            try:
                await asyncio.sleep(0.5)
                assert not looks.sight.serving(f"{there}/chat").sets
            finally:
                cluster.api.delete(f"{pods}/elsewhere?gracePeriodSeconds=0")

    asyncio.run(does())


def crd(plural: str, kind: str, group: str, version: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


@pytest.fixture
def bare(crd_file: Path) -> Iterator[Cluster]:
    """Of a test's own, since others' APIs come and go in it."""
    with Cluster() as running:
        running.install(crd_file)
        yield running


def test_an_api_is_known_soon_after_it_appears_and_after_it_goes(bare: Cluster) -> None:
    cluster, owner = bare, deployment(bare.api, "default")
    monitors = crd("podmonitors", "PodMonitor", "monitoring.coreos.com", "v1")
    known = ("monitoring.coreos.com", "PodMonitor")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    async def does() -> None:
        async with looking(doors(str(cluster.kubeconfig))) as looks:
            assert known not in looks.sight.capabilities
            moved = looks.moved
            cluster.api.create(path, monitors)
            try:
                assert await soon(lambda: known in looks.sight.capabilities)
                assert await soon(lambda: looks.moved > moved)
                monitor = child(owner, "monitoring.coreos.com/v1", "PodMonitor", "chat", spec={"a": 1})
                applied = await looks.applier.apply(owner, [monitor])
                assert applied.written == [monitor.ref]
                assert not (await looks.applier.apply(owner, [monitor])).written
                looks.woken.clear()
                edited = f"/apis/monitoring.coreos.com/v1/namespaces/{owner.namespace}/podmonitors/chat"
                cluster.api.patch(edited, {"spec": {"a": 2}})
                assert await soon(lambda: looks.woken[owner.key] > 0)
            finally:
                cluster.api.delete(f"{path}/{monitors['metadata']['name']}")
            assert await soon(lambda: known not in looks.sight.capabilities)
            assert await soon(lambda: not looks.sight.children.of(owner.key))
            assert await soon(lambda: not looks.sight.problems)

    asyncio.run(does())


def test_an_autoscaler_of_a_deployment_is_seen(cluster: Cluster, door: Doors, owner: Owner) -> None:
    collection = f"/apis/autoscaling/v2/namespaces/{owner.namespace}/horizontalpodautoscalers"
    target = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": owner.name}
    body: Object = {"metadata": {"name": "up"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}

    async def does() -> None:
        async with looking(door) as looks:
            cluster.api.create(collection, body)
            assert await soon(
                lambda: looks.sight.serving(owner.key).scalers == ("HorizontalPodAutoscaler up",)
            )
            assert looks.woken[owner.key] == 1
            other = {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}}}
            cluster.api.patch(f"{collection}/up", other)
            assert await soon(lambda: not looks.sight.serving(owner.key).scalers)

    asyncio.run(does())


def test_a_pod_that_is_stuck_says_why(cluster: Cluster, door: Doors, owner: Owner) -> None:
    async def does() -> None:
        async with looking(door) as looks:
            await looks.applier.apply(owner, [workload(owner, replicas=1)])

            def stage() -> Stage | None:
                pods = [pod for one in looks.sight.serving(owner.key).sets for pod in one.pods]
                return pods[0].stage if pods and pods[0].reason else None

            assert await soon(lambda: stage() is Stage.UNSCHEDULED)
            (pod,) = looks.sight.serving(owner.key).sets[0].pods
            assert pod.reason == "Unschedulable"
            assert "available" in pod.message
            path = POD.path(owner.namespace, pod.name)
            waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
            status = {
                "containerStatuses": [
                    {
                        "name": "engine",
                        "image": "engine:1",
                        "imageID": "",
                        "ready": False,
                        "restartCount": 0,
                        "state": {"waiting": waiting},
                    }
                ]
            }
            cluster.api.create(
                f"{path}/binding",
                {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": "nowhere"}},
            )
            cluster.api.patch(f"{path}/status", {"status": status})
            assert await soon(lambda: stage() is Stage.FAILED)
            (pod,) = looks.sight.serving(owner.key).sets[0].pods
            assert (pod.reason, pod.message) == ("ImagePullBackOff", "Back-off pulling image")

    asyncio.run(does())
