"""What pods of two thousand resources tell the engine, judged by vLLM's own parsers up to the engine's arguments."""

import pytest

from plimsoll.engines.command import TEMPLATE_FILE
from tests.real_parser.telling import RESOURCES, VERSIONS, told

FEATURES = {
    "quantization": "--quantization ",
    "KV dtype": "--kv-cache-dtype ",
    "LoRA": "--enable-lora ",
    "adapters by name": "--lora-modules ",
    "speculative": "--speculative-config ",
    "multimodal limits": "--limit-mm-per-prompt ",
    "no encoders": "--language-model-only ",
    "tool parser": "--tool-call-parser ",
    "reasoning parser": "--reasoning-parser ",
    "structured output": "--structured-outputs-config ",
    "chat template": "--chat-template ",
    "RoPE overrides": "--hf-overrides ",
    "KV offload": "--kv-offloading-size ",
    "weight offload": "--cpu-offload-gb ",
    "experts spread": "--enable-expert-parallel ",
    "experts balanced": "--enable-eplb ",
    "data ranks": "--data-parallel-size ",
    "data ranks, balanced by node": "--data-parallel-hybrid-lb ",
    "data ranks, balanced by the Service": "--data-parallel-external-lb ",
    "TLS": "--ssl-certfile ",
    "CORS": "--allowed-origins ",
    "groups by mp": "--nnodes ",
    "Ray": "--distributed-executor-backend ray ",
    "pooling": "--runner pooling ",
    "the user's own arguments": "--seed ",
}
KINDS = ("API key", "MIG", "CPU pool", "group by Ray")
"""What is told otherwise than by a flag of its own."""


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_that_a_command_line_is_made_from_says_something_in_many(version):
    _, made_from = told(version)
    assert len(made_from.read) > 80, "nothing was watched"
    assert made_from.silent(least=50) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_feature_is_in_many_command_lines(version):
    lines, _ = told(version)
    texts = [" ".join(words) + " " for words, _, _ in lines]
    found = {name: sum(flag in text for text in texts) for name, flag in FEATURES.items()}
    found |= {kind: sum(kind in kinds for _, _, kinds in lines) for kind in KINDS}
    assert {name: count for name, count in found.items() if count < 20} == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_parser_takes_what_two_thousand_resources_tell_the_engine(parsers, version, template):
    lines = [
        [template if word == TEMPLATE_FILE else word for word in words] for words, _, _ in told(version)[0]
    ]
    verdicts = parsers(version).verdicts(lines)
    assert len(lines) >= RESOURCES
    assert [(line, v) for line, v in zip(lines, verdicts, strict=True) if v["stage"] is not None] == []
