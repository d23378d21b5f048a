"""The chart on a real API server: what helm renders is accepted, its pods are restricted, and its rights are those that are used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from chart import GOLDEN, VALUES, golden, objects, rendered
from cluster import Cluster
from cluster.fleet import read_fleet
from cluster.others import OTHERS
from common import LONG_SECONDS, ROOT, eventually
from every_kind import GATEWAY, children, owner_of
from plimsoll import names
from plimsoll.kube.credentials import Access
from plimsoll.kube.door import Door
from plimsoll.kube.events import SERIES_SECONDS, Event, Events
from plimsoll.kube.kinds import CHILDREN
from plimsoll.kube.pace import Pace
from plimsoll.objects import Owner
from rights import account_of, admins_file, granted, installed, used
from turns.crashes import LARGE, WIDE
from turns.running import Desk, Operator

LEADER_WORKER_SETS: Final = "leaderworkerset.x-k8s.io/v1/leaderworkersets"
KINDS: Final = (
    "gateway.networking.k8s.io/v1/httproutes", "inference.networking.k8s.io/v1/inferencepools",
    "monitoring.coreos.com/v1/podmonitors", "networking.k8s.io/v1/networkpolicies", "v1/persistentvolumeclaims",
    "networking.k8s.io/v1/ingresses", LEADER_WORKER_SETS, "apps/v1/statefulsets",
    "resource.k8s.io/v1/resourceclaimtemplates",
)  # fmt: skip
GOING: Final = KINDS[6:]
ELSEWHERE: Final[dict[str, Any]] = {
    "networking": {"service": {"name": "door"}},
    "scheduling": {"serviceAccount": "default"},
}
TRUSTED: Final = {"trust": {"serviceAccounts": [{"namespace": "users", "names": ["default"]}]}}
TOLD_AGAIN_SECONDS: Final = SERIES_SECONDS + 1


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    """With every API that the operator may use, and a record of who called what."""
    with Cluster(audit=True) as running:
        running.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        running.install_others(*OTHERS)
        yield running


@pytest.mark.parametrize("name", VALUES)
def test_the_chart_renders_what_it_did(name: str) -> None:
    assert golden(VALUES[name]) == (GOLDEN / f"{name}.yaml").read_text(), (
        "run `python e2e/chart.py`, and look"
    )


@pytest.mark.parametrize("name", VALUES)
def test_what_is_rendered_is_accepted(served: Cluster, name: str) -> None:
    text = rendered(VALUES[name])
    for each in {one["metadata"].get("namespace") for one in objects(text)} - {None}:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}}
        served.api.apply(f"/api/v1/namespaces/{each}", body, force=True)
    # The CRD is there already, of another manager: what is in the way of one is none of the chart's faults.
    done = served.kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--force-conflicts",
        "--validate=strict",
        "-f",
        "-",
        input=text,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", VALUES)
def test_the_operators_pods_pass_where_only_restricted_ones_may_be(served: Cluster, name: str) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = served.api.create(
        "/api/v1/namespaces", {"metadata": {"generateName": "safe-", "labels": label}}
    )
    place = namespace["metadata"]["name"]
    text = rendered(VALUES[name], namespace=place)
    (deployment,) = (one for one in objects(text) if one["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    # Whether the account is there is another admission's matter.
    pod: dict[str, Any] = {
        "metadata": {"generateName": "operator-"},
        "spec": {**spec, "serviceAccountName": "default"},
    }
    assert eventually(lambda: bool(served.api.items(f"/api/v1/namespaces/{place}/serviceaccounts")))
    made = served.api.create(f"/api/v1/namespaces/{place}/pods", pod, dryRun="All")
    assert made["spec"]["containers"][0]["image"]


def lives(desk: Desk) -> None:
    """One resource from its creation to its end, and beside it one for every optional API."""
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    before = (desk.get()["metadata"]["generation"], desk.children())
    for _ in range(10):
        desk.apply()
    assert (desk.get()["metadata"]["generation"], desk.children()) == before, "syncs that change nothing"
    desk.apply(workload={"contextTokens": 8192})
    assert eventually(lambda: desk.condition("Progressing")[1] == "RolledOut")
    done = desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=2")
    assert done.returncode == 0, done.stderr
    assert eventually(lambda: desk.get()["status"].get("ready") == "2/2")
    desk.cluster.api.delete(desk.path())
    assert eventually(lambda: desk.deployments() == {})


def reads(desk: Desk) -> None:
    """A model that only its owner's Secret opens, and then another: the pod that would read it is made, and goes."""

    def readers() -> int:
        return sum(one["metadata"]["labels"].get(names.LABEL_ROLE) == "facts" for one in desk.pods())

    desk.apply("private", model={"source": "hf://acme/mine", "tokenSecret": {"name": "hub"}})
    assert eventually(lambda: readers() == 1)
    desk.apply("private")
    assert eventually(lambda: readers() == 0)
    desk.cluster.api.delete(desk.path("private"))


def moves(desk: Desk) -> None:
    """What stands by another name, or is somebody else's now, or is not asked for any more, goes though its owner stays."""
    collections, plan = ("v1/configmaps", "v1/serviceaccounts", "v1/services"), "moved-plan"

    def there() -> list[str]:
        return [
            f"{collection}/{one['metadata']['name']}"
            for collection in collections
            for one in desk.items(collection)
            if owner_of(one) == "moved" and one["metadata"]["name"] != plan
        ]

    desk.apply("moved", replicas=0, chatTemplate={"inline": "{{ messages }}"})
    assert eventually(lambda: len(there()) == len(collections), LONG_SECONDS), there()
    desk.apply("moved", replicas=0, **ELSEWHERE)
    assert eventually(lambda: there() == ["v1/services/door"], LONG_SECONDS), there()
    desk.cluster.api.delete(desk.path("moved"))


async def repeats(account: Path, owner: Owner) -> None:
    """What is told again when a while has passed is counted where it was told first."""
    now = [0.0]
    async with Door(await Access.find(file=str(account))) as door:
        events = Events(door, "pod-0", pace=Pace(now=lambda: now[0]))
        sends = asyncio.create_task(events.run())
        for _ in range(2):
            events.tell(Event(owner, reason="PlanChosen", note="2 x H100", action="Plan"))
            await events.flush()
            now[0] += TOLD_AGAIN_SECONDS
        sends.cancel()
        assert events.dropped == 0


def loses(desk: Desk) -> None:
    """Of each kind that is there one child loses the labels by which it is seen: it is looked up by its name, and found to be ours."""
    for kind in CHILDREN:
        for name in sorted(children(desk, kind))[:1]:
            path = kind.path(desk.namespace, name)
            labels = dict.fromkeys((names.LABEL_MANAGED_BY, names.LABEL_DEPLOYMENT))
            desk.cluster.api.patch(path, {"metadata": {"labels": labels}}, fieldManager="by-hand")
            assert eventually(partial(is_labelled, desk, path), LONG_SECONDS), path


def is_labelled(desk: Desk, path: str) -> bool:
    return names.LABEL_MANAGED_BY in (desk.cluster.api.get(path)["metadata"].get("labels") or {})


def test_the_operator_needs_every_right_that_the_chart_gives_and_no_other(
    served: Cluster, tmp_path: Path
) -> None:
    values, place = VALUES["default"], "plimsoll-rights"
    served.api.create("/api/v1/namespaces", {"metadata": {"name": place}})
    served.api.create("/api/v1/namespaces", {"metadata": {"name": "users"}})
    since = served.audit.mark()
    account = installed(served, values, place)
    user = f"system:serviceaccount:{place}:load-plimsoll"
    file = admins_file(values, tmp_path)
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | TRUSTED))
    args = (f"--config={file}", f"--lease-namespace={place}")
    desk = Desk(served, "users")
    with (
        served.fleet(read_fleet("h200")),
        served.fleet(read_fleet("h100-dra")),
        Operator(served, tmp_path, kubeconfig=account, args=args) as operator,
    ):
        lives(desk)
        reads(desk)
        moves(desk)
        missing = every_api(desk)
        asyncio.run(repeats(account, Owner("users", "chat", "of-one-that-was")))
        assert operator.stop() == 0, operator.tail()
    refused = served.audit.entries(user=user, codes={401, 403}, since=since)
    assert [(one.call.verb, one.call.resource, one.call.namespace) for one in refused] == []
    assert missing == []
    assert granted() - used(served, user, since) == set()


def test_in_namespaces_alone_roles_there_are_enough_and_nodes_are_those_that_the_admin_declares(
    served: Cluster, tmp_path: Path
) -> None:
    values, place = VALUES["namespaced"], "plimsoll-narrow"
    config = yaml.safe_load(values.read_text())
    for name in (place, *config["namespaces"]):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        served.api.apply(f"/api/v1/namespaces/{name}", body, force=True)
    since = served.audit.mark()
    account = installed(served, values, place)
    user = f"system:serviceaccount:{place}:{account_of(objects(rendered(values, namespace=place)))}"
    args = (
        f"--config={admins_file(values, tmp_path)}",
        f"--lease-namespace={place}",
        *(f"--namespace={name}" for name in config["namespaces"]),
    )
    with (
        served.fleet(read_fleet("h100")),
        Operator(served, tmp_path, kubeconfig=account, args=args) as operator,
    ):
        for name in config["namespaces"]:
            desk = Desk(served, name)
            desk.apply()
            assert desk.says("Ready", "True", "Serving"), operator.tail()
            assert desk.condition("Placed") == ("True", "NodeDeclared")
            served.api.delete(desk.path())
            assert eventually(lambda desk=desk: desk.deployments() == {})  # type: ignore[misc]
        assert operator.stop() == 0, operator.tail()
    refused = served.audit.entries(user=user, codes={401, 403}, since=since)
    assert [(one.call.verb, one.call.resource, one.call.namespace) for one in refused] == []


def every_api(desk: Desk) -> list[str]:
    """Resources that ask for what the first did not, by name so that it goes again: each has an end."""
    where = desk.namespace
    asked: dict[str, dict[str, Any]] = {
        "routed": {
            "networking": {"gateway": GATEWAY, "allowFrom": [where]},
            "storage": {"weights": {"claimTemplate": {"size": "40Gi"}}},
        },
        "open": {"networking": {"ingress": {"hosts": ["chat.example.com"]}}},
        "claiming": {"topology": {"gpuProducts": ["H100-SXM-80GB"]}},
        "wide": {"topology": WIDE, "model": LARGE},
        "grouped": {"topology": {**WIDE, "groups": "LeaderWorkerSet"}, "model": LARGE},
    }
    missing: list[str] = []
    # One after the other where both would want the same nodes: what one was promised the other is not given.
    for these in (asked.keys() - {"grouped"}, {"grouped"}):
        kinds = [kind for kind in KINDS if kind.endswith("leaderworkersets") == (these == {"grouped"})]
        for name in sorted(these):
            desk.apply(name, **asked[name])
        eventually(lambda kinds=kinds: all(desk.items(kind) for kind in kinds))  # type: ignore[misc]
        missing += [kind for kind in kinds if not desk.items(kind)]
        loses(desk)
        for name in sorted(these):
            desk.apply(name, replicas=0)
        assert eventually(lambda: not any(one["spec"]["replicas"] for one in desk.items(LEADER_WORKER_SETS)))
        for name in sorted(these):
            # Nobody who looks after a LeaderWorkerSet is here, to tell that it came to nothing: an edit has the operator look.
            desk.apply(name, replicas=0, podAnnotations={"example.com/looked-at": "again"})
        assert eventually(lambda: not any(desk.items(kind) for kind in GOING))
    return missing
