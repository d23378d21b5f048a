"""What a frozen template names of a deployment's own objects, wherever in it that stands."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.kube.named import named
from plimsoll.objects import Ref

ACCOUNT = Ref("v1", "ServiceAccount", "team-a", "x")
CLAIM = Ref("v1", "PersistentVolumeClaim", "team-a", "x")
MAP = Ref("v1", "ConfigMap", "team-a", "x")

CASES: dict[str, tuple[dict[str, Any], set[Ref]]] = {
    "its account": ({"serviceAccountName": "x"}, {ACCOUNT}),
    "a claim": ({"volumes": [{"persistentVolumeClaim": {"claimName": "x", "readOnly": True}}]}, {CLAIM}),
    "a list of adapters": ({"volumes": [{"configMap": {"name": "x", "optional": True}}]}, {MAP}),
    "a part of a volume": ({"volumes": [{"projected": {"sources": [{"configMap": {"name": "x"}}]}}]}, {MAP}),
    "an environment": ({"containers": [{"envFrom": [{"configMapRef": {"name": "x"}}]}]}, {MAP}),
    "a variable": ({"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "x"}}}]}]}, {MAP}),
    "before the engine": ({"initContainers": [{"envFrom": [{"configMapRef": {"name": "x"}}]}]}, {MAP}),
    "a map that has no name": ({"volumes": [{"configMap": {"optional": True}}]}, set()),
    "a secret": ({"volumes": [{"secret": {"secretName": "x"}}]}, set()),
    "a claim of each pod": ({"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, set()),
}


@pytest.mark.parametrize("what", CASES)
def test_a_template_names_it_wherever_it_stands(what: str) -> None:
    spec, expected = CASES[what]
    assert set(named({"leader": {"spec": spec}, "worker": None}, "team-a")) == expected
    assert set(named({"leader": {"spec": {}}, "worker": {"spec": spec}}, "team-a")) == expected
