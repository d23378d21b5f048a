"""What a pod and the object around it say beside the engine's command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli.importing import Imported, import_text

LEAVES = yaml.safe_load((Path(__file__).parents[2] / "samples" / "import-leaves.yaml").read_text("utf-8"))
QUEUED = ("deployment", "stateful-set", "pod", "leader-worker-set", "inference-service")


def pod(container: Mapping[str, Any], **spec: Any) -> Imported:
    """A pod whose container has more than its command."""
    whole = {"name": "vllm", "image": "vllm/vllm-openai", "args": ["--model", "a/b"], **container}
    document = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [whole], **spec}}
    return import_text(yaml.safe_dump(document))


def spec_of(imported: Imported) -> Any:
    (document,) = imported.documents
    return document["spec"]


@pytest.mark.parametrize("name", QUEUED)
def test_pods_stay_in_the_queue_whose_quota_counts_them(name: str) -> None:
    spec = spec_of(import_text(yaml.safe_dump_all(LEAVES[name])))
    assert spec["scheduling"]["queue"] == "team-q"
    assert "kueue.x-k8s.io/queue-name" not in spec.get("podLabels", {})


def test_labels_of_the_object_are_lost_aloud_and_those_that_nobody_wrote_are_not() -> None:
    imported = import_text(yaml.safe_dump_all(LEAVES["deployment"]))
    told = {fate.what for fate in imported.lost}
    assert {"metadata.labels.team: code", "metadata.annotations.example.com/owner: code"} <= told
    assert not [what for what in told if "revision" in what or what.startswith("metadata.uid")]


def test_a_claim_that_is_mounted_twice_is_found_at_both_places() -> None:
    mounts = [
        {"name": "data", "mountPath": "/cache", "subPath": "cache"},
        {"name": "data", "mountPath": "/models", "subPath": "llm"},
    ]
    imported = pod(
        {"args": ["--model", "/models/chat", "--download-dir", "/cache"], "volumeMounts": mounts},
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "weights"}}],
    )
    assert spec_of(imported)["model"]["source"] == "pvc://weights/llm/chat"
    assert spec_of(imported)["storage"]["weights"]["claim"] == {"name": "weights", "subPath": "cache"}
    assert imported.lost == ()


def test_volumes_that_nothing_was_read_from_are_lost_with_their_place() -> None:
    mounts = [{"name": "keys", "mountPath": "/keys"}, {"name": "more", "mountPath": "/more", "subPath": "a"}]
    imported = pod(
        {"volumeMounts": mounts},
        volumes=[
            {"name": "keys", "secret": {"secretName": "certificates"}},
            {"name": "more", "persistentVolumeClaim": {"claimName": "more"}},
            {"name": "unseen", "configMap": {"name": "settings"}},
        ],
    )
    assert {fate.what: fate.why for fate in imported.lost} == {
        "spec.volumes[0] keys (secret at /keys)": "mount files by podPatches",
        "spec.volumes[0].secret.secretName: (hidden)": "mount files by podPatches",
        "spec.volumes[1] more (persistentVolumeClaim at /more, subPath a)": "spec.storage says where weights and caches live",
        "spec.volumes[1].persistentVolumeClaim.claimName: more": "spec.storage says where weights and caches live",
        "spec.volumes[2] unseen (configMap)": "the engine's container does not mount it",
        "spec.volumes[2].configMap.name: settings": "the engine's container does not mount it",
    }


def test_a_variable_whose_value_stands_elsewhere_is_lost_and_not_empty() -> None:
    imported = pod({"env": [{"name": "TOPIC", "valueFrom": {"fileKeyRef": {"path": "a", "key": "b"}}}]})
    assert "engine" not in spec_of(imported) or "env" not in spec_of(imported)["engine"]
    (fate,) = imported.lost
    assert (fate.what, "engine.env does not offer" in fate.why) == ("TOPIC from fileKeyRef b a", True)


def test_a_node_by_its_name_is_lost_aloud() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    imported = pod(
        {}, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )
    assert any(fate.what.endswith("values[0]: node-1") for fate in imported.lost)


def test_variables_of_a_dynamo_component_are_the_engine_s() -> None:
    spec = spec_of(import_text(yaml.safe_dump_all(LEAVES["graph"])))
    assert {"name": "NCCL_DEBUG", "value": "INFO"} in spec["engine"]["env"]
