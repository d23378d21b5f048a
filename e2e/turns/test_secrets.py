"""What a user keeps secret is named by the operator and never read: its values are in nothing that it writes, logs, counts or prints."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cluster import Cluster
from cluster.api import Object
from common import LONG_SECONDS, eventually
from plimsoll.kube.kinds import CHILDREN
from turns.crashes import DIES
from turns.running import Desk, Operator
from turns.test_doctor import plugin
from turns.test_metrics import page
from turns.test_rendered import plimsoll

KEPT: Final = (
    "canary-of-the-hub",
    "canary-of-the-api",
    "canary-of-tls",
    "canary-of-images",
    "canary-of-a-variable",
)
"""In Secrets."""
PLAIN: Final = "canary-in-plain-text"
"""In the resource itself, which its pods bear as well."""
TEMPLATES: Final = frozenset({"Deployment", "ControllerRevision", "ReplicaSet", "Pod"})
KINDS: Final = (
    *(kind.collection() for kind in CHILDREN if not kind.optional), "/api/v1/pods", "/api/v1/events",
    "/apis/events.k8s.io/v1/events", "/apis/apps/v1/replicasets",
)  # fmt: skip
SPEC: Final[dict[str, Any]] = {
    "model": {"source": "hf://Qwen/Qwen3-8B", "tokenSecret": {"name": "hub", "key": "token"}},
    "engine": {
        "imagePullSecrets": ["images"],
        "env": [
            {"name": "PLAIN_VARIABLE", "value": PLAIN},
            {"name": "KEPT_VARIABLE", "secret": {"name": "variable", "key": "value"}},
        ],
    },
    "networking": {"apiKeySecret": {"name": "api", "key": "key"}, "tlsSecret": "tls"},
}  # fmt: skip


def secrets() -> Iterator[Object]:
    hub, api, tls, images, variable = KEPT
    yield secret("hub", {"token": hub})
    yield secret("api", {"key": api})
    yield secret("tls", {"tls.crt": tls, "tls.key": tls}, "kubernetes.io/tls")
    login = json.dumps(
        {"auths": {"images.example.com": {"auth": base64.b64encode(images.encode()).decode()}}}
    )
    yield secret("images", {".dockerconfigjson": login}, "kubernetes.io/dockerconfigjson")
    yield secret("variable", {"value": variable})


def secret(name: str, data: dict[str, str], kind: str = "Opaque") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": kind,
        "stringData": data,
    }


def forms(value: str) -> tuple[str, str]:
    """As it is, and as a Secret bears it."""
    return value, base64.b64encode(value.encode()).decode()


def found(text: str, *values: str) -> list[str]:
    return [value for value in values for form in forms(value) if form in text]


def test_no_value_that_a_user_keeps_secret_is_in_anything_that_the_operator_says(
    cluster: Cluster,
    gpus: None,  # noqa: ARG001 - there before the operator looks
    namespace: str,
    tmp_path: Path,
) -> None:
    desk = Desk(cluster, namespace)
    for one in secrets():
        cluster.api.create(f"/api/v1/namespaces/{namespace}/secrets", one)
    with Operator(cluster, tmp_path, args=("--standalone", "--log-level=debug")) as operator:
        desk.apply(**SPEC)
        assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS), desk.get()["status"]
        desk.apply("dies", **SPEC, podAnnotations=DIES)
        desk.apply("wrong", **SPEC, topology={"tensor": 3})
        assert desk.says("Stalled", "True", "StartFailed", "dies", patience=LONG_SECONDS)
        assert eventually(lambda: desk.condition("Stalled", "wrong")[0] == "True")
        said = {
            "metrics": page(operator),
            "snapshot": plimsoll(cluster, "snapshot", "--context").decode(),
            "doctor": plugin(desk, "-n", namespace).stdout,
            "status": json.dumps([desk.get(name)["status"] for name in ("chat", "dies", "wrong")]),
        }
    said["log"] = operator.log.read_text()
    assert all("chat" in text or "dies" in text for text in said.values()), "each of them tells something"
    assert {what: each for what, text in said.items() if (each := found(text, *KEPT))} == {}
    assert [what for what in said.keys() - {"snapshot"} if found(said[what], PLAIN)] == []
    objects = [one for path in KINDS for one in listed(desk, path)]
    assert {one["kind"] for one in objects} > TEMPLATES | {"ConfigMap", "Service", "Event"}
    assert [one["metadata"]["name"] for one in objects if found(json.dumps(one), *KEPT)] == []
    assert {"Pod"} <= {one["kind"] for one in objects if found(json.dumps(one), PLAIN)} <= TEMPLATES


def listed(desk: Desk, path: str) -> Iterator[Object]:
    """Items of lists do not say what they are."""
    root, _, plural = path.rpartition("/")
    answer = desk.cluster.api.get(f"{root}/namespaces/{desk.namespace}/{plural}")
    for one in answer["items"]:
        yield {**one, "kind": str(answer["kind"]).removesuffix("List")}
