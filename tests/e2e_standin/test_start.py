"""What an engine gets from its command line: the ledger's pool, the planner's times, or the engine's words of why not."""

import pytest

from standin.argv import FlagsRefused
from standin.start import started, told_of
from standin.told import LIMITS, Told

OTHERWISE = Told()


def test_without_a_gpu_the_words_change_what_was_handed_in():
    told = started(
        (
            "m",
            "--max-num-seqs",
            "8",
            "--watermark",
            "0.1",
            "--served-model-name",
            "chat",
            "--shutdown-timeout",
            "30",
        ),
        otherwise=OTHERWISE,
    )
    assert (told.model, told.drain_s) == ("chat", 30.0)
    assert (told.limits.max_num_seqs, told.limits.watermark_blocks) == (8, LIMITS.blocks // 10)
    assert told.limits.blocks == LIMITS.blocks


def test_a_pool_is_what_the_ledger_says_and_grows_with_what_it_may_take():
    def tokens(*more: str) -> int:
        words = ("Qwen/Qwen3-8B", "--max-model-len", "16k", *more)
        return started(words, gpu="H100-SXM-80GB", otherwise=OTHERWISE).limits.kv_tokens

    assert 250_000 < tokens() < 450_000
    assert tokens("--gpu-memory-utilization", "0.8") < tokens() < tokens("--kv-cache-dtype", "fp8")
    assert tokens("--num-gpu-blocks-override", "2000") == 32_000


@pytest.mark.parametrize(
    ("words", "gpu", "said"),
    [
        (("meta-llama/Llama-3.1-70B-Instruct",), "H100-SXM-80GB", "No available memory for the cache blocks"),
        (("Qwen/Qwen3-8B", "--max-model-len", "40k"), "A10G", "is larger than the available KV cache memory"),
        (
            ("m", "--num-gpu-blocks-override", "10", "--max-model-len", "1000"),
            None,
            "max seq len (1000), (0.12 GiB KV cache is needed, which is larger than the available KV cache memory (0.02 GiB)",
        ),
    ],
)
def test_a_pool_that_is_too_small_ends_the_start_in_the_engines_words(
    words: tuple[str, ...], gpu: str, said: str
):
    with pytest.raises(FlagsRefused) as caught:
        started(words, gpu=gpu, otherwise=OTHERWISE)
    assert caught.value.code == 1
    assert said in caught.value.text


def test_a_pod_says_its_own_command_line():
    args = ["serve", "m", "--max-num-seqs", "4"]
    body = {
        "spec": {"containers": [{"image": "vllm/vllm-openai:v0.20.2", "command": ["vllm"], "args": args}]}
    }
    told = told_of(body, OTHERWISE)
    assert told is not None
    assert (told.version, told.limits.max_num_seqs) == ("0.20.2", 4)
    args[3] = "none"
    assert told_of(body, OTHERWISE) is None


def test_a_pod_with_a_supervisor_says_it_too():
    supervised = ["python3", "-I", "-S", "/plimsoll/plimsoll_runtime.pyz", "serve", "--port", "8079", "--"]
    engine = {
        "name": "engine",
        "image": "registry/vllm:v0.33.0",
        "command": [*supervised, "vllm", "serve", "m"],
        "args": ["--max-num-seqs", "4"],
    }
    told = told_of({"spec": {"containers": [{"name": "sidecar", "image": "x:1.2.3"}, engine]}}, OTHERWISE)
    assert told is not None
    assert (told.version, told.model, told.limits.max_num_seqs, told.closes) == ("0.33.0", "m", 4, False)
    engine["command"] = [*supervised[:-1], "--close-connections", "--", "vllm", "serve", "m"]
    told = told_of({"spec": {"containers": [engine]}}, OTHERWISE)
    assert told is not None
    assert told.closes
