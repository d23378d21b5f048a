"""Each refusal of the stand-in, given to what explains the real engine's log: the word and the exit code that vLLM's own would have."""

import pytest

from plimsoll_runtime.taxonomy import explained
from standin.argv import FlagsRefused
from standin.start import started
from standin.told import Told

H100 = "H100-SXM-80GB"
QWEN = "Qwen/Qwen3-8B"
"""32 heads, 40960 positions."""


def refused(*argv: str, gpu: str | None, taken_gib: float = 0.0) -> FlagsRefused:
    with pytest.raises(FlagsRefused) as caught:
        started(argv, gpu=gpu, otherwise=Told(), taken_gib=taken_gib)
    return caught.value


@pytest.mark.parametrize(
    ("argv", "gpu", "phase", "code", "word", "told"),
    [
        (("m", "--swap-space=4"), None, "config", 2, "BadFlag", "--swap-space"),
        (("m", "--device=cuda"), None, "config", 2, "BadFlag", "--device"),
        (("m", "--max-num-seqs=many"), None, "config", 2, "BadFlag", "--max-num-seqs"),
        (("m", "--gpu-memory-utilization=1.9"), None, "config", 1, "BadSetting", "gpu_memory_utilization is 1.9"),
        (("m", "--max-num-seqs=0"), None, "config", 1, "BadSetting", "max_num_seqs is 0"),
        (("m", "--quantization=squeezellm"), None, "config", 1, "BadSetting", "squeezellm"),
        (("m", "--max-num-batched-tokens=64", "--max-num-seqs=128"), None, "config", 1, "BadSetting", "(64)"),
        ((QWEN, "--tensor-parallel-size=3"), H100, "config", 1, "BadSetting", "(32)"),
        ((QWEN, "--max-model-len=9000000"), H100, "config", 1, "BadSetting", "(9000000)"),
        (("m", "--num-gpu-blocks-override=8", "--max-model-len=2k"), None, "profile", 1, "RequestLongerThanPool", "; 128 tokens would fit"),
        ((QWEN, "--num-gpu-blocks-override=8", "--max-model-len=2k"), H100, "profile", 1, "RequestLongerThanPool", "; 128 tokens would fit"),
        ((QWEN, "--max-model-len=40k"), "A10G", "profile", 1, "RequestLongerThanPool", "40000 tokens needs"),
        (("meta-llama/Llama-3.1-70B-Instruct",), H100, "profile", 1, "NoKvRoom", "no room for the KV cache"),
    ],
)  # fmt: skip
def test_a_refusal_has_the_word_and_the_code_that_the_engine_s_own_has(
    argv: tuple[str, ...], *, gpu: str | None, phase: str, code: int, word: str, told: str
):
    ended = refused(*argv, gpu=gpu)
    failure = explained(ended.text.splitlines(), phase, ended.code)
    assert (failure.word, ended.code) == (word, code)
    assert told in failure.message


def test_a_gpu_that_others_have_taken_of_is_refused_before_anything_is_loaded():
    ended = refused(QWEN, gpu=H100, taken_gib=30.0)
    failure = explained(ended.text.splitlines(), "engine", ended.code)
    assert (failure.word, ended.code) == ("GpuMemoryTaken", 1)
    assert "were free when the engine started" in failure.message
    less = started((QWEN, "--gpu-memory-utilization=0.6"), gpu=H100, otherwise=Told(), taken_gib=30.0)
    assert less.limits.kv_tokens > 0


def test_a_model_that_is_told_to_reach_further_is_held_to_no_context_of_its_own():
    further = (QWEN, "--max-model-len=64k")
    assert "is greater than the derived max_model_len" in refused(*further, gpu=H100).text
    for overrides in (
        ('--hf-overrides={"rope_parameters": {"factor": 4}}',),
        ("--hf-overrides.rope_parameters.factor=4",),
    ):
        told = started((*further, *overrides), gpu=H100, otherwise=Told())
        assert told.limits.max_model_len == 64_000
