"""A text of the wrong form is told what form is right in words, never by a pattern."""

from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.loading import load_config, load_deployments
from plimsoll.api.problems import SpecError
from plimsoll.api.spellings import SPELLINGS
from plimsoll.api.v1alpha1 import LLMDeployment

HEAD = "apiVersion: plimsoll.dev/v1alpha1\nkind: LLMDeployment\nmetadata: {name: a}\nspec:\n  model: {source: a/b}\n"


def patterns(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        found = node.get("pattern")
        if isinstance(found, str):
            yield found
        for inner in node.values():
            yield from patterns(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from patterns(inner)


@pytest.mark.parametrize("model", [LLMDeployment, OperatorConfig])
def test_every_pattern_of_the_api_is_told_in_words(model: type[LLMDeployment] | type[OperatorConfig]) -> None:
    assert set(patterns(model.model_json_schema())) - set(SPELLINGS) == set()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("engine: {version: v0.33.0}", "as 0.33.0 or 0.33.0rc1, without a v before it (found 'v0.33.0')"),
        ("cost: {maxPerHour: '$5'}", "must be a number in plain digits"),
        ("slo: {availabilityPercent: '99.9%'}", "without a sign"),
        ("slo: {availabilityPercent: '0.999'}", "is 50 to 99.9999, not 0.999"),
        ("slo: {availabilityPercent: '100'}", "is 50 to 99.9999, not 0.999"),
        ("networking: {gateway: {name: a, hostnames: ['https://a.b']}}", "without a scheme"),
        ("storage: {cache: {emptyDir: {sizeLimit: 10GB}}}", "write a number and a unit"),
        (
            "engine: {image: 'https://a.example/vllm:1'}",
            "without https:// (found 'https://a.example/vllm:1')",
        ),
        ("engine: {image: a.example//vllm}", "must be an image as REGISTRY/REPOSITORY:TAG"),
        ("storage: {weights: {image: {reference: 'http://a.example/b'}}}", "without https://"),
    ],
)
def test_a_text_of_the_wrong_form_is_told_the_right_one(spec: str, told: str) -> None:
    said = [str(problem) for problem in load_deployments(f"{HEAD}  {spec}\n").problems]
    assert len(said) == 1
    assert told in said[0]


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("registry: {mirror: 'https://a.example/all'}", "must be a registry as HOST:PORT/PATH, without https://"),
        ("registry: {mirror: a.example//all}", "must be a registry as HOST:PORT/PATH"),
        ("registry: {mirror: a.example//}", "must be a registry as HOST:PORT/PATH"),
        ("registry: {runtimeImage: 'https://a.example/plimsoll:1'}", "must be an image as REGISTRY/REPOSITORY:TAG"),
        ("engines: {versions: [{version: 0.33.0, cpuImage: 'oci://a.example/vllm'}]}", "without https://"),
    ],
)  # fmt: skip
def test_an_address_where_the_name_of_an_image_or_a_registry_belongs_is_refused(
    config: str, told: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load_config(f"apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\n{config}\n")
    assert len(caught.value.problems) == 1
    assert told in str(caught.value.problems[0])


@pytest.mark.parametrize("name", ["a.example", "A.example:5000/all", "a.example/all/of_it/"])
def test_a_mirror_is_named_as_images_name_it(name: str) -> None:
    load_config(f"apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\nregistry: {{mirror: '{name}'}}\n")
