"""What KServe downloads to its own place is the model, however it is told: the engine's words name only that place."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from plimsoll.cli.importing import Imported, ImportProblem, import_text

PLACE = "/mnt/models"
URI = "hf://Qwen/Qwen3-8B"
SCRATCH: Mapping[str, Any] = {"name": "provided", "emptyDir": {}}
MOUNT: Mapping[str, Any] = {"name": "provided", "mountPath": PLACE}


def container(*args: str, env: Mapping[str, str] | None = None, **others: Any) -> dict[str, Any]:
    """A container that starts the engine."""
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    return {
        "name": "kserve-container",
        "image": "vllm/vllm-openai",
        "args": [f"--model={PLACE}", *args],
        "env": variables,
        **others,
    }


def of_object(version: str, kind: str, spec: Mapping[str, Any]) -> Imported:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "chat"}, "spec": spec}
    return import_text(yaml.safe_dump(document))


def inference_service(**predictor: Any) -> Imported:
    return of_object("serving.kserve.io/v1beta1", "InferenceService", {"predictor": predictor})


def by_format(*args: str, uri: str | None = URI, **predictor: Any) -> Imported:
    model = {"modelFormat": {"name": "vLLM"}, "storageUri": uri, "args": [f"--model={PLACE}", *args]}
    return inference_service(model=model, **predictor)


def by_llm_inference_service() -> Imported:
    spec = {"model": {"uri": URI, "name": "chat"}, "template": {"containers": [container()]}}
    return of_object("serving.kserve.io/v1alpha1", "LLMInferenceService", spec)


def deployment(pod: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> Imported:
    template = {"metadata": dict(metadata or {}), "spec": dict(pod)}
    return of_object("apps/v1", "Deployment", {"template": template})


def by_init_container(*downloads: str, **others: Any) -> Imported:
    """A Deployment as KServe makes it."""
    init = {"name": "storage-initializer", "image": "kserve/storage-initializer", "args": list(downloads)}
    return deployment(
        {
            "initContainers": [init],
            "containers": [container(volumeMounts=[dict(MOUNT)], **others)],
            "volumes": [dict(SCRATCH)],
        }
    )


def spec_of(imported: Imported) -> Any:
    (document,) = imported.documents
    return document["spec"]


def test_the_place_is_what_was_downloaded_to_it() -> None:
    told = (
        by_format(),
        by_llm_inference_service(),
        inference_service(containers=[container(env={"STORAGE_URI": URI})]),
        by_init_container(URI, PLACE),
        by_init_container("hf://org/adapter", "/mnt/adapters", URI, PLACE, env={"STORAGE_URI": URI}),
        deployment(
            {"containers": [container()]},
            {"annotations": {"internal.serving.kserve.io/storage-initializer-sourceuri": URI}},
        ),
    )
    for imported in told:
        assert spec_of(imported)["model"]["source"] == URI
        assert "env" not in spec_of(imported).get("engine", {})
        assert not [fate for fate in imported.lost if "the last word counts" in fate.why]


def test_several_downloads_are_each_what_lies_at_its_place() -> None:
    model = {
        "modelFormat": {"name": "vLLM"},
        "storageUris": [
            {"uri": URI, "mountPath": f"{PLACE}/base"},
            {"uri": "s3://bucket/sql", "mountPath": f"{PLACE}/sql"},
        ],
        "args": [f"--model={PLACE}/base", "--enable-lora", "--lora-modules", f"sql={PLACE}/sql"],
    }
    spec = spec_of(inference_service(model=model))
    assert spec["model"]["source"] == URI
    assert spec["adapters"]["items"] == [{"name": "sql", "source": "s3://bucket/sql"}]


def test_one_download_in_a_list_of_one_is_the_model_without_a_word_of_it() -> None:
    model: dict[str, Any] = {"modelFormat": {"name": "huggingface"}, "storageUris": [{"uri": URI}]}
    assert spec_of(inference_service(model=model))["model"]["source"] == URI
    containers = [container()]
    told = inference_service(containers=containers, storageUris=[{"uri": URI}])
    assert spec_of(told)["model"]["source"] == URI
    with pytest.raises(ImportProblem, match=r"storageUris\[0\].uri: is missing"):
        inference_service(model={**model, "storageUris": [{"mountPath": PLACE}]})


@pytest.mark.parametrize("uri", ["gs://bucket/data", "s3://bucket/data"])
def test_a_download_that_no_word_of_the_engine_names_is_lost_and_no_model(uri: str) -> None:
    listed = [{"uri": uri, "mountPath": "/mnt/data"}]
    model = {"modelFormat": {"name": "huggingface"}, "storageUris": listed, "args": [f"--model_id={URI[5:]}"]}
    imported = inference_service(model=model)
    assert spec_of(imported)["model"]["source"] == URI
    lost = [fate.what for fate in imported.lost]
    assert lost == [f"spec.predictor.model.storageUris[0]: {uri} at /mnt/data"]


def test_a_revision_behind_a_repository_is_the_models() -> None:
    imported = by_format(uri=f"{URI}:b968826d")
    assert spec_of(imported)["model"] == {"source": URI, "revision": "b968826d"}
    assert spec_of(by_format("--revision=main", uri=f"{URI}:b968826d"))["model"]["revision"] == "main"
    spec = {"model": {"uri": f"{URI}:v2", "name": "chat"}}
    told = of_object("serving.kserve.io/v1alpha1", "LLMInferenceService", spec)
    assert spec_of(told)["model"]["revision"] == "v2"


def test_a_variable_is_the_model_also_where_no_word_names_the_place() -> None:
    own = container(env={"STORAGE_URI": URI})
    imported = inference_service(containers=[{**own, "args": []}])
    assert spec_of(imported)["model"]["source"] == URI


def test_a_tokenizer_and_adapters_beside_the_model_are_found_there_too() -> None:
    words = ("--tokenizer", PLACE, "--enable-lora", "--lora-modules", f"sql={PLACE}/sql")
    spec = spec_of(by_format(*words, uri="s3://bucket/chat"))
    assert spec["model"]["tokenizer"] == "s3://bucket/chat"
    assert spec["adapters"]["items"] == [{"name": "sql", "source": "s3://bucket/chat/sql"}]


def test_only_the_whole_of_a_repository_can_be_the_model() -> None:
    with pytest.raises(ImportProblem, match="the folder 'part' of hf://Qwen/Qwen3-8B"):
        by_format(f"--model={PLACE}/part")
    assert spec_of(by_format(f"--model={PLACE}/part", uri="pvc://claim/models"))["model"] == {
        "source": "pvc://claim/models/part"
    }


def test_a_claim_of_ones_own_at_the_place_is_the_model() -> None:
    imported = inference_service(
        containers=[container(volumeMounts=[dict(MOUNT)])],
        volumes=[{"name": "provided", "persistentVolumeClaim": {"claimName": "weights"}}],
    )
    assert spec_of(imported)["model"]["source"] == "pvc://weights"


@pytest.mark.parametrize("volume", [{"emptyDir": {}}, {"ephemeral": {}}])
def test_a_model_in_a_volume_that_begins_empty_is_no_path_of_the_image(volume: Mapping[str, Any]) -> None:
    pod = {
        "containers": [container(volumeMounts=[dict(MOUNT)])],
        "volumes": [{"name": "provided", **volume}],
    }
    with pytest.raises(ImportProblem, match="empty until something fills it"):
        deployment(pod)


@pytest.mark.parametrize(
    "volume", [{"nfs": {"server": "files", "path": "/models"}}, {"hostPath": {"path": "/models"}}]
)
def test_a_model_on_a_share_is_a_path_though_an_empty_volume_lies_around_it(
    volume: Mapping[str, Any],
) -> None:
    inside = {"name": "share", "mountPath": f"{PLACE}/share"}
    pod = {
        "containers": [container(f"--model={PLACE}/share/llama", volumeMounts=[dict(MOUNT), inside])],
        "volumes": [{"name": "provided", "emptyDir": {}}, {"name": "share", **volume}],
    }
    assert spec_of(deployment(pod))["model"]["source"] == f"{PLACE}/share/llama"


def test_a_place_that_nobody_says_what_is_downloaded_to_is_no_path_of_the_image() -> None:
    with pytest.raises(ImportProblem, match="empty until something fills it"):
        by_format(uri=None)


def test_a_folder_of_an_image_is_no_path_of_the_engine_s_image() -> None:
    pod = {
        "containers": [container("--model=/mnt/models/part", volumeMounts=[dict(MOUNT)])],
        "volumes": [{"name": "provided", "image": {"reference": "example.com/weights:1"}}],
    }
    with pytest.raises(ImportProblem, match="the folder 'part' of oci://"):
        deployment(pod)


def test_pods_get_no_label_by_which_kserve_takes_them_for_its_own() -> None:
    labels = {"serving.kserve.io/inferenceservice": "chat", "team": "chat"}
    imported = deployment({"containers": [{**container(), "args": ["--model=a/b"]}]}, {"labels": labels})
    assert spec_of(imported)["podLabels"] == {"team": "chat"}
    assert [fate.why for fate in imported.lost] == ["KServe would take the pod for one of its own"]


@pytest.mark.parametrize(
    ("low", "high", "replicas", "scaling"),
    [
        (0, 0, None, None),
        (2, 0, None, {"min": 2}),
        (None, 0, None, None),
        (2, 2, 2, None),
        (1, 3, None, {"min": 1, "max": 3}),
    ],
)
def test_no_limit_of_replicas_is_no_stop(
    low: int | None, high: int, replicas: int | None, scaling: Mapping[str, int] | None
) -> None:
    imported = by_format(minReplicas=low, maxReplicas=high)
    assert (spec_of(imported).get("replicas"), spec_of(imported).get("scaling")) == (replicas, scaling)
    said = [fate.what for fate in imported.lost if "maxReplicas" in fate.what]
    assert said == ([] if high else ["spec.predictor.maxReplicas: 0"])
