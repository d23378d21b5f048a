"""A number of replicas that an autoscaler wrote is no wish of anybody's: Plimsoll obeys one exactly, and would never scale again."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from plimsoll.cli.importing import Imported, import_text

BOUNDS = {"minReplicas": 1, "maxReplicas": 5}
DECIDED = "decides it, and so does Plimsoll within scaling"


def kubeai(**spec: Any) -> Imported:
    model = {
        "apiVersion": "kubeai.org/v1",
        "kind": "Model",
        "metadata": {"name": "chat"},
        "spec": {"url": "hf://a/b", **spec},
    }
    return import_text(yaml.safe_dump(model))


def production_stack(**keda: Any) -> Imported:
    model = {"name": "chat", "modelURL": "a/b", "replicaCount": 2, "keda": keda}
    return import_text(yaml.safe_dump({"servingEngineSpec": {"modelSpec": [model]}}))


def kserve(**spec: Any) -> Imported:
    service = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat"},
        "spec": {"model": {"uri": "hf://a/b"}, **spec},
    }
    return import_text(yaml.safe_dump(service))


def counts(imported: Imported) -> tuple[Any, Any]:
    (document,) = imported.documents
    return document["spec"].get("replicas"), document["spec"].get("scaling")


def reasons(imported: Imported) -> Mapping[str, str]:
    return {fate.what: fate.why for fate in imported.lost}


@pytest.mark.parametrize("disabled", [{}, {"autoscalingDisabled": False}])
def test_replicas_that_kubeai_manages_are_left_to_scaling(disabled: Mapping[str, bool]) -> None:
    imported = kubeai(replicas=0, **BOUNDS, **disabled)
    assert counts(imported) == (None, {"min": 1, "max": 5})
    assert reasons(imported) == {"spec.replicas: 0": f"KubeAI {DECIDED}"}


def test_replicas_of_a_model_that_kubeai_does_not_scale_are_kept_and_nothing_else() -> None:
    imported = kubeai(replicas=2, autoscalingDisabled=True, scaleDownDelaySeconds=60, **BOUNDS)
    assert counts(imported) == (2, None)
    assert set(reasons(imported).values()) == {"autoscaling is off"}
    assert set(reasons(imported)) == {
        "spec.minReplicas: 1",
        "spec.maxReplicas: 5",
        "spec.scaleDownDelaySeconds: 60",
    }


def test_a_chart_s_replicas_are_left_to_scaling_where_keda_is_on() -> None:
    imported = production_stack(enabled=True, minReplicaCount=1, maxReplicaCount=3)
    assert counts(imported) == (None, {"min": 1, "max": 3})
    assert f"KEDA {DECIDED}" in reasons(imported).values()


@pytest.mark.parametrize("switch", [{}, {"enabled": False}])
def test_bounds_of_an_autoscaler_that_is_off_are_no_scaling(switch: Mapping[str, bool]) -> None:
    imported = production_stack(minReplicaCount=1, maxReplicaCount=3, **switch)
    assert counts(imported) == (2, None)
    assert set(reasons(imported).values()) == {"KEDA is off"}


def test_replicas_beside_bounds_of_an_llm_inference_service_are_left_to_scaling() -> None:
    assert counts(kserve(replicas=2, scaling=BOUNDS)) == (None, {"min": 1, "max": 5})
    assert counts(kserve(replicas=2)) == (2, None)
