"""What makes a new set and what does not: the difference between a restart that was asked for and one that was not."""

import json
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.problems import all_fields
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.planning.interval import Interval
from plimsoll.render import identity as room
from plimsoll.render.identity import UNREAD, identity, identity_before, pod_fields
from plimsoll.render.images import Image
from plimsoll.render.sets import freeze
from tests.engines.sets import chosen
from tests.render.building import resource
from tests.render.hostile import text_at, texts, with_text
from tests.render.test_hostile import ADMIN, ENTRY, FACTS, SPECS

OURS = Image(name="x", pull_policy=None, pull_secrets=(), own=False, binding="")
BASE = {
    "model": {"source": "Qwen/Qwen3-8B"},
    "adapters": {"items": [{"name": "a", "source": "hf://a/a"}]},
    "networking": {"gateway": {"name": "g"}},
}
GOLDEN = "592d3462c1fde215"
"""Of BASE on a set whose digest is 0123456789abcdef. A change here restarts every pod of every cluster."""


def digest(image=OURS, entry=None, **groups):
    spec = LLMDeploymentSpec.model_validate({**BASE, **groups})
    return identity(spec, entry or chosen(), image)


def test_the_digest_of_a_set_is_the_same_in_every_release():
    assert digest() == GOLDEN


UNSEEN = (
    {"replicas": 3},
    {"paused": True},
    {"scaling": {"max": 4}},
    {"tuning": {"mode": "off"}},
    {"workload": {"contextTokens": 4096, "concurrency": 9}},
    {"slo": {"itlP99Ms": 50}},
    {"cost": {"maxPerHour": "9"}},
    {
        "rollout": {
            "strategy": "replace",
            "canary": {"percents": [10]},
            "hold": True,
            "rollback": "manual",
        }
    },
    {"networking": {"service": {"port": 81, "labels": {"a": "b"}}, "allowFrom": ["x"]}},
    {"networking": {"ingress": {"hosts": ["h"]}}},
    {"engine": {"maxSequences": 7, "prefixCaching": False, "eager": True, "upgrade": "manual"}},
    {"engine": {"version": "0.33.0"}},
    {"memory": {"utilizationPercent": 80, "headroom": "1Gi"}},
    {"topology": {"mode": "manual", "tensor": 2, "gpuProducts": ["H100"], "nodeSelector": {"a": "b"}}},
    {"model": {"source": "Qwen/Qwen3-8B", "architecture": {"config": "{}"}}},
)


@pytest.mark.parametrize("groups", UNSEEN, ids=str)
def test_what_no_pod_is_made_from_makes_no_new_set(groups):
    assert digest(**groups) == GOLDEN


@pytest.mark.parametrize(
    "groups",
    [
        {"model": {"source": "Qwen/Qwen3-4B"}},
        {"model": {"source": "Qwen/Qwen3-8B", "servedNames": ["other"]}},
        {"model": {"source": "Qwen/Qwen3-8B", "tokenSecret": {"name": "t"}}},
        {"adapters": {"items": [{"name": "b", "source": "hf://a/a"}]}},
        {"engine": {"extraArgs": ["--seed", "1"]}},
        {"engine": {"env": [{"name": "A", "value": "1"}]}},
        {"engine": {"imagePullSecrets": ["p"]}},
        {"networking": {"tlsSecret": "t", "gateway": {"name": "g"}}},
        {"networking": {"apiKeySecret": {"name": "t"}}},
        {"podLabels": {"a": "b"}},
        {"podAnnotations": {"a": "b"}},
        {"podPatches": [{"op": "remove", "path": "/spec/affinity"}]},
        {"scheduling": {"queue": "q"}},
        {"storage": {"weights": {"emptyDir": {}}}},
        {"storage": {"weights": {"claim": {"name": "c"}}}},
        {"rollout": {"drainSeconds": 9}},
        {"rollout": {"deadlineSeconds": 900}},
        {"topology": {"tolerations": [{"operator": "Exists"}]}},
        {"toolCalling": {"parser": "hermes"}},
        {"chatTemplate": {"inline": "x"}},
        {"memory": {"kvCacheDtype": "fp8_e5m2"}},
    ],
    ids=str,
)
def test_what_pods_are_made_from_makes_a_new_set(groups):
    assert digest(**groups) != GOLDEN


def test_an_entry_of_another_digest_or_an_image_that_binds_makes_a_new_set():
    assert digest(entry=replace(chosen(), digest="f" * 16)) != GOLDEN
    assert digest(image=replace(OURS, binding="team/own:1")) != GOLDEN


def test_what_the_operator_alone_decides_makes_no_new_set():
    """Another mirror, pull secrets of the admin's, a better prediction, another number of replicas."""
    other = replace(OURS, name="mirror/x", pull_secrets=("admin",))
    predicted = replace(chosen(), replicas=7, max_concurrency=99, load=replace(chosen().load, concurrency=3))
    risen = replace(predicted.ledger, left=Interval.exact(5.0))
    assert digest(image=other, entry=replace(predicted, ledger=risen)) == GOLDEN


def test_a_default_that_the_api_server_wrote_into_the_resource_is_no_edit():
    written = LLMDeploymentSpec.model_validate({**BASE, "engine": {"name": "vllm"}, "networking": {"service": {"type": "ClusterIP", "port": 80}}})  # fmt: skip
    assert pod_fields(written) == pod_fields(LLMDeploymentSpec.model_validate(BASE))


def test_a_set_whose_adapters_lie_on_claims_is_found_by_the_digest_of_the_release_before():
    running = {"runtimeLoading": True, "items": [{"name": "law", "source": "pvc://adapters/law/best"}]}
    spec = LLMDeploymentSpec.model_validate({**BASE, "adapters": running})
    assert identity_before(spec, chosen(), OURS) == "9648229200a603b9" != identity(spec, chosen(), OURS)
    spec = LLMDeploymentSpec.model_validate(BASE)
    assert identity_before(spec, chosen(), OURS) == GOLDEN


def test_adapters_that_come_and_go_while_the_engine_runs_make_no_new_set():
    running = {"runtimeLoading": True, "maxRank": 16}
    item = {"name": "a", "source": "hf://a/a"}
    assert digest(adapters=running) == digest(adapters={**running, "items": [item]})
    assert digest(adapters=running) != digest(adapters={**running, "maxRank": 64})


@pytest.mark.parametrize("path", UNREAD)
def test_every_field_that_is_left_out_is_one_of_the_resource(path):
    assert path in all_fields(LLMDeploymentSpec)


def test_the_schema_number_stands_where_the_golden_digest_was_made():
    assert room.SCHEMA == 1


def test_a_set_is_called_after_its_deployment_and_its_digest():
    assert names.set_name(resource().name, GOLDEN) == f"chat-{GOLDEN[:8]}"


EDITS = {
    f"{which}:{'.'.join(map(str, path))}": (SPECS[which], path)
    for which in SPECS
    for path in texts(SPECS[which])
    if path[:2] not in {("engine", "version"), ("workload", "preset")}
}


@pytest.mark.parametrize("groups", UNSEEN, ids=str)
def test_what_makes_no_new_set_changes_no_pod(groups):
    before, after = (LLMDeploymentSpec.model_validate(one) for one in (BASE, {**BASE, **groups}))
    assert pods_of(before)[1] == pods_of(after)[1]


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_that_changes_a_pod_makes_a_new_set(edit):
    """Whatever a template is made from is in the digest, or a set would be changed in place."""
    spec, path = EDITS[edit]
    other = with_text(spec, path, edited(text_at(spec, path)))
    before, after = pods_of(spec), pods_of(other)
    if before[1] != after[1]:
        assert before[0] != after[0]


def pods_of(spec):
    """A set's digest, and its pods without it."""
    asked = resource()
    revision = freeze(asked.model_copy(update={"spec": spec}), ENTRY, facts=FACTS, config=ADMIN)
    text = json.dumps([revision.leader, revision.worker, dict(revision.files), revision.labels])
    return revision.digest, text.replace(revision.digest[:8], "")


def edited(text):
    """Another text of the same form: a patch stays a patch."""
    return text.replace("benign0", "other0") if "benign0" in text else text
