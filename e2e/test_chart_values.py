"""What the admin writes under `config`: helm refuses values that the operator would not start with, and takes the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from chart import VALUES, rendered
from plimsoll.api.config import OperatorConfig

NODES: dict[str, Any] = {"name": "a", "maxNodes": 1, "gpuProduct": "H100", "gpusPerNode": 8}


COLLIDING: dict[str, Any] = {
    "commonLabels": {"team": "a", "release": "a"},
    "podLabels": {"team": "b"},
    "podAnnotations": {"checksum/config": "b"},
    "metrics": {part: {"enabled": True, "labels": {"release": "b"}} for part in ("podMonitor", "rules", "dashboards")},
}  # fmt: skip


class OfUniqueKeys(yaml.SafeLoader):
    """Refuses a key that a map has twice, as Flux does; helm itself takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is there twice: {keys}"
        return super().construct_mapping(node, deep)


def strictly(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.load_all(text, OfUniqueKeys) if one]


def written(values: dict[str, Any], folder: Path) -> Path:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


def templated(config: dict[str, Any], folder: Path) -> str:
    return rendered(written({"config": config}, folder))


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


@pytest.mark.parametrize("name", VALUES)
def test_no_map_has_a_key_twice_whatever_labels_are_said_in_two_places(name: str, tmp_path: Path) -> None:
    made = strictly(rendered(VALUES[name], "--values", str(written(COLLIDING, tmp_path))))
    labels = {
        one["kind"]: one["metadata"]["labels"]
        for one in made
        if one["kind"] in ("PodMonitor", "PrometheusRule")
    }
    assert [(one["team"], one["release"]) for one in labels.values()] == [("a", "b")] * 2
    (operator,) = (one for one in made if one["kind"] == "Deployment")
    pod = operator["spec"]["template"]["metadata"]
    assert (pod["labels"]["team"], pod["labels"]["release"]) == ("b", "a")
    assert len(pod["annotations"]["checksum/config"]) == 64


def test_no_label_takes_the_pods_from_what_selects_them(tmp_path: Path) -> None:
    """The schema refuses such labels; helm can be told to pass over it."""
    theirs = dict.fromkeys(
        ("app.kubernetes.io/name", "app.kubernetes.io/instance", "plimsoll.dev/role"), "other"
    )
    values = written({"commonLabels": theirs, "podLabels": theirs}, tmp_path)
    made = yaml.safe_load_all(rendered(values, "--skip-schema-validation"))
    (operator,) = (one for one in made if one and one["kind"] == "Deployment")
    pod = operator["spec"]["template"]["metadata"]["labels"]
    assert operator["spec"]["selector"]["matchLabels"].items() <= pod.items()
    assert pod["plimsoll.dev/role"] == "operator"


@pytest.mark.parametrize("name", VALUES)
def test_a_name_that_reads_as_a_number_stays_a_text(name: str, tmp_path: Path) -> None:
    named = {
        "nameOverride": "4",
        "namespaces": ["1", "on"],
        "priorityClassName": "2",
        "serviceAccount": {"name": "3"},
    }
    secrets = {"alerts": {"enabled": True, "certificateSecret": "5", "tokenSecret": "6"}}
    values = str(written(named | secrets, tmp_path))
    made = strictly(rendered(VALUES[name], "--values", values, namespace="7"))
    assert {one["metadata"].get("namespace") for one in made} == {None, "7", "1", "on"}
    objects = [one for one in made if one["kind"] != "CustomResourceDefinition"]
    assert [found for one in objects for found in texts(one) if not isinstance(found, str)] == []


def texts(found: Any, key: str = "") -> Iterator[Any]:
    """What names something, and labels."""
    if key in ("labels", "matchLabels", "annotations"):
        yield from found.values()
    elif key in ("name", "namespace", "secretName", "serviceAccountName", "priorityClassName"):
        yield found
    elif isinstance(found, dict):
        for part, value in found.items():
            yield from texts(value, part)
    elif isinstance(found, list):
        for value in found:
            yield from texts(value)
