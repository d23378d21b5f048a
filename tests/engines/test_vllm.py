import json
from pathlib import Path

import pytest

from plimsoll.api.loading import load_deployments
from plimsoll.api.v1alpha1.model import SecretKey
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines import ENGINES
from plimsoll.engines.vllm import command
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_flags import FlagKind
from plimsoll.facts.engines import engine_facts
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.settings import LoraSlots, RopeScaling, Speculation
from tests.engines.sets import GIB, chosen

SAMPLES = sorted((Path(__file__).parents[1] / "api" / "samples" / "valid").glob("*.yaml"))
NEWEST = engine_facts("vllm")


def spec(source="hf://Qwen/Qwen3-32B", **groups):
    return LLMDeploymentSpec.model_validate({"model": {"source": source}, **groups})


def flags_of(argv):
    """Flag to its words, as an argument parser would gather them."""
    gathered: dict[str, list[str]] = {}
    for word in argv[3:]:
        if word.startswith("--"):
            gathered[word] = last = []
        else:
            last.append(word)
    return gathered


def told(user=None, **others):
    return flags_of(command(user or spec(), chosen(**others), NEWEST).argv)


def test_every_engine_of_the_registry_is_sorted_and_known():
    assert list(ENGINES) == sorted(ENGINES)
    assert all(engine_facts(name).name == name for name in ENGINES)


def test_a_plain_replica_is_told_every_decided_setting_even_where_it_equals_the_default():
    assert command(spec(), chosen(), NEWEST).argv == (
        *("vllm", "serve", "Qwen/Qwen3-32B"),
        *("--served-model-name", "Qwen/Qwen3-32B"),
        *("--port", "8000"),
        *("--gpu-memory-utilization", "0.92"),
        *("--max-model-len", "8192"),
        *("--max-num-seqs", "64"),
        *("--max-num-batched-tokens", "8192"),
        "--enable-prefix-caching",
        *("--shutdown-timeout", "120"),
    )


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("hf://org/name", "org/name"),
        ("org/name", "org/name"),
        ("modelscope://org/name", "org/name"),
        ("s3://bucket/folder", "s3://bucket/folder"),
        ("pvc://claim/a/b", "/models/a/b"),
        ("pvc://claim", "/models"),
        ("oci://registry/model:1", "/models"),
        ("/opt/model", "/opt/model"),
    ],
)
def test_the_engine_loads_from_where_the_pod_finds_the_model(source, word):
    assert command(spec(source), chosen(), NEWEST).argv[2] == word


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(tensor=4), {"--tensor-parallel-size": ["4"]}),
        (Layout(tensor=2, pipeline=2), {"--tensor-parallel-size": ["2"], "--pipeline-parallel-size": ["2"]}),
        (
            Layout(data=8, expert_parallel=True),
            {"--data-parallel-size": ["8"], "--enable-expert-parallel": []},
        ),
        (Layout(tensor=8, decode_context=2), {"--decode-context-parallel-size": ["2"]}),
    ],
)
def test_a_layout_is_told_and_what_is_one_is_not(layout, words):
    found = told(layout=layout)
    assert words == {flag: found.get(flag) for flag in words}
    assert "1" not in [word for flag, values in found.items() if "parallel" in flag for word in values]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"kv_cache_bytes": 3 * GIB}, {"--kv-cache-memory-bytes": [str(3 * GIB)]}),
        ({"kv_dtype": Dtype.FP8}, {"--kv-cache-dtype": ["fp8"]}),
        ({"block_size": 64}, {"--block-size": ["64"]}),
        ({"prefix_caching": False}, {"--no-enable-prefix-caching": []}),
        ({"eager": True, "max_graph_batch": 8}, {"--enforce-eager": []}),
        ({"max_graph_batch": 32}, {"--max-cudagraph-capture-size": ["32"]}),
        ({"watermark_permille": 5}, {"--watermark": ["0.005"]}),
        ({"max_queued_requests": 19}, {"--max-num-queued-reqs": ["19"]}),
        ({"weight_offload_bytes": GIB * 5 // 2}, {"--cpu-offload-gb": ["2.5"]}),
        (
            {"kv_offload_bytes": 24 * GIB},
            {"--kv-offloading-size": ["24"], "--kv-offloading-backend": ["native"]},
        ),
        (
            {"rope": RopeScaling(kind="yarn", factor="2.0", theta=1e3, positions=65536)},
            {
                "--hf-overrides": [
                    '{"max_position_embeddings":65536,"rope_parameters":{"factor":2.0,"rope_theta":1000.0,"rope_type":"yarn"}}'
                ]
            },
        ),
    ],
)
def test_each_decided_setting_has_its_flag(flags, words):
    found = told(**flags)
    assert words == {flag: found.get(flag) for flag in words}


def test_a_fixed_pool_is_told_beside_the_share_that_must_be_free_at_the_start():
    assert told(kv_cache_bytes=GIB, utilization=0.23)["--gpu-memory-utilization"] == ["0.23"]


def test_a_cpu_pool_is_told_by_a_variable_and_takes_no_share_of_a_device():
    made = command(spec(topology={"cpu": {}}), chosen(vendor="cpu", kv_cache_bytes=4 * GIB), NEWEST)
    assert made.env["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert not {"--gpu-memory-utilization", "--kv-cache-memory-bytes"} & set(made.argv)


@pytest.mark.parametrize(
    ("groups", "flags", "words"),
    [
        ({"toolCalling": {"parser": "hermes"}}, {}, {"--tool-call-parser": ["hermes"], "--enable-auto-tool-choice": []}),
        ({"toolCalling": {"parser": "hermes", "autoChoice": False}}, {}, {"--tool-call-parser": ["hermes"]}),
        ({"rollout": {"drainSeconds": 90}}, {}, {"--shutdown-timeout": ["90"]}),
        ({"reasoning": {"parser": "qwen3"}}, {}, {"--reasoning-parser": ["qwen3"]}),
        ({"structuredOutput": {"backend": "xgrammar"}}, {}, {"--structured-outputs-config": ['{"backend":"xgrammar"}']}),
        ({"chatTemplate": {"inline": "x"}}, {}, {"--chat-template": ["/etc/plimsoll/chat-template.jinja"]}),
        ({"multimodal": {"textOnly": True}}, {}, {"--language-model-only": []}),
        ({"multimodal": {"images": 2, "videos": 0}}, {}, {"--limit-mm-per-prompt": ['{"image":2,"video":0}']}),
        ({"model": {"source": "a/b", "task": "rerank"}}, {}, {"--runner": ["pooling"], "--convert": ["classify"]}),
        ({"quantization": {"method": "fp8_per_tensor"}}, {}, {"--quantization": ["fp8_per_tensor"]}),
        ({"networking": {"corsOrigins": ["https://a.example"]}}, {}, {"--allowed-origins": ['["https://a.example"]']}),
        (
            {"networking": {"tlsSecret": "cert"}},
            {},
            {"--ssl-certfile": ["/etc/plimsoll/tls/tls.crt"], "--enable-ssl-refresh": []},
        ),
        (
            {"speculative": {"method": "ngram", "tokens": 4, "lookupMax": 3}},
            {"speculation": Speculation(method="ngram", tokens=4)},
            {"--speculative-config": ['{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":3}']},
        ),
        (
            {"adapters": {"items": [{"name": "sql", "source": "hf://a/sql"}, {"name": "x", "source": "pvc://b/y"}]}},
            {"lora": LoraSlots(max_loras=2, max_rank=16, max_cpu_loras=2)},
            {"--lora-modules": ['{"name":"sql","path":"a/sql"}', '{"name":"x","path":"/adapters/1/y"}']},
        ),
    ],
)  # fmt: skip
def test_each_ability_has_its_flags(groups, flags, words):
    user = LLMDeploymentSpec.model_validate({"model": {"source": "a/b"}, **groups})
    assert words == {flag: told(user, **flags).get(flag) for flag in words}


def test_secrets_are_references_and_never_words():
    user = spec(
        model={"source": "a/b", "tokenSecret": {"name": "hub"}},
        networking={"apiKeySecret": {"name": "keys", "key": "api"}},
        engine={"env": [{"name": "PLAIN", "value": "1"}, {"name": "HIDDEN", "secret": {"name": "s", "key": "k"}}]},
    )  # fmt: skip
    made = command(user, chosen(), NEWEST)
    assert made.secret_env == {
        "HF_TOKEN": SecretKey(name="hub", key="token"),
        "VLLM_API_KEY": SecretKey(name="keys", key="api"),
        "HIDDEN": SecretKey(name="s", key="k"),
    }
    assert made.env["PLAIN"] == "1"
    assert "HIDDEN" not in made.env


def test_what_a_version_has_no_word_for_is_left_out_and_said():
    made = command(spec(), chosen(watermark_permille=5), engine_facts("vllm", "0.20.2"))
    assert "--watermark" not in made.argv
    assert [(gone.flag, gone.why) for gone in made.unsaid] == [
        ("--watermark 0.005", "vllm 0.20.2 has no such flag")
    ]


def test_a_context_is_not_stretched_around_a_base_that_nobody_knows():
    made = command(spec(), chosen(rope=RopeScaling(kind="yarn", factor="2.0")), NEWEST)
    assert "--hf-overrides" not in made.argv
    assert [gone.flag for gone in made.unsaid] == ["--hf-overrides"]


def test_a_stretched_context_keeps_what_else_the_checkpoint_says_of_its_positions():
    own = '{"beta_fast":32,"partial_rotary_factor":0.25}'
    found = told(rope=RopeScaling(kind="yarn", factor="2.0", theta=1e3, others=own))
    assert found["--hf-overrides"] == [
        '{"rope_parameters":{"beta_fast":32,"factor":2.0,"partial_rotary_factor":0.25,"rope_theta":1000.0,"rope_type":"yarn"}}'
    ]


def test_inside_a_larger_config_the_engine_is_told_of_that_of_the_text():
    found = told(rope=RopeScaling(kind="linear", factor="2.0", nested=True))
    assert found["--hf-overrides"] == [
        '{"text_config":{"rope_parameters":{"factor":2.0,"rope_type":"linear"}}}'
    ]
    found = told(rope=RopeScaling(kind="yarn", factor="2.0", positions=8192, nested=True))
    assert found["--hf-overrides"] == [
        '{"text_config":{"max_position_embeddings":8192,"rope_parameters":{"factor":2.0,"rope_type":"yarn"}}}'
    ]


def test_extra_arguments_come_last_and_untouched():
    user = spec(engine={"extraArgs": ["--seed", "7", "--x={a b}"]})
    assert command(user, chosen(), NEWEST).argv[-3:] == ("--seed", "7", "--x={a b}")


@pytest.mark.parametrize("version", ["0.20.2", "0.33.0"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_flag_made_from_a_valid_resource_is_one_that_the_version_lists(sample, version):
    facts = engine_facts("vllm", version)
    loaded = load_deployments(sample.read_bytes(), file=sample.name).or_raise()
    for deployment in loaded:
        user = deployment.spec.model_copy(
            update={"engine": deployment.spec.engine.model_copy(update={"extra_args": ()})}
        )
        made = command(user, chosen(lora=LoraSlots(max_loras=1, max_rank=16, max_cpu_loras=1)), facts)
        for name, words in flags_of(made.argv).items():
            match = facts.flags.find(name)
            assert match is not None, name
            assert not match.abbreviated, name
            _check_words(match.flag, words)


def _check_words(flag, words):
    if flag.kind is FlagKind.BOOL:
        assert words == []
    elif flag.nargs == "+":
        assert words
    else:
        assert len(words) == 1
        if flag.kind is FlagKind.JSON:
            json.loads(words[0])
        if flag.choices:
            assert words[0] in flag.choices
