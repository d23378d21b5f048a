"""`plimsoll images`: what a mirror must hold, from nothing, from the admin's file and from resources."""

import json
from pathlib import Path

from plimsoll import __version__
from plimsoll.cli.images import BUNDLED
from tests.cli.running import plimsoll

RESOURCE = """
apiVersion: plimsoll.dev/v1alpha1
kind: LLMDeployment
metadata: {name: chat, namespace: team}
spec:
  model: {source: "hf://Qwen/Qwen3-8B"}
  engine: {image: "registry.example/own:1"}
  storage: {weights: {image: {reference: "registry.example/weights:2"}}}
"""
ADMIN = """
apiVersion: plimsoll.dev/v1alpha1
kind: OperatorConfig
registry: {mirror: mirror.example/all}
engines:
  versions:
    - {version: "0.20.0"}
    - {version: "0.33.0", gaudiImage: "habana.example/vllm:1"}
"""


def listed(*arguments: str) -> dict[str, str]:
    ran = plimsoll("images", "-o", "json", *arguments)
    assert ran.code == 0, ran.err
    return {one["image"]: one["pulled"] for one in json.loads(ran.out)}


def test_without_being_told_more_it_is_the_operator_and_the_newest_engine():
    found = listed()
    assert next(iter(found)) == f"plimsoll:{__version__}"
    assert len(found) == 4
    assert all(image == pulled for image, pulled in found.items())


def test_the_admins_versions_images_and_mirror_are_followed(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(ADMIN)
    found = listed("--config", str(file))
    assert found["habana.example/vllm:1"] == "mirror.example/all/vllm:1"
    versions = {image.rpartition(":")[2] for image in found if "docker.io" in image}
    assert versions == {"v0.20.0", "v0.33.0"}
    assert all(
        pulled.startswith("mirror.example/all/") for image, pulled in found.items() if "docker.io" in image
    )


def test_the_dockerfiles_that_may_stand_in_are_named_where_they_have_the_version(tmp_path: Path):
    root = Path(__file__).parents[2]
    for (_, version), folder in BUNDLED.items():
        dockerfile = (root / folder / "Dockerfile").read_text()
        assert f'org.opencontainers.image.version="{version}"' in dockerfile, folder
    ran = plimsoll("images")
    assert "runtime/images/cuda" in ran.out
    assert "runtime/images/rocm" in ran.out
    file = tmp_path / "config.yaml"
    file.write_text(
        ADMIN.replace('"0.33.0", gaudiImage: "habana.example/vllm:1"', '"0.20.0"').replace(
            '    - {version: "0.20.0"}\n', "", 1
        )
    )
    assert "runtime/images" not in plimsoll("images", "--config", str(file)).out


def test_the_supervisor_s_image_is_told_apart_where_a_mirror_has_it(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\nregistry: {mirror: mirror.example/all}\n"
    )
    ran = plimsoll("images", "-o", "json", "--config", str(file))
    own = [one["pulled"] for one in json.loads(ran.out) if one["image"] == f"plimsoll:{__version__}"]
    assert own == [f"plimsoll:{__version__}", f"mirror.example/all/plimsoll:{__version__}"]


def test_images_that_a_resource_names_are_listed_as_they_stand_there(tmp_path: Path):
    file = tmp_path / "llm.yaml"
    file.write_text(RESOURCE)
    found = listed("-f", str(file))
    assert found["registry.example/own:1"] == "registry.example/own:1"
    assert "registry.example/weights:2" in found


def test_the_supervisors_image_is_listed_where_pods_get_it_by_another_name(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(ADMIN + "runtime: {enabled: true}\n")
    assert f"plimsoll:{__version__}" in listed("--config", str(file))
    file.write_text(
        ADMIN.replace("registry: {", "registry: {runtimeImage: own.example/plimsoll:7, ")
        + "runtime: {enabled: true}\n"
    )
    assert listed("--config", str(file))["own.example/plimsoll:7"] == "own.example/plimsoll:7"
