"""The resource on a real API server: what it accepts, what it refuses and in which words, and how it explains itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cluster import Cluster
from cluster.api import ApiError, Object
from common import ROOT
from plimsoll import names
from plimsoll.api.loading import load_deployments
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec

SAMPLES: Final = ROOT / "tests" / "api" / "samples"
VALID: Final = sorted((SAMPLES / "valid").glob("*.yaml"))
INVALID: Final = sorted((SAMPLES / "invalid").glob("*.yaml"))
EXAMPLES: Final = sorted((ROOT / "examples").glob("[0-9]*.yaml"))
GROUPS: Final = sorted(info.alias or name for name, info in LLMDeploymentSpec.model_fields.items())


def collection(namespace: str) -> str:
    return f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURAL}"


def documents(file: Path, namespace: str) -> list[Object]:
    found = [one for one in yaml.safe_load_all(file.read_text()) if one]
    for one in found:
        one["metadata"]["namespace"] = namespace
    return found


def name_of(file: Path) -> str:
    return file.stem


@pytest.mark.parametrize("file", [file for file in VALID if file.stem != "nulls"], ids=name_of)
def test_a_valid_sample_is_accepted_and_applying_it_again_changes_nothing(
    cluster: Cluster, namespace: str, file: Path
) -> None:
    (sample,) = documents(file, namespace)
    path = f"{collection(namespace)}/{sample['metadata']['name']}"
    first = cluster.api.apply(path, sample, fieldValidation="Strict")
    second = cluster.api.apply(path, sample, fieldValidation="Strict")
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second == first


@pytest.mark.parametrize("file", VALID, ids=name_of)
def test_what_the_api_server_stores_reads_as_what_was_written(
    cluster: Cluster, namespace: str, file: Path
) -> None:
    """Defaults that the server fills in are the model's own, and nothing is pruned."""
    (sample,) = documents(file, namespace)
    stored = cluster.api.create(collection(namespace), sample, fieldValidation="Strict")
    (read,) = load_deployments(yaml.safe_dump(without_server_fields(stored))).deployments
    (written,) = load_deployments(yaml.safe_dump(sample)).deployments
    assert read.spec == written.spec


def test_a_null_is_dropped_when_a_resource_is_created_but_refused_by_server_side_apply(
    cluster: Cluster, namespace: str
) -> None:
    """The API server's own way with fields that may not be null: a manifest that is applied leaves them out."""
    (sample,) = documents(SAMPLES / "valid" / "nulls.yaml", namespace)
    stored = cluster.api.create(collection(namespace), sample)
    assert "replicas" not in stored["spec"]
    with pytest.raises(ApiError, match=r'spec\.replicas in body must be of type integer: "null"'):
        cluster.api.apply(f"{collection(namespace)}/another", sample | {"metadata": {"name": "another"}})


@pytest.mark.parametrize("file", INVALID, ids=name_of)
def test_an_invalid_sample_is_refused_with_the_message_written_for_it(
    cluster: Cluster, namespace: str, file: Path
) -> None:
    """The same message as the command line gives for the file, and no other."""
    (sample,) = documents(file, namespace)
    (problem,) = load_deployments(file.read_text()).problems
    with pytest.raises(ApiError) as refused:
        cluster.api.create(collection(namespace), sample)
    assert refused.value.status == 422
    (cause,) = refused.value.causes
    assert cause["message"].endswith(problem.message)


@pytest.mark.parametrize("file", EXAMPLES, ids=name_of)
def test_an_example_is_accepted(cluster: Cluster, namespace: str, file: Path) -> None:
    for example in documents(file, namespace):
        cluster.api.create(collection(namespace), example, fieldValidation="Strict")


def test_an_unknown_field_is_refused_by_name(cluster: Cluster, namespace: str) -> None:
    sample = minimal(namespace)
    sample["spec"]["modle"] = {}
    with pytest.raises(ApiError, match=r'unknown field \\?"spec\.modle'):
        cluster.api.create(collection(namespace), sample, fieldValidation="Strict")


@pytest.mark.parametrize("group", GROUPS)
def test_kubectl_explains_a_group_of_the_spec_and_all_its_fields(cluster: Cluster, group: str) -> None:
    said = cluster.kubectl("explain", f"{names.PLURAL}.spec.{group}")
    assert said.returncode == 0, said.stderr
    assert "<no description>" not in said.stdout
    assert "DESCRIPTION:" in said.stdout


def test_kubectl_lists_deployments_by_their_short_name_with_the_columns(
    cluster: Cluster, namespace: str
) -> None:
    cluster.api.create(collection(namespace), minimal(namespace))
    said = cluster.kubectl("get", names.SHORT_NAME, "-n", namespace)
    header, row = said.stdout.splitlines()
    assert header.split() == ["NAME", "READY", "REPLICAS", "MODEL", "GPU", "LAYOUT", "REASON", "AGE"]
    assert "hf://Qwen/Qwen3-8B" in row


def test_kubectl_lists_how_far_a_plan_was_from_its_engine_where_more_is_asked_for(
    cluster: Cluster, namespace: str
) -> None:
    made = cluster.api.create(collection(namespace), minimal(namespace))
    name = made["metadata"]["name"]
    status = {
        "plan": {"digest": "sha256:0", "kvTokens": 262_144, "verdict": "Fits"},
        "accuracy": {"kvTokensMeasured": 259_000, "errorPercent": "-1.2"},
        "engine": {"version": "0.33.0"},
    }
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "status": status,
    }
    cluster.api.apply(
        f"{collection(namespace)}/{name}/status", body, manager=names.MANAGER_STATUS, force=True
    )
    said = cluster.kubectl("get", names.SHORT_NAME, name, "-n", namespace, "-o", "wide")
    header, row = said.stdout.splitlines()
    told = {
        title: row[header.index(title) :].split()[0]
        for title in ("VERDICT", "KV TOKENS", "KV ERROR %", "ENGINE")
    }
    assert told == {"VERDICT": "Fits", "KV TOKENS": "262144", "KV ERROR %": "-1.2", "ENGINE": "0.33.0"}


def test_the_scale_subresource_sets_replicas_that_applying_again_leaves_alone(
    cluster: Cluster, namespace: str
) -> None:
    sample = minimal(namespace)
    path = f"{collection(namespace)}/{sample['metadata']['name']}"
    cluster.api.apply(path, sample)
    scaled = cluster.kubectl(
        "scale", names.SHORT_NAME, sample["metadata"]["name"], "--replicas=3", "-n", namespace
    )
    assert scaled.returncode == 0, scaled.stderr
    assert cluster.api.apply(path, sample)["spec"]["replicas"] == 3


def test_the_status_is_written_apart_from_the_spec(cluster: Cluster, namespace: str) -> None:
    sample = minimal(namespace)
    path = f"{collection(namespace)}/{sample['metadata']['name']}"
    created = cluster.api.apply(path, sample)
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": sample["metadata"]["name"]},
        "spec": {"model": {"source": "hf://somebody/else"}},
        "status": {"observedGeneration": 1},
    }
    after = cluster.api.apply(f"{path}/status", body, manager=names.MANAGER_STATUS, force=True)
    assert after["spec"] == created["spec"]
    assert after["status"] == {"observedGeneration": 1}
    assert after["metadata"]["generation"] == created["metadata"]["generation"]


def minimal(namespace: str) -> Object:
    (sample,) = documents(SAMPLES / "valid" / "minimal.yaml", namespace)
    return sample


def without_server_fields(stored: Object) -> dict[str, Any]:
    metadata = {key: stored["metadata"][key] for key in ("name", "namespace")}
    return {**stored, "metadata": metadata}
