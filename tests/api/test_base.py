"""The models as values: frozen, strict about files, tolerant of newer versions, and written back as they were."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.api.v1alpha1 import LLMDeployment, LLMDeploymentSpec

BODY: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "LLMDeployment",
    "metadata": {"name": "chat", "namespace": "team-a", "generation": 4},
    "spec": {"model": {"source": "Qwen/Qwen3-8B"}},
}


def test_names_are_snake_case_inside_and_camel_case_outside() -> None:
    spec = LLMDeploymentSpec.model_validate(
        {"model": {"source": "a/b"}, "slo": {"ttftP99Ms": 5, "itlP99Ms": 6}}
    )
    assert (spec.slo.ttft_p99_ms, spec.slo.itl_p99_ms) == (5, 6)
    assert spec.to_dict()["slo"] == {"ttftP99Ms": 5, "itlP99Ms": 6}


def test_values_are_frozen() -> None:
    deployment = LLMDeployment.model_validate(BODY)
    with pytest.raises(ValidationError, match="frozen"):
        deployment.spec.replicas = 3  # type: ignore[misc]


def test_groups_are_there_to_read_but_are_not_written() -> None:
    spec = LLMDeployment.model_validate(BODY).spec
    assert spec.workload.context_tokens is None
    assert spec.networking.service.port == 80
    assert spec.to_dict() == BODY["spec"]


def test_defaults_that_the_user_owns_appear_where_the_api_server_would_write_them() -> None:
    spec = LLMDeploymentSpec.model_validate(
        {"model": {"source": "a/b", "tokenSecret": {"name": "hub"}}, "networking": {"service": {}}}
    )
    assert spec.to_dict()["networking"] == {"service": {"type": "ClusterIP", "port": 80}}
    assert spec.to_dict()["model"]["tokenSecret"] == {"name": "hub", "key": "token"}
    assert spec.to_dict(defaults=False)["networking"] == {"service": {}}


def test_a_group_whose_presence_means_something_is_kept() -> None:
    spec = LLMDeploymentSpec.model_validate({"model": {"source": "a/b"}, "topology": {"cpu": {}}})
    assert spec.to_dict()["topology"] == {"cpu": {}}


def test_a_file_may_not_hold_unknown_fields_but_an_observed_object_may() -> None:
    body = {**BODY, "spec": {**BODY["spec"], "fromTheFuture": {"x": 1}}}
    with pytest.raises(ValidationError):
        LLMDeployment.model_validate(body)
    assert LLMDeployment.observed(body).spec.to_dict() == BODY["spec"]


def test_a_status_of_the_future_is_no_status_but_keeps_nobody_from_serving() -> None:
    body = {**BODY, "status": {"sets": [{"name": "a", "state": "Teleporting"}]}}
    assert LLMDeployment.observed(body).status.sets == ()


def test_an_observed_spec_that_cannot_be_read_is_still_an_error() -> None:
    with pytest.raises(ValidationError, match="source"):
        LLMDeployment.observed({**BODY, "spec": {"model": {"source": "?"}}, "status": {"sets": 3}})


def test_what_else_kubernetes_writes_into_metadata_is_let_through() -> None:
    metadata = {**BODY["metadata"], "managedFields": [{}], "finalizers": ["x"]}
    deployment = LLMDeployment.model_validate({**BODY, "metadata": metadata})
    assert (deployment.name, deployment.namespace, deployment.metadata.generation) == ("chat", "team-a", 4)
