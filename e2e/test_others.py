"""Other people's APIs on the real API server: each takes what is right, and refuses what is wrong in words that name the field."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.api import ApiError, Object
from cluster.binaries import BinariesMissing, Places
from cluster.others import OTHERS
from cluster.others.modules import MODULES, Module, a_go

PLACES: Final = Places.of(os.environ)  # noqa: TID251 - as the tests' own


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A valid object, and what makes it invalid."""

    other: str
    path: str
    valid: Object
    wrong: dict[str, Any]
    """Path of a field, and what stands there instead."""
    says: str


POD: Final[Object] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "none",
                "ports": [{"containerPort": 8000}],
                "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": "2"}},
            }
        ]
    },
}
HTTP_ROUTE: Final[Object] = {
    "spec": {
        "parentRefs": [{"name": "public", "sectionName": "https"}],
        "hostnames": ["chat.example.com"],
        "rules": [
            {
                "backendRefs": [
                    {
                        "group": "inference.networking.k8s.io",
                        "kind": "InferencePool",
                        "name": "x",
                        "weight": 1,
                    }
                ],
                "timeouts": {"request": "600s"},
            }
        ],
    }
}
GATEWAY: Final[Object] = {
    "spec": {
        "gatewayClassName": "any",
        "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}],
    }
}
GRANT: Final[Object] = {
    "spec": {
        "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "front"}],
        "to": [{"group": "", "kind": "Service"}],
    }
}
SCALED_OBJECT: Final[Object] = {
    "spec": {
        "scaleTargetRef": {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LLMDeployment", "name": "x"},
        "minReplicaCount": 1,
        "maxReplicaCount": 4,
        "triggers": [
            {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "q", "threshold": "5"}}
        ],
    }
}
AUTHENTICATION: Final[Object] = {
    "spec": {"secretTargetRef": [{"parameter": "bearerToken", "name": "prometheus", "key": "token"}]}
}
POD_MONITOR: Final[Object] = {
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "podMetricsEndpoints": [{"port": "http", "path": "/metrics", "interval": "15s"}],
    }
}
SERVICE_MONITOR: Final[Object] = {
    "spec": {"selector": {"matchLabels": {"app": "x"}}, "endpoints": [{"port": "http"}]}
}
RULE: Final[Object] = {
    "spec": {
        "groups": [
            {
                "name": "memory",
                "rules": [
                    {"alert": "Full", "expr": "up == 0", "for": "5m", "labels": {"severity": "warning"}}
                ],
            }
        ]
    }
}
POOL: Final[Object] = {
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
    }
}
GROUP: Final[Object] = {
    "spec": {
        "replicas": 2,
        "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD},
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": "50%"},
        },
    }
}
_GATEWAY: Final = "/apis/gateway.networking.k8s.io"
_MONITORING: Final = "/apis/monitoring.coreos.com/v1"
CASES: Final = (
    Case(
        other="gateway-api",
        path=f"{_GATEWAY}/v1/httproutes",
        valid=HTTP_ROUTE,
        wrong={"spec.rules.0.timeouts.request": "ten minutes"},
        says=r"spec\.rules\[0\]\.timeouts\.request",
    ),
    Case(
        other="gateway-api",
        path=f"{_GATEWAY}/v1/gateways",
        valid=GATEWAY,
        wrong={"spec.listeners.0.port": 0},
        says=r"spec\.listeners\[0\]\.port",
    ),
    Case(
        other="gateway-api",
        path=f"{_GATEWAY}/v1beta1/referencegrants",
        valid=GRANT,
        wrong={"spec.to.0.colour": "red"},
        says=r'unknown field "spec\.to\[0\]\.colour"',
    ),
    Case(
        other="keda",
        path="/apis/keda.sh/v1alpha1/scaledobjects",
        valid=SCALED_OBJECT,
        wrong={"spec.scaleTargetRef": {"kind": "LLMDeployment"}},
        says=r"spec\.scaleTargetRef\.name: Required",
    ),
    Case(
        other="keda",
        path="/apis/keda.sh/v1alpha1/triggerauthentications",
        valid=AUTHENTICATION,
        wrong={"spec.secretTargetRef.0.name": 3},
        says=r"spec\.secretTargetRef\[0\]\.name",
    ),
    Case(
        other="prometheus-operator",
        path=f"{_MONITORING}/podmonitors",
        valid=POD_MONITOR,
        wrong={"spec.podMetricsEndpoints.0.interval": "often"},
        says=r"spec\.podMetricsEndpoints\[0\]\.interval",
    ),
    Case(
        other="prometheus-operator",
        path=f"{_MONITORING}/servicemonitors",
        valid=SERVICE_MONITOR,
        wrong={"spec.endpoints.0.prot": "http"},
        says=r'unknown field "spec\.endpoints\[0\]\.prot"',
    ),
    Case(
        other="prometheus-operator",
        path=f"{_MONITORING}/prometheusrules",
        valid=RULE,
        wrong={"spec.groups.0.rules.0.for": "a while"},
        says=r"spec\.groups\[0\]\.rules\[0\]\.for",
    ),
    Case(
        other="inferencepool",
        path="/apis/inference.networking.k8s.io/v1/inferencepools",
        valid=POOL,
        wrong={"spec.targetPorts": [{"number": 70000}]},
        says=r"spec\.targetPorts\[0\]\.number",
    ),
    Case(
        other="inferencepool",
        path="/apis/inference.networking.k8s.io/v1/inferencepools",
        valid={"spec": {**POOL["spec"], "endpointPickerRef": {"name": "picker", "kind": "Other"}}},
        wrong={"spec.endpointPickerRef.kind": "Service"},
        says="port is required when kind is Service",
    ),
    Case(
        other="inferencepool",
        path="/apis/inference.networking.k8s.io/v1/inferencepools",
        valid=POOL,
        wrong={"spec.targetPortNumber": 8000},
        says=r'unknown field "spec\.targetPortNumber"',
    ),
    Case(
        other="leaderworkerset",
        path="/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
        valid=GROUP,
        wrong={"spec.startupPolicy": "Whenever"},
        says=r"spec\.startupPolicy: Unsupported value",
    ),
    Case(
        other="leaderworkerset",
        path="/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
        valid=GROUP,
        wrong={"spec.leaderWorkerTemplate.workerTemplate.spec.containers.0.imagee": "none"},
        says=r'unknown field "spec\.leaderWorkerTemplate\.workerTemplate\.spec\.containers\[0\]\.imagee"',
    ),
)


@pytest.fixture(scope="module")
def furnished() -> Iterator[Cluster]:
    """A cluster of its own: what is installed changes what others may find in a shared one."""
    with Cluster() as running:
        running.install_others(*OTHERS)
        yield running


def changed(valid: Object, changes: dict[str, Any]) -> Object:
    made = copy.deepcopy(valid)
    for path, value in changes.items():
        at: Any = made
        *parents, last = path.split(".")
        for part in parents:
            at = at[int(part)] if part.isdigit() else at[part]
        at[last] = value
    return made


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.path.rpartition('/')[2]}: {next(iter(case.wrong))}"
)
def test_what_is_right_is_taken_and_what_is_wrong_is_refused_by_name(furnished: Cluster, case: Case) -> None:
    version, _, plural = case.path.removeprefix("/apis/").rpartition("/")
    kinds = {one["name"]: one["kind"] for one in furnished.api.get(f"/apis/{version}")["resources"]}
    about = {"apiVersion": version, "kind": kinds[plural], "metadata": {"name": "one"}}
    path = f"/apis/{version}/namespaces/default/{plural}"
    furnished.api.apply(f"{path}/one", about | case.valid, fieldValidation="Strict")
    about["metadata"] = {"name": "another"}
    with pytest.raises(ApiError, match=case.says) as refused:
        furnished.api.create(path, about | changed(case.valid, case.wrong), fieldValidation="Strict")
    assert refused.value.status in (400, 422)


def test_defaults_of_a_group_are_those_of_its_authors_and_its_size_can_be_scaled(furnished: Cluster) -> None:
    path = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
    body: Object = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "bare"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": POD}},
    }
    made = furnished.api.create(path, body)["spec"]
    assert (made["replicas"], made["startupPolicy"]) == (1, "LeaderCreated")
    template = made["leaderWorkerTemplate"]
    assert (template["size"], template["restartPolicy"]) == (1, "RecreateGroupOnPodRestart")
    container = template["workerTemplate"]["spec"]["containers"][0]
    assert container["ports"] == [{"containerPort": 8000, "protocol": "TCP"}]
    furnished.api.patch(f"{path}/bare/scale", {"spec": {"replicas": 3}})
    assert furnished.api.get(f"{path}/bare")["spec"]["replicas"] == 3


def test_an_unknown_name_is_refused_with_those_there_are(furnished: Cluster) -> None:
    with pytest.raises(LookupError, match="nothing is known of 'kueue'; there are gateway-api, keda"):
        furnished.install_others("kueue")


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"hash": "h1:another="}, "is not what was pinned"), ({"version": "v0.0.1"}, "nor to be had")],
)
def test_a_module_that_is_not_the_pinned_one_is_not_used(changes: dict[str, str], says: str) -> None:
    keda = MODULES["keda"]
    about = {name: getattr(keda, name) for name in ("path", "version", "hash", "folder", "files")}
    with pytest.raises(BinariesMissing, match=says):
        Module(**(about | changes)).crds(a_go(PLACES))
