import pytest

from plimsoll.facts.engine_flags import FlagKind
from plimsoll.facts.engines import engine_facts

NEW = engine_facts("vllm", "0.33.0").flags
OLD = engine_facts("vllm", "0.20.2").flags


def test_the_lists_are_whole():
    assert (len(OLD), len(NEW)) == (239, 320)
    assert len(set(NEW) - set(OLD)) == 85
    assert sorted(set(OLD) - set(NEW)) == [
        "--calculate-kv-scales",
        "--max-long-partial-prefills",
        "--max-num-partial-prefills",
        "--override-attention-dtype",
    ]


@pytest.mark.parametrize(
    ("spelling", "name", "negated", "abbreviated", "path"),
    [
        ("--max-num-seqs", "--max-num-seqs", False, False, None),
        ("--max_num_seqs", "--max-num-seqs", False, False, None),
        ("-tp", "--tensor-parallel-size", False, False, None),
        ("--no-enable-prefix-caching", "--enable-prefix-caching", True, False, None),
        ("--disable-chunked-prefill", "--enable-chunked-prefill", True, False, None),
        ("--enable-custom-all-reduce", "--disable-custom-all-reduce", True, False, None),
        ("--device-memory-utilization", "--gpu-memory-utilization", False, False, None),
        ("--gpu-memory-util", "--gpu-memory-utilization", False, True, None),
        ("--compilation-config.cudagraph_mode", "--compilation-config", False, False, "cudagraph_mode"),
        ("-cc.pass_config.fuse", "--compilation-config", False, False, "pass_config.fuse"),
    ],
)
def test_a_spelling_means_a_flag(spelling, name, negated, abbreviated, path):
    match = NEW.find(spelling)
    assert match is not None
    assert (match.flag.name, match.negated, match.abbreviated, match.path) == (
        name,
        negated,
        abbreviated,
        path,
    )


@pytest.mark.parametrize(
    "spelling", ["--num-scheduler-steps", "--device", "--swap-space", "-zz", "--no-max-num-seqs"]
)
def test_what_no_flag_starts_with_or_several_do_is_not_found(spelling):
    assert NEW.find(spelling) is None


def test_an_ambiguous_prefix_names_its_candidates():
    assert NEW.candidates("--device") == ("--device-ids", "--gpu-memory-utilization")


def test_a_typo_finds_its_neighbour():
    assert NEW.near("--max-num-seq")[0] == "--max-num-seqs"


def test_sizes_and_objects_are_told_apart():
    assert NEW["--max-model-len"].kind is FlagKind.SIZE_OR_AUTO
    assert NEW["--kv-cache-memory-bytes"].kind is FlagKind.SIZE
    assert NEW["--compilation-config"].kind is FlagKind.JSON
    assert NEW["--hf-overrides"].kind is FlagKind.JSON_OR_WORD
