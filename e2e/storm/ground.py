"""Where a story is played: a cluster with a small fleet of many kinds, an operator that may end, and a proxy that may fail it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from cluster import Cluster
from cluster.api import ApiError, Object
from cluster.faults import WRITES, Answer, Delay, FaultProxy, LoseAnswer, Refuse, Where
from cluster.faults.rules import ANY, Fault, Rule
from cluster.fleet import Fleet, fleet_of
from plimsoll import names
from plimsoll_runtime.model import Model, told
from rights import shipped
from storm.steps import Spec, Step, Story
from turns.running import Desk, Operator
from turns.test_facts_pods import CONFIG

AWAY_SECONDS: Final = 4.0
TAINT: Final = {"key": "e2e.plimsoll.dev/away", "value": "true", "effect": "NoSchedule"}
PRODUCT: Final = "nvidia.com/gpu.product"
_GROUPS: Final = {
    "deployments": "apis/apps/v1", "statefulsets": "apis/apps/v1", "controllerrevisions": "apis/apps/v1",
    "services": "api/v1", "configmaps": "api/v1", "serviceaccounts": "api/v1", "poddisruptionbudgets": "apis/policy/v1",
}  # fmt: skip


def fleet(story: Story) -> Fleet:
    machine = {"gpusPerNode": 8, "cpu": "192", "memory": "2Ti"}
    few = story.tight
    pools: list[Object] = [
        {"name": "h100", "gpuProduct": "H100-SXM-80GB", "nodes": 1 if few else 6, **machine},
        {"name": "h200", "gpuProduct": "H200-SXM-141GB", "nodes": 3 if few else 8, "rdma": True, **machine},
        {"name": "mig", "gpuProduct": "A100-SXM-80GB", "nodes": 2, **machine, "gpusPerNode": 56, "mig": "1g.10gb"},
        {"name": "claimed", "gpuProduct": "L40S-48GB", "nodes": 2 if few else 3, "via": "dra", **machine},
        {"name": "cpu", "nodes": 2 if few else 4, "cpu": "64", "memory": "256Gi"},
    ]  # fmt: skip
    return fleet_of(f"storm-{story.seed}", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


class Ground:
    """Of one story: a namespace, a fleet, operators."""

    def __init__(self, cluster: Cluster, folder: Path, proxy: FaultProxy, fleet: Fleet, story: Story) -> None:
        self.cluster = cluster
        self.fleet = fleet
        self.desk = Desk(cluster, cluster.new_namespace("storm"))
        self.disturbed = False
        """Whether turns may fail: the API server did."""
        self._folder = folder
        self._proxy = proxy
        self._leased = story.leased
        self._config: Spec = {}
        self.operators: list[Operator] = []
        self._number = 0
        self._faults: list[Rule] = []

    def perform(self, step: Step) -> None:
        """What is not there any more is passed over, as a person would."""
        act: Callable[[str, Any], None] = getattr(self, f"_{step.act}")
        try:
            act(step.about, step.value)
        except ApiError as error:
            if error.status not in (404, 409, 422, 429):
                raise
        time.sleep(step.wait)

    # --- operators

    def start_operator(self) -> None:
        self._number += 1
        folder = self._folder / f"operator-{self._number}"
        folder.mkdir()
        file = folder / "admin.json"
        said = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, **self._config}
        file.write_text(json.dumps(said))
        self.config_file = str(file)
        lease = f"--lease-namespace={self.desk.namespace}" if self._leased else "--standalone"
        own = (self.desk.namespace,) if self._leased else ()
        through = self._proxy.kubeconfig(shipped(self.cluster, *own))
        operator = Operator(self.cluster, folder, kubeconfig=through, args=(lease, f"--config={file}"))
        operator.start()
        self.operators.append(operator)

    def _operator(self, how: str, config: Any) -> None:
        if how == "second":
            if len(self.operators) == 1:
                self.start_operator()
            return
        ended = self.operators.pop(0)
        ended.stop(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        self._config = dict(config) if how == "config" else self._config
        if how == "config":
            self.end_operators()
        if not self.operators:
            self.start_operator()

    def end_operators(self) -> None:
        while self.operators:
            self.operators.pop().stop()

    def writes(self) -> int:
        return sum(int(one.writes()) for one in self.operators)

    def log(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self._folder.glob("operator-*/operator.log")))

    # --- users

    def _apply(self, name: str, spec: Any) -> None:
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": self.desk.namespace},
            "spec": spec,
        }
        self.cluster.api.apply(self.desk.path(name), body, force=True)

    def _scale(self, name: str, count: Any) -> None:
        self.cluster.api.patch(f"{self.desk.path(name)}/scale", {"spec": {"replicas": count}})

    def _delete(self, name: str, policy: Any) -> None:
        self.cluster.api.delete(f"{self.desk.path(name)}?propagationPolicy={policy}")

    def _remake(self, name: str, value: Any) -> None:
        with suppress(ApiError):
            self._delete(name, value["policy"])
        for _ in range(200):  # one that goes in the foreground is there until its children are gone
            with suppress(ApiError):
                if "deletionTimestamp" in self.desk.get(name)["metadata"]:
                    time.sleep(0.1)
                    continue
            break
        self._apply(name, value["spec"])

    def _replan(self, name: str, value: Any) -> None:
        said = {"metadata": {"annotations": {names.ANNOTATION_REPLAN: value}}}
        self.cluster.api.patch(self.desk.path(name), said)

    # --- what happens to pods and children

    def pods_of(self, name: str) -> list[Object]:
        found = [
            one
            for one in self.desk.pods()
            if (one["metadata"].get("labels") or {}).get(names.LABEL_DEPLOYMENT) == name
        ]
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    def _pods(self, name: str, how: Any) -> None:
        pods = self.pods_of(name)
        for pod in pods if how == "all" else pods[:1]:
            path = f"/api/v1/namespaces/{self.desk.namespace}/pods/{pod['metadata']['name']}"
            if how == "evict":
                self._evict(pod)
            else:
                self.cluster.api.delete(f"{path}?gracePeriodSeconds={0 if how == 'force' else 5}")

    def _evict(self, pod: Object) -> None:
        about = pod["metadata"]
        where = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}/eviction"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": about["name"], "namespace": about["namespace"]},
        }
        with suppress(ApiError):
            self.cluster.api.create(where, body)

    def _child(self, name: str, value: Any) -> None:
        collection = f"/{_GROUPS[value['kind']]}/namespaces/{self.desk.namespace}/{value['kind']}"
        label = f"{names.LABEL_DEPLOYMENT}={name}"
        for child in self.cluster.api.items(collection, labelSelector=label)[:1]:
            path = f"{collection}/{child['metadata']['name']}"
            match value["how"]:
                case "delete":
                    self.cluster.api.delete(path)
                case "unlabel":
                    labels = {names.LABEL_DEPLOYMENT: None, names.LABEL_MANAGED_BY: None}
                    self.cluster.api.patch(path, {"metadata": {"labels": labels}})
                case "disown":
                    self.cluster.api.patch(path, {"metadata": {"ownerReferences": None}})
                case "scale" if value["kind"] in ("deployments", "statefulsets"):
                    self.cluster.api.patch(path, {"spec": {"replicas": 3}})
                case "spoil" if value["kind"] == "services":
                    self.cluster.api.patch(path, {"spec": {"selector": {"spoilt": "yes"}}})
                case "spoil" if value["kind"] == "configmaps":
                    self.cluster.api.patch(path, {"data": {"spoilt": "yes"}})
                case _:
                    self.cluster.api.patch(
                        path, {"metadata": {"annotations": {names.ANNOTATION_HASH: "spoilt"}}}
                    )

    # --- nodes, quotas, others

    def _node(self, number: str, how: Any) -> None:
        node = self.fleet.nodes[int(number) % len(self.fleet.nodes)]
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        match how:
            case "cordon" | "uncordon":
                self.cluster.api.patch(path, {"spec": {"unschedulable": True if how == "cordon" else None}})
            case "taint" | "untaint":
                self.cluster.api.patch(path, {"spec": {"taints": [TAINT] if how == "taint" else None}})
            case "unlabel" | "relabel":
                if PRODUCT in (labels := node["metadata"]["labels"]):
                    self.cluster.api.patch(
                        path,
                        {"metadata": {"labels": {PRODUCT: labels[PRODUCT] if how == "relabel" else None}}},
                    )
            case "delete":
                self.cluster.api.delete(path)
            case "register":
                self.cluster.simulator.register(node)
            case "drain":
                self.cluster.api.patch(path, {"spec": {"unschedulable": True}})
                time.sleep(1)
                for pod in self.desk.pods():
                    if pod["spec"].get("nodeName") == node["metadata"]["name"]:
                        self._evict(pod)

    def _quota(self, _: str, most: Any) -> None:
        where = f"/api/v1/namespaces/{self.desk.namespace}/resourcequotas"
        if most is None:
            self.cluster.api.delete(f"{where}/storm")
            return
        body = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "storm", "namespace": self.desk.namespace},
            "spec": {"hard": {"pods": str(most)}},
        }
        self.cluster.api.apply(f"{where}/storm", body, force=True)

    def _foreign(self, name: str, kind: Any) -> None:
        if kind is None:
            self._no_foreign()
            return
        called = name if kind == "v1/services" else f"{name}-plan"
        body: Object = {"metadata": {"name": called, "labels": {"storm": "foreign"}}}
        if kind == "v1/services":
            body["spec"] = {"ports": [{"port": 99}]}
        self.cluster.api.create(f"/api/v1/namespaces/{self.desk.namespace}/{kind.rpartition('/')[2]}", body)

    def _no_foreign(self) -> None:
        for kind in ("services", "configmaps"):
            where = f"/api/v1/namespaces/{self.desk.namespace}/{kind}"
            for one in self.cluster.api.items(where, labelSelector="storm=foreign"):
                self.cluster.api.delete(f"{where}/{one['metadata']['name']}")

    # --- the API server

    def _fault(self, how: str, seed: Any) -> None:
        self.disturbed = True
        match how:
            case "slow":
                self._add(Delay(0.5), 0.5, seed)
            case "errors":
                faults: tuple[Fault, ...] = (Answer(429, retry_after=1), Answer(500), Answer(409), Refuse())
                for place, fault in enumerate(faults):
                    self._add(fault, 0.1, seed + place)
            case "lost-answers":
                self._add(LoseAnswer(), 0.4, seed, Where(verbs=WRITES))
            case "cut":
                self._proxy.cut_watches()
            case "expire":
                self._proxy.expire_watches()
            case "away":
                self.cluster.processes.pause("kube-apiserver")
                try:
                    time.sleep(AWAY_SECONDS)
                finally:
                    self.cluster.processes.resume("kube-apiserver")

    def _add(self, fault: Fault, share: float, seed: int, where: Where = ANY) -> None:
        self._faults.append(self._proxy.add(fault, where, share=share, seed=seed))

    def calm(self) -> None:
        """The API server answers as it should."""
        while self._faults:
            self._faults.pop().remove()

    def heal(self) -> None:
        """Everything but what users asked for is as it was at first."""
        self.calm()
        with suppress(ApiError):
            self._quota("", None)
        self._no_foreign()
        there = {one["metadata"]["name"]: one for one in self.cluster.api.items("/api/v1/nodes")}
        for node in self.fleet.nodes:
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            if node["metadata"]["name"] not in there:
                self.cluster.simulator.register(node)
            else:
                labels = {PRODUCT: node["metadata"]["labels"].get(PRODUCT)}
                healthy = {"unschedulable": None, "taints": node["spec"].get("taints")}
                self.cluster.api.patch(path, {"spec": healthy, "metadata": {"labels": labels}})

    def answer_readers(self) -> None:
        """Pods that read a model tell it, as their supervisor would."""
        for pod in self.desk.pods():
            labels, status = pod["metadata"].get("labels") or {}, pod.get("status") or {}
            if labels.get(names.LABEL_ROLE) != names.FACTS or status.get("phase") != "Running":
                continue
            (container,) = status["containerStatuses"]
            times = {"startedAt": status["startTime"], "finishedAt": status["startTime"]}
            ended = {"exitCode": 0, "reason": "Completed", "message": told(Model(CONFIG, {})), **times}
            done = {
                "phase": "Succeeded",
                "containerStatuses": [{**container, "ready": False, "state": {"terminated": ended}}],
            }
            path = f"/api/v1/namespaces/{self.desk.namespace}/pods/{pod['metadata']['name']}/status"
            with suppress(ApiError):
                self.cluster.api.patch(path, {"status": done})


@contextmanager
def ground(cluster: Cluster, folder: Path, story: Story) -> Iterator[Ground]:
    with cluster.proxy() as proxy, cluster.fleet(fleet(story)) as nodes:
        made = Ground(cluster, folder, proxy, nodes, story)
        try:
            made.start_operator()
            yield made
        finally:
            made.calm()
            made.end_operators()
            where = f"/apis/{names.API_VERSION}/namespaces/{made.desk.namespace}/{names.PLURAL}"
            cluster.api.delete(where)
            cluster.api.delete(f"/api/v1/namespaces/{made.desk.namespace}")
