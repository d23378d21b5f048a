"""The chart's whole life on a real node: the image runs without rights, an upgrade restarts nothing that serves, the end takes nothing away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from chart import CHART, helm
from cluster import Cluster
from cluster.fleet import read_fleet
from cluster.images import Recipe
from cluster.node import Unavailable
from common import eventually
from operator_image import recipe
from plimsoll import names
from real import left_out
from turns.running import Desk

pytestmark = pytest.mark.real_node
PLACE: Final = "plimsoll"
NODE: Final = "real-1"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return recipe(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def node(image: Recipe) -> Iterator[Cluster]:
    """With the operator's image, a fleet of GPUs that are not there, and nothing of Plimsoll's yet."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(Cluster(real_nodes=1, images=[image]))
        except Unavailable as why:
            left_out(str(why))
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        for name in (PLACE, "users"):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        with running.fleet(read_fleet("h100")):
            yield running


def run(node: Cluster, verb: str, *args: str) -> None:
    done = helm(
        verb, *args, "--namespace", PLACE, f"--kubeconfig={node.kubeconfig}", "--wait", "--timeout=120s"
    )
    pods = node.kubectl("-n", PLACE, "describe", "pods").stdout[-6000:] if done.returncode else ""
    assert done.returncode == 0, done.stderr + pods


def serving(desk: Desk) -> dict[str, str]:
    """Pods, and since when."""
    return {one["metadata"]["uid"]: one["status"]["startTime"] for one in desk.pods()}


def kept(node: Cluster) -> str:
    """Whom the operator's webhook is to be trusted for, by the Secret that it keeps."""
    found = node.api.get(f"/api/v1/namespaces/{PLACE}/secrets/plimsoll-webhook").get("data") or {}
    return str(found.get("ca.crt", ""))


def told(node: Cluster) -> str:
    """The same by what the API server was told."""
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    (hook,) = node.api.get(f"{hooks}/{PLACE}-plimsoll-webhook")["webhooks"]
    return str(hook["clientConfig"].get("caBundle", ""))


def test_it_is_installed_upgraded_and_taken_away(node: Cluster, image: Recipe) -> None:
    repository, _, tag = image.reference.rpartition(":")
    chosen = (
        "plimsoll", str(CHART), "--set=offline=true", f"--set=image.repository={repository}", f"--set-string=image.tag={tag}",
        f"--set=nodeSelector.kubernetes\\.io/hostname={NODE}",
        # Services of the cluster are not reached from where the API server runs, so nobody answers it, and it lets all in.
        "--set=webhook.enabled=true", "--set=webhook.timeoutSeconds=1",
    )  # fmt: skip
    run(node, "install", *chosen)
    certificate = kept(node)
    assert certificate == told(node) != ""
    desk = Desk(node, "users")
    desk.apply(replicas=2)
    assert desk.says("Ready", "True", "Serving")
    before, children = serving(desk), desk.children()
    assert len(before) == 2

    run(node, "upgrade", *chosen, "--set=commonLabels.team=inference")
    operators = f"/api/v1/namespaces/{PLACE}/pods"
    assert eventually(
        lambda: all(one["metadata"]["labels"].get("team") == "inference" for one in node.api.items(operators))
    )
    # The new operator has looked at the resource when it has done as it says.
    desk.apply(replicas=3)
    assert eventually(lambda: desk.get()["status"].get("ready") == "3/3")
    assert before.items() <= serving(desk).items()
    assert children.keys() <= desk.children().keys()
    assert (kept(node), told(node)) == (certificate, certificate)

    run(node, "uninstall", "plimsoll")
    assert eventually(lambda: node.api.items(operators) == [])
    assert desk.get()["status"]["ready"] == "3/3"
    assert before.items() <= serving(desk).items()
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{names.PLURAL}.{names.GROUP}"
    assert "deletionTimestamp" not in node.api.get(crd)["metadata"]
