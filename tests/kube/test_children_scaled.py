"""What is read at a start of a workload that somebody scaled while no operator led, by what API servers keep of it."""

from __future__ import annotations

import pytest

from plimsoll import names
from tests.kube.test_children import Index, Object


def applied(*spec: str) -> Object:
    held: Object = {f"f:{field}": {} for field in spec}
    return {"manager": names.MANAGER_CHILDREN, "operation": "Apply", "fieldsV1": {"f:spec": held}}


def scaled(by: str) -> Object:
    held: Object = {"f:spec": {"f:replicas": {}}}
    return {"manager": by, "operation": "Update", "subresource": "scale", "fieldsV1": held}


@pytest.mark.parametrize(
    ("kind", "fields", "clean"),
    [
        ("Deployment", [applied("replicas", "template")], True),
        ("Deployment", [applied("template"), scaled("kubectl")], False),
        ("Deployment", [applied("template"), scaled("kube-controller-manager")], False),
        ("Deployment", [applied("template")], False),
        ("Deployment", [applied("replicas", "template"), scaled("kubectl")], True),
        ("Service", [applied("ports")], True),
    ],
    ids=["ours", "kubectl scale", "an HPA", "scaled to nothing", "to what we want", "has no replicas"],
)
def test_at_a_start_a_workload_whose_number_is_ours_no_longer_was_scaled(
    kind: str, fields: list[Object], *, clean: bool
) -> None:
    index = Index(kind)
    index.lists(version=3, generation=1, managedFields=fields)
    assert index.clean == clean
