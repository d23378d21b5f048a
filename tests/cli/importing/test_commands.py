import pytest
import yaml

from plimsoll.cli.importing import ImportProblem, Outcome, import_text


def spec_of(text, **options):
    (document,) = import_text(text, **options).documents
    return document["spec"]


def at(spec, path):
    for part in path.split("."):
        spec = spec.get(part) if isinstance(spec, dict) else None
    return spec


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("-tp 4", "topology.tensor", 4),
        ("--tensor_parallel_size=4", "topology.tensor", 4),
        ("-tp 2 -pp 2", "topology.mode", "manual"),
        ("--max-model-len 32k", "workload.contextTokens", 32000),
        ("--max-model-len 32K", "workload.contextTokens", 32768),
        ("--max-model-len 25.6k", "workload.contextTokens", 25600),
        ("--max-model-len auto", "workload.contextTokens", None),
        ("--gpu-memory-utilization 0.9", "memory.utilizationPercent", 90),
        ("--gpu-memory-utilization .925", "memory.utilizationPercent", 92),
        ("--kv-cache-memory-bytes 20G", "memory.kvCacheSize", "20Gi"),
        ("--cpu-offload-gb 2.5", "memory.cpuOffload", "2560Mi"),
        ("--cpu-offload-gb 0", "memory.cpuOffload", None),
        ("--no-enable-prefix-caching", "engine.prefixCaching", False),
        ("--disable-prefix-caching", "engine.prefixCaching", False),
        ("--enforce-eager", "engine.eager", True),
        ("--enforce-eager=true", "engine.eager", True),
        ("--max-num-seqs 8 --max-num-seqs 16", "engine.maxSequences", 16),
        ("--distributed-executor-backend ray", "topology.executor", "ray"),
        ("--data-parallel-size 2 --data-parallel-hybrid-lb", "topology.dataMode", "hybrid"),
        ("--runner pooling --convert embed", "model.task", "embed"),
        ("--task score", "model.task", "rerank"),
        ("--served-model-name a b", "model.servedNames", ["a", "b"]),
        ("--tool-call-parser hermes", "toolCalling.autoChoice", False),
        ("--allowed-origins '[\"https://a.example\"]'", "networking.corsOrigins", ["https://a.example"]),
        ("--seed -1", "engine.extraArgs", ["--seed=-1"]),
        ("-O3", "engine.extraArgs", ["--optimization-level", "3"]),
        ("-cc.cudagraph_mode=NONE", "engine.extraArgs", ["--compilation-config.cudagraph_mode", "NONE"]),
        ("--chat-template '{{ messages }}'", "chatTemplate.inline", "{{ messages }}"),
        ("--enable-lora", "adapters.runtimeLoading", True),
        ("--spec-method ngram --spec-tokens 3", "speculative", {"method": "ngram", "tokens": 3}),
        (
            "--speculative-config.method deepseek_mtp --speculative-config.num_speculative_tokens 2",
            "speculative",
            {"method": "mtp", "tokens": 2},
        ),
        (
            '--speculative-config \'{"model":"org/Llama-eagle3","num_speculative_tokens":3}\'',
            "speculative.method",
            "eagle3",
        ),
        (
            '--hf-overrides \'{"rope_parameters":{"rope_type":"yarn","factor":4.0}}\'',
            "longContext",
            {"ropeType": "yarn", "factor": "4"},
        ),
        ('--limit-mm-per-prompt \'{"image":{"count":2,"width":512}}\'', "multimodal.images", 2),
        ('--structured-outputs-config \'{"backend":"xgrammar"}\'', "structuredOutput.backend", "xgrammar"),
    ],
)
def test_words_become_a_field(words, path, value):
    assert at(spec_of(f"vllm serve org/model {words}"), path) == value


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("vllm serve Qwen/Qwen3-8B", "hf://Qwen/Qwen3-8B"),
        ("vllm serve gpt2", "hf://gpt2"),
        ("vllm serve --model Qwen/Qwen3-8B", "hf://Qwen/Qwen3-8B"),
        ("vllm serve --trust-remote-code Qwen/Qwen3-8B", "hf://Qwen/Qwen3-8B"),
        ("vllm serve /models/x", "/models/x"),
        ("vllm serve s3://bucket/x", "s3://bucket/x"),
        ("VLLM_USE_MODELSCOPE=True vllm serve Qwen/Qwen3-8B", "modelscope://Qwen/Qwen3-8B"),
        ("python3 -m vllm.entrypoints.openai.api_server --model a/b", "hf://a/b"),
        ("python -m vllm.entrypoints.cli.main serve a/b", "hf://a/b"),
        ("/opt/venv/bin/vllm serve a/b", "hf://a/b"),
        ("sudo -E nohup env A=b vllm serve a/b &", "hf://a/b"),
        ("uv run vllm serve a/b", "hf://a/b"),
        ("MODEL=a/b\nvllm serve $MODEL", "hf://a/b"),
        ("export MODEL=a/b; vllm serve ${MODEL}", "hf://a/b"),
        ("vllm serve ${MODEL:-a/b}", "hf://a/b"),
        ("bash -c 'cd /x && exec vllm serve a/b'", "hf://a/b"),
        ("$ vllm serve a/b  # the prompt of a shell\n".replace("  # the prompt of a shell", ""), "hf://a/b"),
        ("docker run vllm/vllm-openai --model a/b", "hf://a/b"),
        ("docker run --entrypoint vllm vllm/vllm-openai serve a/b", "hf://a/b"),
        ("podman run -it --rm -eA=b -p8000:8000 vllm/vllm-openai:latest a/b", "hf://a/b"),
        ("docker run x/vllm bash -c 'vllm serve a/b'", "hf://a/b"),
    ],
)
def test_the_model_is_found_however_the_engine_is_started(text, source):
    assert spec_of(text)["model"]["source"] == source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text is empty"),
        ("ls -la", "no engine is started here"),
        ('vllm serve "a/b', "broken quoting: No closing quotation"),
        ("cat models | xargs vllm serve", "a pipeline or redirection"),
        ("vllm serve < list", "a pipeline or redirection"),
        ("vllm serve --max-model-len 8192", "no model is named"),
        ("vllm serve gs://bucket/model", "gs:// is no source of models"),
        ("vllm serve ./model", "neither ORG/NAME of a hub nor an absolute path"),
        ("vllm serve a/b/c", "neither ORG/NAME of a hub nor an absolute path"),
        ("vllm serve $MODEL", "the value of that variable is not in the text"),
        ("vllm serve /a/../b", "source must not contain"),
        ("docker run --gpus all", "names no image"),
        ("[Service]\nUser=x\n", "no ExecStart"),
        ("[Service]\nExecStart=/bin/true\n", "ExecStart starts no vLLM"),
        ("[Service]\nExecStart=vllm serve 'a/b\n", "broken quoting"),
        ("a: [1", "not YAML that can be read"),
        ("a: 1\na: 2", "not YAML that can be read"),
        ("foo: 1\nbar: 2\n", "it has foo, bar"),
        ("- 1\n- 2\n", "is no map"),
        (
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n",
            "nothing that serves a model here \\(ConfigMap\\)",
        ),
        (
            "kind: Model\napiVersion: example.com/v1\nspec: {url: hf://a/b}\n",
            "nothing that serves a model here",
        ),
        (
            "kind: Model\napiVersion: kubeai.org/v1\nspec: {url: ollama://x, engine: OLlama}\n",
            "another engine",
        ),
        (
            "kind: Model\napiVersion: kubeai.org/v1\nspec: {url: 'hf://a/b', args: x}\n",
            "spec.args: must be a list",
        ),
        (
            "kind: Pod\napiVersion: v1\nspec: {containers: [{image: nginx, command: [nginx]}]}\n",
            "none runs vLLM",
        ),
        ("kind: Pod\napiVersion: v1\nspec: [1]\n", "spec: must be a map"),
        ("services: {web: {image: nginx}}\n", "no service of the compose file runs vLLM"),
        ("servingEngineSpec: {modelSpec: []}\n", "lists no model"),
        (
            "kind: InferenceService\napiVersion: serving.kserve.io/v1beta1\nspec: {predictor: {model: {modelFormat: {name: sklearn}}}}\n",
            "'sklearn' is not served by vLLM",
        ),
        (
            "kind: DynamoGraphDeploymentRequest\napiVersion: nvidia.com/v1beta1\nspec: {model: a/b, backend: sglang}\n",
            "sglang is another engine",
        ),
        (
            "kind: DynamoGraphDeploymentRequest\napiVersion: nvidia.com/v1beta1\nspec: {model: a/b, sla: {ttft: soon}}\n",
            "spec.sla.ttft: 'soon' is not a number",
        ),
    ],
)
def test_a_text_that_cannot_be_read_says_what_would_be_right(text, said):
    with pytest.raises(ImportProblem, match=said):
        import_text(text)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--max-num-sequences 8", "the nearest flags are --max-num-seqs"),
        ("--device-i 1 --max-n 3", "it could mean"),
        ("--tensor-parallel-size two", "'two' is not a whole number"),
        ("--tensor-parallel-size 0", "must be at least 1"),
        ("--max-num-seqs", "needs a value"),
        ("--max-model-len 25.6K", "is a fraction"),
        ("--gpu-memory-utilization 1.9", "is not a share"),
        ("--gpu-memory-utilization nan", "is not a number"),
        ("--kv-cache-dtype fp16", "would not start with it"),
        ("--quantization squeezellm", "use awq or gptq checkpoints"),
        ("--load-format bitsandbytes", "does not know bitsandbytes"),
        ("--tool-call-parser hermess", "the nearest are hermes"),
        ("--enable-auto-tool-choice", "it needs --tool-call-parser"),
        ("--limit-mm-per-prompt nonsense", "is not JSON"),
        ('--speculative-config \'{"method":"medusa","model":"a/b"}\'', "not medusa"),
        ("--lora-modules broken --enable-lora", "names no adapter"),
        ("--max-loras 4", "without --enable-lora there are no adapters"),
        ("--swap-space 4", "instead: memory.kvOffload"),
        ("--gpu-memory-utilization 0.9 --kv-cache-memory-bytes 1G", "the share is then ignored"),
        ("--max-num-seqs 512 --max-num-batched-tokens 256", "below --max-num-seqs 512"),
        ("--headless=maybe", "takes no value"),
        ("--served-model-name '{{ .Name }}'", "it is a template"),
        ("--revision $REV", "a variable whose value is not here"),
        ("--port 80 second/model --host x", "PORT"),
        ("--enable-prefix-caching trailing", "the engine takes one model"),
    ],
)
def test_what_is_wrong_is_lost_with_the_reason(words, why):
    imported = import_text(f"vllm serve org/model {words}")
    reasons = " ".join(fate.why for fate in imported.lost)
    assert why in reasons or why == "PORT"


def test_an_abbreviation_is_read_and_said():
    imported = import_text("vllm serve a/b --gpu-memory-util 0.9")
    assert imported.documents[0]["spec"]["memory"]["utilizationPercent"] == 90
    assert imported.warnings == (
        "--gpu-memory-util was read as --gpu-memory-utilization; a later release may refuse the short form",
    )


def test_devices_that_the_command_leaves_idle_are_said():
    imported = import_text("docker run --gpus 4 vllm/vllm-openai a/b -tp 2")
    assert any("asks for 4 GPUs, and its command uses 2" in warning for warning in imported.warnings)


@pytest.mark.parametrize(
    ("image", "version", "kept"),
    [
        ("vllm/vllm-openai:v0.33.0", "0.33.0", None),
        ("vllm/vllm-openai:latest", None, None),
        ("docker.io/vllm/vllm-openai:v0.20.2-cu129", "0.20.2", None),
        ("example.com/vllm:0.20.2-mine", "0.20.2", "example.com/vllm:0.20.2-mine"),
        ("example.com/dynamo/vllm-runtime:0.7.0", None, "example.com/dynamo/vllm-runtime:0.7.0"),
        ("example.com/vllm@sha256:abc", None, "example.com/vllm@sha256:abc"),
        ("vllm/vllm-openai:v0.8.5", None, None),
    ],
)
def test_an_image_says_the_version_where_its_tag_is_the_engines(image, version, kept):
    engine = spec_of(f"docker run {image} a/b").get("engine", {})
    assert (engine.get("version"), engine.get("image")) == (version, kept)


def test_flags_are_judged_by_the_version_that_the_image_names():
    text = "docker run vllm/vllm-openai:{} a/b --calculate-kv-scales --max-num-queued-reqs 5"
    old, new = import_text(text.format("v0.20.2")), import_text(text.format("v0.33.0"))
    assert [fate.what for fate in old.lost] == ["--max-num-queued-reqs 5"]
    assert [fate.what for fate in new.translated] == ["--calculate-kv-scales"]


@pytest.mark.parametrize(
    ("written", "permille", "rounded"),
    [("0.02", 20, False), ("0", 0, False), ("0.0125", 13, True), ("0.9999", 999, True)],
)
def test_a_watermark_becomes_whole_thousandths_and_says_where_that_is_not_exact(written, permille, rounded):
    imported = import_text(f"vllm serve a/b --watermark {written}")
    (document,) = imported.documents
    assert document["spec"]["engine"] == {"watermarkPermille": permille}
    assert any("thousandths" in fate.why for fate in imported.translated) is rounded


@pytest.mark.parametrize("written", ["1", "-0.1"])
def test_a_watermark_that_is_no_share_of_the_blocks_is_lost_with_the_reason(written):
    (fate,) = import_text(f"vllm serve a/b --watermark={written}").lost
    assert "below 1" in fate.why


def test_an_image_older_than_every_list_is_said():
    (fate,) = import_text("docker run vllm/vllm-openai:v0.8.5 a/b").lost
    assert "older than 0.20.2" in fate.why


def test_several_engines_become_several_resources():
    imported = import_text("vllm serve a/one\nvllm serve a/two --port 8001\n", name="both")
    assert [document["metadata"]["name"] for document in imported.documents] == ["both", "both-2"]


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve a/b --chat-template '模板 {{ x }}'",
        "vllm serve a/b --seed '१'",
        "vllm serve a/b '--x=\x07'",
    ],
)
def test_strange_characters_stay_data(text):
    assert import_text(text).documents


def test_what_a_claim_holds_is_the_claims_own_source():
    text = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - image: vllm/vllm-openai
      args: [/data/models/qwen]
      volumeMounts: [{name: d, mountPath: /data, subPath: llm}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: weights}}]
"""
    assert spec_of(text)["model"]["source"] == "pvc://weights/llm/models/qwen"


def test_outcomes_are_told_apart():
    imported = import_text("vllm serve a/b --seed 1 --swap-space 4 --device cuda")
    assert [fate.outcome for fate in imported.fates] == [
        Outcome.FIELD,
        Outcome.EXTRA,
        Outcome.LOST,
        Outcome.TRANSLATED,
    ]


def test_resources_of_one_text_have_names_of_their_own():
    imported = import_text("vllm serve a/same\nvllm serve b/same\n")
    assert [document["metadata"]["name"] for document in imported.documents] == ["same", "same-2"]


def test_a_name_that_is_too_long_or_not_plain_is_changed_and_said():
    imported = import_text(
        "docker run --name My.Model_with_a_name_that_is_far_too_long_for_here vllm/vllm-openai a/b"
    )
    (name,) = (document["metadata"]["name"] for document in imported.documents)
    assert name == "my-model-with-a-name-that-is-far-too"
    assert any("became my-model" in warning for warning in imported.warnings)


MODEL = {
    "apiVersion": "kubeai.org/v1",
    "kind": "Model",
    "metadata": {"name": "a"},
    "spec": {"url": "hf://a/b"},
}
OTHER = {**MODEL, "metadata": {"name": "other"}, "spec": {"url": "ollama://a", "engine": "OLlama"}}


def test_one_of_several_that_cannot_be_read_is_lost_by_its_name():
    imported = import_text(yaml.safe_dump_all([OTHER, MODEL]))
    assert [document["metadata"]["name"] for document in imported.documents] == ["a"]
    assert [(fate.what, "OLlama" in fate.why) for fate in imported.lost] == [("Model other", True)]


def test_where_none_can_be_read_each_is_named():
    with pytest.raises(ImportProblem, match=r"Model other: .*OLlama"):
        import_text(yaml.safe_dump(OTHER))


def test_a_command_behind_the_engine_s_is_lost_aloud():
    imported = import_text("bash -c 'vllm serve Qwen/Qwen3-8B && echo done'")
    assert [fate.what for fate in imported.lost] == ["echo done"]


@pytest.mark.parametrize("engine", ["vllm serve a/b", "docker run vllm/vllm-openai --model a/b"])
def test_copies_of_the_output_and_other_commands_are_lost_aloud(engine: str):
    imported = import_text(f"set -e\n{engine} 2>&1 >out | tee log")
    assert [fate.what for fate in imported.lost] == ["set -e", "2>&1", ">out", "tee log"]
    assert imported.documents[0]["spec"]["model"]["source"] == "hf://a/b"
