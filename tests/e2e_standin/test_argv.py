"""Command lines as vLLM takes and refuses them; what is quoted was said by 0.32.0's own parser and configuration."""

import pytest

from plimsoll.facts.engines import engine_facts
from standin.argv import FlagsRefused, read

NEWEST = engine_facts("vllm", "0.33.0")
OLDER = engine_facts("vllm", "0.20.2")


def refused(*argv: str, facts=NEWEST) -> tuple[int, str]:
    with pytest.raises(FlagsRefused) as caught:
        read(("model", *argv), facts)
    return caught.value.code, caught.value.text


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--nosuch-flag", "3"), "error: unrecognized arguments: --nosuch-flag 3"),
        (
            ("--device", "cuda"),
            "error: ambiguous option: --device could match --device-ids, --device-memory-utilization",
        ),
        (("--max-num-seqs", "abc"), "error: argument --max-num-seqs: invalid int value: 'abc'"),
        (("--max-num-seqs",), "error: argument --max-num-seqs: expected one argument"),
        (
            ("--uvicorn-log-level", "nosuch"),
            "error: argument --uvicorn-log-level: invalid choice: 'nosuch' (choose from 'critical', 'debug'",
        ),
        (("--swap-space", "4"), "error: unrecognized arguments: --swap-space 4"),
    ],
)
def test_the_parser_ends_the_engine_with_two(argv: tuple[str, ...], said: str):
    code, text = refused(*argv)
    assert code == 2
    assert text.startswith("usage: vllm serve [model_tag] [options]\n")
    assert said in text


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ("--gpu-memory-utilization", "1.9"),
            "gpu_memory_utilization\n  Input should be less than or equal to 1",
        ),
        (("--max-num-seqs", "0"), "max_num_seqs\n  Input should be greater than or equal to 1"),
        (
            ("--tensor-parallel-size", "0"),
            "tensor_parallel_size\n  Input should be greater than or equal to 1",
        ),
        (("--quantization", "squeezellm"), "Unknown quantization: squeezellm. Must be one of ["),
        (
            ("--max-num-batched-tokens", "64", "--max-num-seqs", "128"),
            "max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128)",
        ),
        (("--enable-auto-tool-choice",), "--enable-auto-tool-choice requires --tool-call-parser"),
    ],
)
def test_the_configuration_ends_it_with_one(argv: tuple[str, ...], said: str):
    code, text = refused(*argv)
    assert code == 1
    assert said in text


def test_a_flag_belongs_to_its_version():
    assert read(("m", "--max-num-queued-reqs", "8"), NEWEST).number("--max-num-queued-reqs") == 8
    code, text = refused("--max-num-queued-reqs", "8", facts=OLDER)
    assert (code, "unrecognized arguments: --max-num-queued-reqs 8" in text) == (2, True)


def test_values_are_read_in_every_spelling():
    words = read(
        ("org/model", "--max_model_len=16k", "-tp", "2", "--no-enable-prefix-caching", "--watermark", "0.02"),
        NEWEST,
    )
    assert words.model == "org/model"
    assert words.number("--max-model-len") == 16_000
    assert words.number("--tensor-parallel-size") == 2
    assert words.on["--enable-prefix-caching"] is False
    assert words.share("--watermark") == 0.02
    assert words.number("--max-num-seqs") is None
