"""What pods tell the engine, in the words that the kubelet makes of them, judged by vLLM's own parsers.

Two thousand resources up to the engine stage, hundreds of them up to the whole configuration. There the platform is a CPU
and the model a folder with a config.json, so what needs a GPU or other weights is left out by name.
"""

import json

import pytest

from plimsoll.engines.command import TEMPLATE_FILE
from plimsoll.facts.engines import engine_facts, listed_versions
from plimsoll.facts.models import lookup
from plimsoll.render.sets import freeze
from tests.real_parser import regenerate, setup
from tests.render.building import config, engine_of
from tests.render.generating import DENSE, MIXTURE, generated
from tests.render.test_hostile import expanded

PLACE = setup.folder()
REASON = setup.missing(PLACE)
pytestmark = pytest.mark.skipif(
    REASON is not None, reason=f"no vLLM parsers: {REASON}; run `make test-parser`"
)
ADMIN = config()
VERSIONS = listed_versions("vllm")
PLACED = {
    "PLIMSOLL_RANK": "1", "PLIMSOLL_LEADER": "chat-0.chat-headless.x.svc", "LWS_WORKER_INDEX": "1", "LWS_LEADER_ADDRESS": "lws-0",
}  # fmt: skip
SHAPES = {
    "dense": {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 8, "num_key_value_heads": 8,
    },
    "mixture": {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_hidden_layers": 8, "num_key_value_heads": 8,
        "moe_intermediate_size": 128, "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "norm_topk_prob": True,
    },
}  # fmt: skip
COMMON = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8, "head_dim": 32, "vocab_size": 1024, "hidden_act": "silu",
    "max_position_embeddings": 65536, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-6, "rope_theta": 1000000, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
NEEDS_A_GPU = (
    "--enable-sleep-mode", "--enable-eplb", "--kv-offloading-size", "--cpu-offload-gb", "--attention-backend",
    "--decode-context-parallel-size",
)  # fmt: skip
NEEDS_ITS_MODEL = (
    "--reasoning-parser", "--quantization", "--speculative-config", "--runner", "--language-model-only", "--limit-mm-per-prompt", "--load-format",
    "--tokenizer", "--kv-cache-dtype", "--revision", "--hf-overrides", "--distributed-executor-backend ray",
)  # fmt: skip


def told(version, count, template):
    """The words behind `vllm serve` of every pod, as its process will see them, and whether the model has experts."""
    facts = engine_facts("vllm", version)
    models = {False: lookup(DENSE), True: lookup(MIXTURE)}
    for asked, chosen, mixture in generated(count, facts):
        revision = freeze(asked, chosen, facts=facts, config=ADMIN, model=models[mixture])
        for pod in filter(None, (revision.leader, revision.worker)):
            engine = engine_of(pod)
            words = [*engine["command"], *engine["args"]]
            begin = [
                place + 2 for place in range(len(words)) if words[place : place + 2] == ["vllm", "serve"]
            ]
            if not begin:
                continue
            words = [expanded(word, PLACED) for word in words[begin[0] :]]
            yield [str(template) if word == TEMPLATE_FILE else word for word in words], mixture


@pytest.fixture
def template(tmp_path):
    file = tmp_path / "template.jinja"
    file.write_text("{{ messages }}", "utf-8")  # the parser looks whether a pod's file is there
    return file


@pytest.mark.parametrize("version", VERSIONS)
def test_the_parser_takes_what_two_thousand_resources_tell_the_engine(version, template):
    lines = [line for line, _ in told(version, 2000, template)]
    verdicts = regenerate.ask(PLACE, version, told=lines)
    assert len(lines) >= 2000
    assert [(line, v) for line, v in zip(lines, verdicts, strict=True) if v["stage"] is not None] == []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_engine_makes_a_whole_configuration_of_what_it_is_told(version, shape, template, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**COMMON, **SHAPES[shape]}))
    lines = [
        line
        for line, mixture in told(version, 6000, template)
        if mixture == (shape == "mixture") and is_judged(line)
    ]
    lines = lines[:120]
    verdicts = regenerate.ask(PLACE, version, "--config", str(folder), told=lines)
    assert len(lines) >= 50
    assert [(line, v) for line, v in zip(lines, verdicts, strict=True) if v["stage"] is not None] == []


def is_judged(line):
    text = " ".join(line)
    return not any(flag in text for flag in (*NEEDS_A_GPU, *NEEDS_ITS_MODEL))
