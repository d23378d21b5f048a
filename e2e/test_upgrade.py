"""From a frozen release to this one, by helm: no pod that serves is restarted, and no set is another one than before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from chart import CHART, NAMESPACE, RELEASE, helm, objects, rendered
from cluster import Cluster
from common import LONG_SECONDS, eventually
from plimsoll import names
from plimsoll.kube.kinds import CRD
from previous import FROZEN, OTHERS, RESOURCES, fleet, restore, versions
from previous import NAMESPACE as UPGRADED
from rights import USER, beyond
from turns.running import Desk, Operator

CONFIG: Final = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "OperatorConfig",
    "budgets": [{"namespace": UPGRADED, "gpus": 256}],
}
"""Another one than before, so that every turn looks at everything again."""
PODS: Final = 7
"""A replica each, but two of `chat` and one of two pods."""


@pytest.fixture(params=versions())
def upgraded(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Desk]]:
    """A cluster as that release left it, its pods serving."""
    version = str(request.param)
    with Cluster(audit=True) as cluster, cluster.fleet(fleet()):
        cluster.install_others(OTHERS)
        run(cluster, "install", str(FROZEN / version / "chart"), "--create-namespace")
        cluster.until_served([cluster.api.get(CRD.path("", names.CRD_NAME))])
        desk = restore(cluster, version)
        assert eventually(lambda: len(serving(desk)) == len(desk.pods()) == PODS, LONG_SECONDS)
        yield cluster, desk


def run(cluster: Cluster, verb: str, chart: str, *more: str) -> None:
    """Without operator pods: the operator is a process here."""
    done = helm(
        verb,
        RELEASE,
        chart,
        "--namespace",
        NAMESPACE,
        f"--kubeconfig={cluster.kubeconfig}",
        "--set=replicas=0",
        *more,
    )
    assert done.returncode == 0, done.stderr


def serving(desk: Desk) -> dict[str, str]:
    """Ready pods, and what would tell of a restart."""
    return {
        one["metadata"]["uid"]: json.dumps([one["status"]["startTime"], *_restarts(one)])
        for one in desk.pods()
        if any(
            said["type"] == "Ready" and said["status"] == "True"
            for said in one["status"].get("conditions") or ()
        )
    }


def _restarts(pod: dict[str, object]) -> list[object]:
    status = pod["status"]
    assert isinstance(status, dict)
    return [one["restartCount"] for one in status["containerStatuses"]]


def workloads(desk: Desk) -> dict[str, object]:
    """What makes pods: each as it was born, its template untouched. And what each set was frozen as."""
    return {
        f"{kind}/{one['metadata']['name']}": [
            one["metadata"]["uid"],
            one.get("data") or one["spec"]["template"],
        ]
        for kind in ("deployments", "statefulsets", "controllerrevisions")
        for one in desk.items(f"apps/v1/{kind}")
    }


def written(cluster: Cluster, since: int) -> list[str]:
    """By the operator, to what a resource has."""
    return [
        f"{one.call.verb} {one.call.resource} {one.call.name}"
        for one in cluster.audit.writes(user=USER, since=since)
        if one.call.resource not in ("leases", "events", f"{names.PLURAL}/status")
    ]


def looked_at(desk: Desk) -> dict[str, str]:
    """What the last full turn of each left behind."""
    found = {
        one["metadata"]["name"]: one["metadata"].get("annotations") or {}
        for one in desk.items("v1/configmaps")
    }
    return {name: found[f"{name}-plan"].get(names.ANNOTATION_TURN, "") for name in RESOURCES}


def looks(desk: Desk, name: str, before: Mapping[str, str]) -> bool:
    return looked_at(desk)[name] not in ("", before[name])


def test_an_upgrade_restarts_nothing_and_names_no_set_anew(
    upgraded: tuple[Cluster, Desk], tmp_path: Path
) -> None:
    cluster, desk = upgraded
    pods, sets, turns = serving(desk), workloads(desk), looked_at(desk)
    run(cluster, "upgrade", str(CHART))
    served = cluster.api.get(CRD.path("", names.CRD_NAME))
    (crd,) = (
        one for one in objects(rendered(CHART / "ci" / "default-values.yaml")) if one["kind"] == CRD.name
    )
    assert served["spec"]["versions"][0]["schema"] == crd["spec"]["versions"][0]["schema"]

    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(CONFIG))
    account = cluster.kubeconfig_for(NAMESPACE, f"{RELEASE}-plimsoll")
    args = (f"--config={file}", f"--lease-namespace={NAMESPACE}")
    with Operator(cluster, tmp_path, kubeconfig=account, args=args) as operator:
        for name in RESOURCES:
            assert eventually(partial(looks, desk, name, turns)), operator.tail()
            assert desk.says("Ready", "True", "Serving", name), operator.tail()
        assert serving(desk) == pods
        assert workloads(desk) == sets

        # It goes on from there: more of the same set, beside the pods that were there.
        desk.apply("chat", **{**RESOURCES["chat"], "replicas": 3})
        assert eventually(lambda: desk.get("chat")["status"]["ready"] == "3/3"), operator.tail()
        assert workloads(desk) == sets
        assert pods.items() <= serving(desk).items()

        # And it has no more to say: the next one finds all as it is to be.
        assert operator.rests(), operator.tail()
        since = cluster.audit.mark()
        operator.restart()
        turned = partial(operator.metric, "plimsoll_turns_total")
        assert eventually(lambda: turned() >= len(RESOURCES), LONG_SECONDS), operator.tail()
        assert operator.rests(), operator.tail()
        assert written(cluster, since) == []
        assert operator.stop() == 0, operator.tail()
    assert cluster.audit.writes(user=USER), "it is this user that it writes as"
    assert beyond(cluster) == []
