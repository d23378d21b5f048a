"""Rendered sets under Kubernetes' own controllers on simulated nodes: pods find nodes, ranks are told, requests reach leaders alone."""

from __future__ import annotations

from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.api import Object
from cluster.fleet import read_fleet, ready_fleets
from common import eventually
from plimsoll import names
from plimsoll.facts.models import lookup
from plimsoll.facts.snapshot import read_snapshot
from plimsoll.kube.kinds import path_of
from plimsoll.planning.plan import Plan
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.render.sets import owner_of, workload
from plimsoll.render.shared import surroundings
from tests.planning.asking import R1
from tests.render.building import config, frozen, resource

CASES: Final[dict[str, tuple[str, dict[str, Any], int]]] = {
    "one pod on GPUs": ("h100", {"source": "Qwen/Qwen3-32B", "replicas": 3}, 1),
    "a group over nodes": ("h100", {"source": R1}, 2),
    "slices of a GPU": ("a100-mig", {"source": "Qwen/Qwen3-0.6B"}, 1),
    "another vendor": ("mi300x", {"source": "Qwen/Qwen3-32B"}, 1),
    "cores": ("cpu", {"source": "Qwen/Qwen3-0.6B", "topology": {"cpu": {}}}, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_set_runs_where_it_was_planned_and_its_leaders_are_reached(
    cluster: Cluster, namespace: str, case: str
) -> None:
    fleet, said, least = CASES[case]
    with cluster.fleet(read_fleet(fleet)):
        made = start(cluster, namespace, fleet, said)
        lead = made.sets[0]
        assert lead.pods_per_replica >= least
        wanted = lead.replicas * lead.pods_per_replica
        pods = f"/api/v1/namespaces/{namespace}/pods"
        assert eventually(lambda: len(running(cluster, pods)) == wanted), [
            one["status"] for one in cluster.api.items(pods)
        ]
        found = running(cluster, pods)
        leaders = [one for one in found if label(one, names.LABEL_LEADER) == "true"]
        assert len(leaders) == lead.replicas
        assert sorted(rank(one) for one in found) == sorted(
            number for number in range(lead.pods_per_replica) for _ in range(lead.replicas)
        )
        addresses = {one["status"]["podIP"] for one in leaders}
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        assert eventually(lambda: served(cluster, slices, "chat") == addresses)
        if lead.pods_per_replica > 1:
            everyone = {one["status"]["podIP"] for one in found}
            assert eventually(lambda: served(cluster, slices, "chat-headless") == everyone)


def start(cluster: Cluster, namespace: str, fleet: str, said: dict[str, Any]) -> Plan:
    asked = resource(**said, namespace=namespace)
    body = asked.to_dict() | {"metadata": {"name": asked.name, "namespace": namespace}}
    stored = cluster.api.create(f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURAL}", body)
    asked = resource(**said, namespace=namespace, uid=stored["metadata"]["uid"])
    inventory = read_snapshot(ready_fleets()[fleet].read_bytes()).inventory()
    made = plan(asked, inventory, PlanFacts(model=lookup(asked.spec.model.source)))
    owner, revisions = owner_of(asked), [frozen(asked, chosen=one) for one in made.sets]
    objects = [*surroundings(asked, revisions, config(), frozenset(), stay=0)]
    for revision in revisions:
        objects += [revision.manifest(owner), *workload(revision, owner, revision.entry.replicas)]
    for one in objects:
        cluster.api.apply(path_of(one.ref), dict(one.body), manager=names.MANAGER_CHILDREN, force=True)
    return made


def running(cluster: Cluster, pods: str) -> list[Object]:
    found = cluster.api.items(pods)
    return [one for one in found if one["status"].get("phase") == "Running" and one["status"].get("podIP")]


def served(cluster: Cluster, slices: str, service: str) -> set[str]:
    found = cluster.api.items(slices, labelSelector=f"kubernetes.io/service-name={service}")
    return {address for one in found for end in one.get("endpoints") or () for address in end["addresses"]}


def rank(pod: Object) -> int:
    """As the pod is told it; a replica of one pod has no other."""
    return int(label(pod, names.LABEL_RANK) or 0)


def label(pod: Object, key: str) -> str:
    return str(pod["metadata"]["labels"].get(key, ""))
