"""A Service that stands beside a workload keeps who may reach it, or it is said that more may."""

from collections.abc import Mapping
from typing import Any

import yaml

from plimsoll.cli.importing import Imported, import_text

INTERNAL = {
    "service.beta.kubernetes.io/aws-load-balancer-scheme": "internal",
    "networking.gke.io/load-balancer-type": "Internal",
}
WORKLOAD: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {
        "template": {"spec": {"containers": [{"image": "vllm/vllm-openai", "args": ["--model", "a/b"]}]}}
    },
}


def beside(metadata: Mapping[str, Any], **spec: Any) -> Imported:
    """A workload with a Service."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat", **metadata}, "spec": spec}
    return import_text(yaml.safe_dump_all([dict(WORKLOAD), service]))


def service_of(imported: Imported) -> Any:
    (document,) = imported.documents
    return document["spec"]["networking"]["service"]


def test_an_internal_load_balancer_stays_internal() -> None:
    imported = beside({"annotations": INTERNAL, "labels": {"team": "chat"}}, type="LoadBalancer")
    assert service_of(imported) == {
        "type": "LoadBalancer",
        "labels": {"team": "chat"},
        "annotations": INTERNAL,
    }
    assert imported.warnings == ()


def test_what_kubectl_wrote_for_itself_is_no_annotation_of_the_service() -> None:
    imported = beside(
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, type="NodePort"
    )
    assert service_of(imported) == {"type": "NodePort"}


def test_labels_that_plimsoll_sets_are_lost_aloud() -> None:
    imported = beside({"labels": {"app.kubernetes.io/name": "chat"}}, type="NodePort")
    assert service_of(imported) == {"type": "NodePort"}
    assert ("metadata.labels.app.kubernetes.io/name: chat", "Plimsoll sets it") in [
        (fate.what, fate.why) for fate in imported.lost
    ]


def test_a_load_balancer_that_loses_whom_it_lets_in_is_warned_of() -> None:
    ranges = {"loadBalancerSourceRanges": ["10.0.0.0/8"], "loadBalancerClass": "example.com/internal"}
    imported = beside({}, type="LoadBalancer", **ranges)
    assert {fate.what for fate in imported.lost} == {
        "spec.loadBalancerSourceRanges[0]: 10.0.0.0/8",
        "spec.loadBalancerClass: example.com/internal",
    }
    (warning,) = imported.warnings
    assert "without its loadBalancerSourceRanges, loadBalancerClass" in warning
    assert beside({}, type="ClusterIP", **ranges).warnings == ()
