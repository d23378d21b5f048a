"""A group in which no field must be set, and not all may, is told by the forms in which it is written."""

import pytest

from plimsoll.api.loading import load_deployments

HEAD = "apiVersion: plimsoll.dev/v1alpha1\nkind: LLMDeployment\nmetadata: {name: chat}\n"
FORMS = ("{annotation: true}", '{query: "sum(gateway_queue)"}')


def problems(zero: str) -> list[str]:
    spec = f"spec: {{model: {{source: 'hf://Qwen/Qwen3-8B'}}, scaling: {{max: 3, zero: {zero}}}}}\n"
    return [str(problem) for problem in load_deployments(HEAD + spec).problems]


@pytest.mark.parametrize(
    ("zero", "wrong", "form"),
    [
        ("{}", "zero.wake: must be set: a group with query or annotation", "{}"),
        ("true", "zero: must be a group of fields: wake, afterSeconds", "{{wake: {}}}"),
        ("annotation", "zero: must be a group of fields: wake, afterSeconds", "{{wake: {}}}"),
        ("{wake: true}", "zero.wake: must be a group of fields: query, annotation", "{}"),
        ("{wake: annotation}", "zero.wake: must be a group of fields: query, annotation", "{}"),
    ],
)
def test_a_wake_signal_that_is_none_is_told_in_which_forms_it_is_written(
    zero: str, wrong: str, form: str
) -> None:
    (problem,) = problems(zero)
    forms = " or ".join(form.format(each) for each in FORMS)
    assert problem.startswith(f"spec.scaling.{wrong}; write {forms}")


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_is_proposed_is_taken(form: str) -> None:
    assert problems(f"{{wake: {form}}}") == []


def test_a_signal_that_says_nothing_breaks_a_rule_that_names_both_forms() -> None:
    assert problems("{wake: {}}") == [
        "spec.scaling.zero.wake: exactly one of query and annotation (true) must be set"
    ]
