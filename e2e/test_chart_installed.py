"""The chart's whole life on a real node: the image runs without rights, its webhook answers through its Service, an upgrade restarts
nothing that serves, the end takes nothing away."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
import yaml

from chart import CHART, helm
from cluster import Cluster
from cluster.api import Object
from cluster.fleet import read_fleet
from cluster.images import Recipe
from cluster.node import Unavailable
from common import eventually
from operator_image import recipe
from plimsoll import names
from real import left_out
from turns.running import SMALL, Desk

pytestmark = pytest.mark.real_node
PLACE: Final = "plimsoll"
NODE: Final = "real-1"
WEBHOOK: Final = "plimsoll-webhook"
FITS: Final[dict[str, Any]] = {"workload": {"contextTokens": 8192}}
WRONG: Final[dict[str, Any]] = {"topology": {"gpuProducts": ["H1000"]}}


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
        verb, *args, "--namespace", PLACE, f"--kubeconfig={node.kubeconfig}", "--wait", "--timeout=10m"
    )
    pods = node.kubectl("-n", PLACE, "describe", "pods").stdout[-6000:] if done.returncode else ""
    assert done.returncode == 0, done.stderr + pods


def serving(desk: Desk) -> dict[str, str]:
    """Pods, and since when."""
    return {one["metadata"]["uid"]: one["status"]["startTime"] for one in desk.pods()}


def kept(node: Cluster) -> str:
    """Whom the operator's webhook is to be trusted for, by the Secret that it keeps."""
    found = node.api.get(f"/api/v1/namespaces/{PLACE}/secrets/{WEBHOOK}").get("data") or {}
    return str(found.get("ca.crt", ""))


def told(node: Cluster) -> str:
    """The same by what the API server was told."""
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    (hook,) = node.api.get(f"{hooks}/{PLACE}-{WEBHOOK}")["webhooks"]
    return str(hook["clientConfig"].get("caBundle", ""))


def resource(spec: dict[str, Any]) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "asked", "namespace": "users"},
        "spec": {"model": {"source": SMALL}, **spec},
    }


def asked(node: Cluster, spec: dict[str, Any]) -> str:
    """What a person hears who would apply it; nothing where it is let in without a word."""
    done = node.kubectl("apply", "-f", "-", "--dry-run=server", input=yaml.safe_dump(resource(spec)))
    assert done.returncode == 0 or done.stderr
    return done.stderr


def judged(node: Cluster, address: str, spec: dict[str, Any]) -> Object:
    """What one replica answers to whoever trusts what the API server trusts, and calls it by its Service's name."""
    group, _, version = names.API_VERSION.partition("/")
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": group, "version": version, "kind": names.KIND},
            "operation": "CREATE",
            "namespace": "users",
            "userInfo": {"username": "somebody"},
            "object": resource(spec),
        },
    }
    trust = ssl.create_default_context(cadata=base64.b64decode(told(node)).decode())
    with (
        socket.create_connection((address, 9443), 10) as plain,
        trust.wrap_socket(plain, server_hostname=f"{WEBHOOK}.{PLACE}.svc") as spoken,
    ):
        connection = http.client.HTTPConnection(address)
        connection.sock = spoken
        connection.request("POST", "/validate", json.dumps(review), {"Content-Type": "application/json"})
        answer: Object = json.loads(connection.getresponse().read())["response"]
    return answer


def replicas(node: Cluster) -> list[str]:
    """Addresses of the operator's pods that the webhook's Service sends to."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{PLACE}/endpointslices"
    slices = [one for one in node.api.items(path) if one["metadata"]["name"].startswith(f"{WEBHOOK}-")]
    ends = [end for one in slices for end in one["endpoints"] or () if end["conditions"]["ready"]]
    return sorted(address for end in ends for address in end["addresses"])


def leads(address: str) -> int:
    with urllib.request.urlopen(f"http://{address}:8080/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("plimsoll_leads "))


@pytest.fixture(scope="module")
def chosen(node: Cluster, image: Recipe) -> tuple[str, ...]:
    """The chart is installed so. Nothing is let in that the webhook was not asked about."""
    repository, _, tag = image.reference.rpartition(":")
    args = (
        "plimsoll", str(CHART), "--set=offline=true", f"--set=image.repository={repository}", f"--set-string=image.tag={tag}",
        f"--set=nodeSelector.kubernetes\\.io/hostname={NODE}",
        "--set=webhook.enabled=true", "--set=webhook.failurePolicy=Fail",
    )  # fmt: skip
    run(node, "install", *args)
    return args


@pytest.mark.usefixtures("chosen")
def test_what_is_wrong_is_refused_through_the_webhooks_service_and_what_fits_is_let_in(node: Cluster) -> None:
    assert eventually(lambda: kept(node) == told(node) != "")
    # The API server hears of the certificate a moment later than it was told.
    assert eventually(lambda: "denied the request" in asked(node, WRONG)), asked(node, WRONG)
    assert "H1000" in asked(node, WRONG)
    assert asked(node, FITS) == ""


@pytest.mark.usefixtures("chosen")
def test_each_replica_answers_under_the_services_name_whether_it_leads_or_waits(node: Cluster) -> None:
    assert eventually(lambda: len(replicas(node)) == 2)
    there = replicas(node)
    assert eventually(lambda: sorted(leads(address) for address in there) == [0, 1])
    for address in there:
        assert judged(node, address, FITS) == {"uid": "1", "allowed": True}
        assert "H1000" in judged(node, address, WRONG)["status"]["message"]


def test_an_upgrade_restarts_nothing_that_serves_and_the_end_takes_nothing_away(
    node: Cluster, chosen: tuple[str, ...]
) -> None:
    certificate = kept(node)
    desk = Desk(node, "users")
    desk.apply(replicas=2)
    assert desk.says("Ready", "True", "Serving")
    before, children = serving(desk), desk.children()
    assert len(before) == 2

    # While replicas of the webhook change, nobody is to wait for it.
    run(node, "upgrade", *chosen, "--set=commonLabels.team=inference", "--set=webhook.failurePolicy=Ignore")
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
