import pytest

from tests.render.building import (
    UNSUPERVISED,
    engine_of,
    everything,
    frozen,
    of_kind,
    resource,
    variables,
)
from tests.render.cases import entry

GIB = 2**30
SCRATCH = {"emptyDir": {"sizeLimit": "40Gi"}}
OURS = ("shm", "tmp", "home")


def kept(**said):
    """What is mounted where, without the scratch that every pod has: path to source, and how."""
    pod = frozen(resource(**said), chosen=entry(), admin=UNSUPERVISED).leader
    sources = {
        one["name"]: {key: value for key, value in one.items() if key != "name"}
        for one in pod["spec"]["volumes"]
    }
    return {
        one["mountPath"]: (
            sources[one["name"]],
            {key: one[key] for key in ("readOnly", "subPath") if key in one},
        )
        for one in engine_of(pod)["volumeMounts"]
        if one["name"] not in OURS
    }


def storage(weights=None, cache=None):
    return {
        "storage": {
            key: value for key, value in (("weights", weights), ("cache", cache)) if value is not None
        }
    }


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, {"/cache": (SCRATCH, {})}),
        (storage({"emptyDir": {"sizeLimit": "9Gi"}}), {"/cache": ({"emptyDir": {"sizeLimit": "9Gi"}}, {})}),
        (
            storage({"claim": {"name": "c", "subPath": "a/b"}}),
            {"/cache": ({"persistentVolumeClaim": {"claimName": "c"}}, {"subPath": "a/b"})},
        ),
        (
            storage({"claim": {"name": "c", "readOnly": True}}),
            {
                "/cache/models": ({"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}, {"readOnly": True}),
                "/cache/engine": (SCRATCH, {}),
            },
        ),
        (storage({"claimTemplate": {}}), {"/cache": ({"persistentVolumeClaim": {"claimName": "chat-weights"}}, {})}),
        (
            storage({"claimTemplate": {}}, {"claimTemplate": {"size": "5Gi"}}),
            {
                "/cache/models": ({"persistentVolumeClaim": {"claimName": "chat-weights"}}, {}),
                "/cache/engine": ({"persistentVolumeClaim": {"claimName": "chat-cache"}}, {}),
            },
        ),
        (
            storage(cache={"claim": {"name": "c"}}),
            {"/cache/models": (SCRATCH, {}), "/cache/engine": ({"persistentVolumeClaim": {"claimName": "c"}}, {})},
        ),
        (
            storage({"image": {"reference": "r/m@sha256:ab", "pullPolicy": "Never"}}),
            {
                "/models": ({"image": {"reference": "r/m@sha256:ab", "pullPolicy": "Never"}}, {"readOnly": True}),
                "/cache": (SCRATCH, {}),
            },
        ),
        (
            {"model": {"source": "pvc://claim/a/b"}},
            {"/models": ({"persistentVolumeClaim": {"claimName": "claim", "readOnly": True}}, {"readOnly": True}), "/cache": (SCRATCH, {})},
        ),
        (
            {"model": {"source": "oci://r/m:1"}},
            {"/models": ({"image": {"reference": "r/m:1"}}, {"readOnly": True}), "/cache": (SCRATCH, {})},
        ),
        (
            {"model": {"source": "hf://a/b", "tokenizer": "pvc://t"}},
            {"/tokenizer": ({"persistentVolumeClaim": {"claimName": "t", "readOnly": True}}, {"readOnly": True}), "/cache": (SCRATCH, {})},
        ),
    ],
    ids=str,
)  # fmt: skip
def test_weights_and_caches_are_where_the_resource_says(said, found):
    assert kept(**said) == found


def test_a_volume_of_each_pod_s_own_is_made_and_ended_with_it():
    source, _ = kept(
        **storage({"claimTemplate": {"accessMode": "ReadWriteOnce", "storageClass": "fast", "size": "50Gi"}})
    )["/cache"]
    assert source["ephemeral"]["volumeClaimTemplate"]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "50Gi"}},
    }


def test_a_shared_volume_is_made_once_for_the_deployment_and_sized_by_the_model():
    objects = everything(
        resource(**storage({"claimTemplate": {"storageClass": "nfs"}}, {"claimTemplate": {"size": "5Gi"}}))
    )
    weights, cache = of_kind(objects, "PersistentVolumeClaim")
    assert (weights["metadata"]["name"], cache["metadata"]["name"]) == ("chat-weights", "chat-cache")
    assert weights["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "nfs",
        "resources": {"requests": {"storage": "29Gi"}},  # 1.2 x 15.3 GiB and 10 for caches, in whole GiB
    }
    assert cache["spec"]["resources"]["requests"]["storage"] == "5Gi"


@pytest.mark.parametrize(
    ("said", "offline"),
    [
        ({}, None),
        (storage({"claim": {"name": "c", "readOnly": True}}), "1"),
        (storage({"claim": {"name": "c"}}), None),
    ],
)
def test_weights_that_cannot_be_written_are_never_asked_of_a_hub(said, offline):
    assert variables(frozen(resource(**said), chosen=entry()).leader).get("HF_HUB_OFFLINE") == offline


@pytest.mark.parametrize("cache", [None, {"claim": {"name": "c", "readOnly": True}}])
def test_code_of_a_model_that_pods_only_read_is_copied_to_where_they_may_write(cache):
    """transformers copies it below HF_HOME otherwise, which is on the claim."""
    asked = resource(
        model={"source": "acme/odd", "trustRemoteCode": True},
        **storage({"claim": {"name": "kept", "readOnly": True}}, cache),
    )
    pod = frozen(asked, chosen=entry()).leader
    folder = variables(pod)["HF_MODULES_CACHE"]
    within = [one for one in engine_of(pod)["volumeMounts"] if folder.startswith(f"{one['mountPath']}/")]
    assert [one.get("readOnly", False) for one in within] == [False]
    assert "HF_MODULES_CACHE" not in variables(frozen(resource(), chosen=entry()).leader)


def test_every_folder_that_the_engine_is_told_to_write_into_is_a_mount_that_it_may_write():
    pod = frozen(resource(), chosen=entry()).leader
    writable = [one["mountPath"] for one in engine_of(pod)["volumeMounts"] if not one.get("readOnly")]
    folders = [value for value in variables(pod).values() if isinstance(value, str) and value.startswith("/")]
    assert folders
    assert [one for one in folders if not any(f"{one}/".startswith(f"{path}/") for path in writable)] == []
