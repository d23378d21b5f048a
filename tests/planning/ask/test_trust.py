"""What is told of an argument that may not be."""

from __future__ import annotations

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, finding, planned, reasons


def test_what_a_flag_is_set_to_is_not_repeated_as_it_may_be_a_key() -> None:
    made = planned(deployment(engine={"extraArgs": ["--api-key=hunter2"]}))
    assert made.outcome is Outcome.INVALID
    assert [one.value for one in made.findings if one.reason == "FlagOwned"] == ["--api-key"]
    assert "hunter2" not in repr(made.findings)


def test_a_value_in_the_flags_own_word_is_not_repeated_either() -> None:
    admin = OperatorConfig.model_validate({"trust": {"extraArgs": {"allow": ["--seed"]}}})
    made = planned(deployment(engine={"extraArgs": ["--hf-token hunter2"]}), config=admin)
    assert {"FlagNotApart", "NotTrusted"} <= set(reasons(made))
    assert "hunter2" not in repr(made.findings)


@pytest.mark.parametrize("word", ["--seed 3", "--max-model-len 8192"])
def test_a_flag_and_its_value_are_two_words_as_no_shell_parts_them(word: str) -> None:
    flag = word.partition(" ")[0]
    made = planned(deployment(engine={"extraArgs": ["--enforce-eager", word]}))
    told = finding(made, "FlagNotApart")
    assert made.outcome is Outcome.INVALID
    assert (told.field, told.value) == ("engine.extraArgs[1]", flag)
    assert told.remedy == f"{flag} and its value as two entries, or as one with = between them"


def test_blanks_in_a_value_are_the_values_own() -> None:
    words = [
        '--override-generation-config={"stop": "a b"}',
        "--chat-template",
        "{{ messages }} -x",
        " ",
        "=a b",
    ]
    assert "FlagNotApart" not in reasons(planned(deployment(engine={"extraArgs": words})))


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("HF_TOKEN", "model.tokenSecret"),
        ("VLLM_API_KEY", "networking.apiKeySecret"),
        ("https_proxy", "network in the admin's config"),
        ("LD_PRELOAD", "leave it out"),
    ],
)
def test_of_a_variable_that_is_never_passed_on_the_field_is_told_that_says_it(
    variable: str, field: str
) -> None:
    made = planned(deployment(engine={"env": [{"name": variable, "value": "x"}]}), config=OperatorConfig())
    told = finding(made, "NotTrusted")
    assert told.remedy == field
    assert "is never passed on: " in told.message
