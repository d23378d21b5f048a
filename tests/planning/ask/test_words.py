"""Words that go to the engine as they are: what its version does not know is refused before a device is taken."""

import pytest

from plimsoll.planning.plan import Outcome, Severity
from tests.planning.asking import LLAMA, deployment, finding, planned, reasons

GGUF = {"model": {"source": LLAMA, "loadFormat": "gguf"}}
UNKNOWN = {"toolCalling": {"parser": "nope"}}


def asked(version="0.33.0", *, engine=None, **spec):
    return deployment(replicas=1, engine={"version": version, **(engine or {})}, **spec)


@pytest.mark.parametrize(
    ("made", "field", "words"),
    [
        (asked(**GGUF), "model.loadFormat", "it knows auto"),
        (asked(model={"source": LLAMA, "loadFormat": "bitsandbytes"}), "model.loadFormat", "safetensors"),
        (asked(engine={"attentionBackend": "TREE_ATTN"}), "engine.attentionBackend", "TRITON_ATTN"),
        (asked(**UNKNOWN), "toolCalling.parser", "hermes"),
        (asked(reasoning={"parser": "hermes"}), "reasoning.parser", "deepseek_r1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_word_that_the_version_does_not_know_is_refused_with_those_that_it_knows(made, field, words):
    plan = planned(made)
    assert plan.outcome is Outcome.INVALID
    told = finding(plan, "UnknownWord")
    assert told.field == field
    assert words in told.message


@pytest.mark.parametrize(
    "made",
    [
        asked("0.20.2", **GGUF),
        asked(engine={"attentionBackend": "flashinfer"}),
        asked(engine={"attentionBackend": "auto"}),
        asked(toolCalling={"parser": "hermes"}, reasoning={"parser": "qwen3"}),
        asked(toolCalling={"parser": "nope", "autoChoice": False}),
        asked(engine={"extraArgs": ["--tool-parser-plugin=/own/parser.py"]}, **UNKNOWN),
        # No list of its own.
        asked("0.25.0", **GGUF),
        asked("0.33.1", **UNKNOWN),
    ],
    ids=lambda made: repr(made.spec.to_dict()),
)
def test_what_it_knows_or_might_know_is_planned(made):
    config = {"trust": {"extraArgs": {"allow": ["--tool-parser-plugin"]}}}
    plan = planned(made, config=config)
    assert "UnknownWord" not in reasons(plan)
    assert plan.sets


def test_of_an_image_that_is_not_the_project_s_own_it_is_told():
    version = {"version": "0.33.0", "image": "registry.example.com/vllm-with-plugins:0.33.0"}
    plan = planned(asked(**GGUF), config={"engines": {"versions": [version]}})
    told = finding(plan, "UnknownWord")
    assert told.severity is Severity.WARNING
    assert "plugin" in told.remedy
    assert plan.sets


@pytest.mark.parametrize(("version", "known"), [("0.20.2", False), ("0.33.0", True)])
def test_a_format_of_the_cache_is_one_that_the_version_knows(version, known):
    plan = planned(asked(version, memory={"kvCacheDtype": "int4_per_token_head"}))
    assert ("UnknownKvDtype" not in reasons(plan)) is known
    assert bool(plan.sets) is known
