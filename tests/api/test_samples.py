"""Each rule has a sample that breaks it and nothing else; valid samples are valid and survive a round trip."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from plimsoll.api.base import ApiModel, Rule
from plimsoll.api.loading import load_deployments
from plimsoll.api.problems import model_of
from plimsoll.api.v1alpha1 import LLMDeployment

SAMPLES = Path(__file__).parent / "samples"
VALID = sorted((SAMPLES / "valid").glob("*.yaml"))
INVALID = sorted((SAMPLES / "invalid").glob("*.yaml"))


def rules(model: type[ApiModel]) -> Iterator[Rule]:
    yield from model.rules
    for info in model.model_fields.values():
        inner = model_of(info.annotation)
        if inner is not None and issubclass(inner, ApiModel):
            yield from rules(inner)


RULES = {rule.name: rule for rule in rules(LLMDeployment)}


def test_each_rule_has_a_sample_that_breaks_it() -> None:
    assert sorted(RULES) == sorted(path.stem for path in INVALID)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_sample_breaks_its_rule_and_no_other(path: Path) -> None:
    loaded = load_deployments(path.read_text())
    rule = RULES[path.stem]
    assert [problem.message for problem in loaded.problems] == [rule.message]
    assert loaded.problems[0].field.endswith(rule.field or "")
    assert not loaded.deployments


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_sample_is_valid_and_survives_a_round_trip(path: Path) -> None:
    loaded = load_deployments(path.read_text())
    assert not loaded.problems
    (deployment,) = loaded.deployments
    again = load_deployments(yaml.safe_dump(deployment.to_dict()))
    assert again.deployments == loaded.deployments
    assert again.deployments[0].to_dict() == deployment.to_dict()


def test_the_samples_use_every_field_of_the_spec() -> None:
    used: set[str] = set()
    for path in VALID:
        (deployment,) = load_deployments(path.read_text()).deployments
        used |= set(deployment.to_dict()["spec"])
    fields = {info.alias for info in type(deployment.spec).model_fields.values()}
    assert used == fields


def test_null_means_absent_as_it_does_for_the_api_server() -> None:
    (deployment,) = load_deployments((SAMPLES / "valid/nulls.yaml").read_text()).deployments
    assert deployment.to_dict()["spec"] == {
        "model": {"source": "hf://Qwen/Qwen3-8B"},
        "scaling": {"max": 3},
    }


def test_no_source_of_an_adapter_leaves_its_folder() -> None:
    text = (SAMPLES / "invalid" / "model-climbs.yaml").read_text()
    adapters = "adapters: {items: [{name: sql, source: pvc://models/../secrets}]}"
    loaded = load_deployments(text.replace(text[text.index("speculative") :], adapters))
    assert [problem.field for problem in loaded.problems] == ["spec.adapters.items[0].source"]
