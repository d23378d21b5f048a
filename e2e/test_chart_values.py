"""What the admin writes under `config`: helm refuses values that the operator would not start with, and takes the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from chart import VALUES, rendered
from plimsoll.api.config import OperatorConfig

NODES: dict[str, Any] = {"name": "a", "maxNodes": 1, "gpuProduct": "H100", "gpusPerNode": 8}


def templated(config: dict[str, Any], folder: Path) -> str:
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump({"config": config}))
    return rendered(values)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"control": {"intervalSeconds": 0}}, "/config/control/intervalSeconds"),
        ({"control": {"intervalSeconds": 301}}, "/config/control/intervalSeconds"),
        ({"control": {"prometheusMatchLabels": {"a.b": "c"}}}, "'a.b' not allowed"),
        ({"control": {"prometheusMatchLabels": {"a": 1}}}, "/config/control/prometheusMatchLabels/a"),
        ({"control": {"prometheusHeaders": {"X-Scope-OrgID": "a "}}}, "/config/control/prometheusHeaders/X-Scope-OrgID"),
        ({"prices": {"currency": "usd"}}, "/config/prices/currency"),
        ({"prices": {"gpuHour": [{"product": "X"}]}}, "'perHour'"),
        ({"prices": {"gpuHour": [{"product": "X", "perHour": None}]}}, "/config/prices/gpuHour/0/perHour"),
        ({"prices": {"gpuHour": [{"product": "X", "perHour": "2,49"}]}}, "/config/prices/gpuHour/0/perHour"),
        ({"prices": {"cpuCoreHour": -1}}, "/config/prices/cpuCoreHour"),
        ({"prometheusUrl": "prometheus:9090"}, "/config/prometheusUrl"),
        ({"nodeClasses": [{"name": "a"}]}, "'maxNodes'"),
        ({"nodeClasses": [{**NODES, "labels": {"-a": "b"}}]}, "/config/nodeClasses/0/labels"),
        ({"nodeClasses": [{**NODES, "taints": [{"key": "a", "effect": "Never"}]}]}, "/config/nodeClasses/0/taints/0/effect"),
        ({"nodeClasses": [{**NODES, "memory": "10GB"}]}, "/config/nodeClasses/0/memory"),
        ({"nodeClasses": [{**NODES, "interconnect": "ether"}]}, "/config/nodeClasses/0/interconnect"),
        ({"registry": {"mirror": "https://a.example"}}, "/config/registry/mirror"),
        ({"storage": {"weights": {"claim": {}}}}, "'name'"),
        ({"kind": "LLMDeployment"}, "/config/kind"),
        ({"presets": [{"name": "ours", "spec": {}}]}, "'description'"),
        ({"defaults": [{"namespace": "A", "spec": {}}]}, "/config/defaults/0/namespace"),
    ],
)  # fmt: skip
def test_what_the_operator_would_not_start_with_is_refused_by_helm(
    config: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError):
        OperatorConfig.model_validate(config)
    with pytest.raises(ValueError, match="helm renders nothing") as refused:
        templated(config, tmp_path)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "config",
    [
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "OperatorConfig"},
        {"prices": {"currency": None, "gpuHour": [{"product": "H100", "perHour": 2}], "cpuCoreHour": "0.04"}},
        {"nodeClasses": [{**NODES, "labels": {"a.b/c": "d"}, "memory": "1Ti", "cpu": 4, "interconnect": None}]},
        {"nodeClasses": [{**NODES, "spot": True, "ephemeralStorage": "1Ti"}]},
        {"control": {"intervalSeconds": 300, "prometheusHeaders": {"X-Scope-OrgID": "team a"}}},
        {"storage": {"weights": {"claim": None, "claimTemplate": {"size": "1Ti"}}}, "trust": None},
        {"presets": [{"name": "ours", "description": "Ours.", "spec": {"engine": {"maxSequences": 32}}}]},
        {"defaults": [{"namespace": "team-*", "spec": {"workload": {"preset": "chat"}}}]},
        {"budgets": [{"namespace": "*", "gpus": 0, "priority": -1, "costPerHour": "10.5"}]},
        {"engines": {"versions": [{"version": "0.33.0", "cpuImage": "a.example:5000/vllm@sha256:0"}]}},
    ],
)  # fmt: skip
def test_what_the_operator_takes_helm_takes(config: dict[str, Any], tmp_path: Path) -> None:
    OperatorConfig.model_validate(config)
    assert "kind: Deployment" in templated(config, tmp_path)


def test_helm_takes_the_ready_sets_of_values_and_the_sample_of_an_admin(tmp_path: Path) -> None:
    for file in VALUES.values():
        assert "kind: Deployment" in rendered(file)
    root = Path(__file__).parents[1]
    fleet = yaml.safe_load((root / "examples/fleet.yaml").read_text())
    assert "kind: Deployment" in templated(fleet["config"], tmp_path)
