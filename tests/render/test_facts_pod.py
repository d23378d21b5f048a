"""The pod that reads a model: it sees what the engine would see, by reference and read-only, and nothing else."""

from dataclasses import replace

import pytest

from plimsoll.render.facts_pod import asked_of, facts_pod
from plimsoll.render.sets import owner_of
from tests.render.building import config, resource

SECRET = {"tokenSecret": {"name": "hub", "key": "token"}}


def made(source, admin=None, **spec):
    asked = resource(source, **spec)
    found = asked_of(asked.spec, admin or config())
    one = found["model.source"]
    return facts_pod(owner_of(asked), asked.spec, admin or config(), one, ticket="t", attempt=1).body


def container(body):
    (found,) = body["spec"]["containers"]
    return found


def test_it_is_restricted_ends_by_itself_and_belongs_to_its_deployment():
    body = made("pvc://models/tiny")
    spec = body["spec"]
    assert body["metadata"]["name"].startswith("chat-facts-")
    assert body["metadata"]["ownerReferences"][0]["uid"] == resource().metadata.uid
    assert body["metadata"]["labels"]["plimsoll.dev/role"] == "facts"
    assert spec["automountServiceAccountToken"] is False
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] == 3600
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    secured = container(body)["securityContext"]
    assert (secured["readOnlyRootFilesystem"], secured["capabilities"]) == (True, {"drop": ["ALL"]})
    assert set(container(body)["resources"]) == {"limits", "requests"}


def test_no_two_attempts_have_one_name():
    asked = resource("pvc://models/tiny")
    one = asked_of(asked.spec, config())["model.source"]
    names = {
        facts_pod(owner_of(asked), asked.spec, config(), one, ticket="t", attempt=attempt).ref.name
        for attempt in (1, 2)
    }
    assert len(names) == 2


def test_a_pod_that_an_earlier_resource_of_the_name_left_is_not_in_the_way():
    asked = resource("pvc://models/tiny")
    one, owner = asked_of(asked.spec, config())["model.source"], owner_of(asked)
    names = {
        facts_pod(replace(owner, uid=uid), asked.spec, config(), one, ticket="t", attempt=1).ref.name
        for uid in ("first", "second")
    }
    assert len(names) == 2


def test_a_claim_is_mounted_read_only_where_the_engine_would_have_it():
    body = made("pvc://models/tiny/v1")
    assert container(body)["args"] == ["facts", "/models/tiny/v1"]
    assert body["spec"]["volumes"] == [
        {"name": "model", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    ]
    assert container(body)["volumeMounts"] == [{"name": "model", "mountPath": "/models", "readOnly": True}]


def test_an_image_is_mounted_with_the_secrets_that_pull_it():
    body = made("oci://registry.example.com/m:1", engine={"imagePullSecrets": ["pull"]})
    assert container(body)["args"] == ["facts", "/models"]
    assert body["spec"]["volumes"] == [{"name": "model", "image": {"reference": "registry.example.com/m:1"}}]
    assert body["spec"]["imagePullSecrets"] == [{"name": "pull"}]


def test_a_repository_is_read_with_the_secret_by_reference():
    body = made("acme/secret", model={"source": "acme/secret", "revision": "v1", **SECRET})
    assert container(body)["args"] == ["facts", "hf://acme/secret", "--revision", "v1"]
    assert container(body)["env"] == [
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    ]
    assert body["spec"]["volumes"] == []


def test_a_bucket_is_read_with_the_variables_that_open_it():
    env = [
        {"name": "AWS_SECRET_ACCESS_KEY", "secret": {"name": "s3", "key": "secret"}},
        {"name": "AWS_REGION", "value": "x$(HOME)"},
        {"name": "OTHER", "value": "1"},
    ]
    admin = config(network={"s3Endpoint": "http://minio:9000"})
    body = made("s3://bucket/tiny", admin, engine={"env": env})
    assert [one["name"] for one in container(body)["env"]] == [
        "AWS_ENDPOINT_URL",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
    ]
    assert container(body)["env"][1]["value"] == "x$$(HOME)"


def test_what_lies_on_the_claim_for_weights_is_read_from_there():
    claim = {"weights": {"claim": {"name": "weights", "subPath": "team"}}}
    body = made("/cache/tiny", storage=claim)
    assert container(body)["args"] == ["facts", "/cache/tiny"]
    assert container(body)["volumeMounts"] == [
        {"name": "weights", "mountPath": "/cache", "subPath": "team", "readOnly": True}
    ]


@pytest.mark.parametrize(
    ("source", "spec", "admin"),
    [
        ("/opt/model", {}, {}),
        ("/opt/model", {"storage": {"weights": {"claim": {"name": "weights"}}}}, {}),
        ("acme/open", {}, {}),
        ("acme/secret", {"model": {"source": "acme/secret", **SECRET}}, {"network": {"offline": True}}),
        ("s3://bucket/tiny", {}, {"network": {"offline": True}}),
    ],
)
def test_nothing_is_asked_of_a_pod_that_would_know_no_more_than_the_operator(source, spec, admin):
    assert asked_of(resource(source, **spec).spec, config(**admin)) == {}


def test_a_draft_is_read_as_well_with_the_same_token():
    asked = resource(
        "acme/secret",
        model={"source": "acme/secret", **SECRET},
        speculative={"method": "draft", "model": "acme/small", "tokens": 3},
    )
    found = asked_of(asked.spec, config())
    assert sorted(found) == ["model.source", "speculative.model"]
    assert found["speculative.model"].word == "hf://acme/small"
    assert found["speculative.model"].env == found["model.source"].env


@pytest.mark.parametrize(
    ("source", "draft", "env"),
    [
        ("hf://acme/secret", "hf://acme/small", ["HF_TOKEN"]),
        ("acme/secret", "hf://acme/small", ["HF_TOKEN"]),
        ("modelscope://acme/secret", "modelscope://acme/small", ["MODELSCOPE_API_TOKEN"]),
        ("s3://bucket/secret", "acme/small", ["HF_TOKEN"]),
        ("pvc://models/secret", "acme/small", ["HF_TOKEN"]),
        ("hf://acme/secret", "modelscope://acme/small", None),
        ("s3://bucket/secret", "modelscope://acme/small", None),
        ("modelscope://acme/secret", "hf://acme/small", None),
        ("modelscope://acme/secret", "acme/small", None),
    ],
)
def test_a_token_is_never_shown_to_another_hub_than_its_own(source, draft, env):
    wish = {"method": "draft", "model": draft, "tokens": 3}
    asked = resource(source, model={"source": source, **SECRET}, speculative=wish)
    found = asked_of(asked.spec, config()).get("speculative.model")
    assert (None if found is None else [one["name"] for one in found.env]) == env


def test_a_draft_is_read_at_its_own_revision():
    wish = {"method": "draft", "model": "acme/small", "tokens": 3}
    model = {"source": "acme/secret", "revision": "v1", **SECRET}
    first, other = (
        asked_of(resource("acme/secret", model=model, speculative=said).spec, config())["speculative.model"]
        for said in (wish, {**wish, "revision": "v2"})
    )
    assert (first.revision, other.revision) == (None, "v2")
    assert first.digest != other.digest


@pytest.mark.parametrize(
    "change",
    [
        {"source": "acme/other"},
        {"revision": "v2"},
        {"tokenSecret": {"name": "other", "key": "token"}},
        {"tokenSecret": {"name": "hub", "key": "other"}},
    ],
)
def test_another_source_revision_or_secret_is_another_question(change):
    model = {"source": "acme/secret", "revision": "v1", **SECRET}
    before = asked_of(resource("acme/secret", model=model).spec, config())["model.source"]
    after = asked_of(resource("acme/secret", model={**model, **change}).spec, config())["model.source"]
    assert before.digest != after.digest


@pytest.mark.parametrize("source", ["pvc://models/tiny", "oci://registry.example.com/m:1", "/cache/tiny"])
def test_another_revision_of_what_is_mounted_is_read_anew_and_no_argument(source):
    claim = {"weights": {"claim": {"name": "weights"}}}
    bodies = [
        resource(source, model={"source": source, "revision": revision}, storage=claim)
        for revision in ("v1", "v2")
    ]
    first, other = (asked_of(one.spec, config())["model.source"] for one in bodies)
    assert first.digest != other.digest
    pod = facts_pod(owner_of(bodies[0]), bodies[0].spec, config(), first, ticket="t", attempt=1)
    assert "--revision" not in container(pod.body)["args"]
