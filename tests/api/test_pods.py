"""What a patch of pods may bring: JSON that any pod could be written down with."""

from __future__ import annotations

import json

import pytest

from plimsoll.api.loading import load_deployments

HEAD = "apiVersion: plimsoll.dev/v1alpha1\nkind: LLMDeployment\nmetadata: {name: chat}\n"


def problems(value: str) -> list[str]:
    patch = f"{{op: add, path: /spec/x, value: {json.dumps(value)}}}"
    spec = f"spec: {{model: {{source: 'hf://Qwen/Qwen3-8B'}}, podPatches: [{patch}]}}\n"
    return [str(problem) for problem in load_deployments(HEAD + spec).problems]


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", '[{"a": [1, NaN]}]', '{"a": {"b": 1e999}}']
)
def test_a_number_that_python_reads_and_json_cannot_say_is_refused_with_its_field(value: str) -> None:
    """It ended every turn as a mistake of ours."""
    why = "holds a number that JSON cannot say: NaN, or one that is too large; write one as 1.5"
    assert problems(value) == [f"spec.podPatches[0].value: {why} (found {value!r})"]


@pytest.mark.parametrize(
    "value", ["1.5", "-0", "1e300", "10", '"NaN"', '{"NaN": "1e999"}', "null", "[[true]]"]
)
def test_any_other_number_and_every_text_passes(value: str) -> None:
    assert problems(value) == []
