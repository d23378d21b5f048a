"""A version that no file is there for, described by its own image and handed in by an admin."""

import json

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import SpecError
from plimsoll.facts.engine_files import (
    EngineFileError,
    describe,
    engine_file_text,
    handed_in,
    read_engine_file,
    read_told,
)
from plimsoll.facts.engines import engine_facts, hand_in

FLAGS = {
    "--gpu-memory-utilization": {"type": "float", "default": 0.9},
    "--block-size": {"type": "int", "default": 32},
    "--max-num-seqs": {"type": "int?", "also": ["-n"]},
    "--new-flag": {"type": "str", "default": "a", "choices": ["a", "b"], "values": ["a", "b", "c"]},
    "--odd": {"type": "bool", "deprecated": True},
}


@pytest.fixture(autouse=True)
def nothing_is_handed_in():
    yield
    hand_in(())


def told(**changes):
    known = engine_facts("vllm", "0.33.0")
    names = sorted({name.removesuffix("_total") for exported in known.metrics.values() for name in exported})
    said = {
        "engine": "vllm",
        "version": "0.34.1",
        "flags": FLAGS,
        "environment": ["VLLM_B", "VLLM_A"],
        "metrics": names,
    }
    return json.dumps({**said, **changes})


def file(**changes):
    return describe(read_told(told(**changes)))[0]


def admin(text, version="0.34.1"):
    return OperatorConfig.model_validate({"engines": {"versions": [{"version": version, "facts": text}]}})


def test_what_the_image_says_is_taken_and_what_it_cannot_say_stays():
    made = file()
    assert (made.version, made.extends) == ("0.34.1", "0.33.0")
    assert (made.utilization_default, made.default_block_size) == ("0.9", 32)
    assert (made.environment, made.metrics) == (("VLLM_A", "VLLM_B"), {})
    handed_in(admin(engine_file_text(made)))
    facts, before = engine_facts("vllm", "0.34.1"), engine_facts("vllm", "0.33.0")
    assert (facts.version, facts.facts_version) == ("0.34.1", "0.34.1")
    assert (facts.utilization_default, facts.default_block_size) == (0.9, 32)
    assert sorted(facts.flags) == sorted(FLAGS)
    assert facts.flags["--max-num-seqs"].nullable
    assert facts.flags["--new-flag"].choices == ("a", "b")
    assert facts.environment == {"VLLM_A", "VLLM_B"}
    assert (facts.batch_rules, facts.metrics) == (before.batch_rules, before.metrics)
    assert "counts memory is taken from 0.33.0" in (facts.approximated_from or "")


def test_a_file_is_read_back_as_it_was():
    made = file()
    assert read_engine_file(engine_file_text(made)) == made
    assert engine_file_text(made) == engine_file_text(read_engine_file(engine_file_text(made)))


def test_a_later_version_is_taken_as_it_and_the_default_stays_the_newest_of_this_release():
    newest = engine_facts("vllm").version
    handed_in(admin(engine_file_text(file())))
    assert engine_facts("vllm", "0.35.0").facts_version == "0.34.1"
    assert engine_facts("vllm").version == newest
    handed_in(OperatorConfig())
    assert engine_facts("vllm", "0.35.0").facts_version == "0.33.0"


def test_a_bundled_version_may_be_described_again():
    handed_in(admin(engine_file_text(file(version="0.33.0")), "0.33.0"))
    facts = engine_facts("vllm", "0.33.0")
    assert (sorted(facts.flags), facts.approximated_from) == (sorted(FLAGS), None)
    assert facts.batch_rules


def test_metrics_that_are_gone_and_flags_that_are_gone_are_told():
    made, notes = describe(read_told(told(metrics=[])))
    assert made.metrics["running"] == () if "running" in made.metrics else made.metrics
    assert set(made.metrics.values()) == {()}
    assert any("not exported any more" in one for one in notes)
    assert "--tensor-parallel-size is no longer there" in notes
    handed_in(admin(engine_file_text(made)))
    assert engine_facts("vllm", "0.34.1").metrics == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no", "Invalid JSON"),
        (told(engine="tgi"), "files are read for vllm"),
        (told(engine="else"), "files are read for vllm"),
        (told(version="new"), "must be a release"),
        (told(version="0.34.0.dev7"), "must be a release"),
        (told(flags={"--a": {"type": "thing"}}), "flags.--a.type"),
        (told(flags={"--a": {"type": "int", "what": 1}}), "flags.--a.what"),
        (told(more=1), "more"),
    ],
)
def test_what_cannot_be_used_is_said(text, said):
    with pytest.raises(EngineFileError, match=said):
        read_told(text)


@pytest.mark.parametrize(
    ("text", "version", "said"),
    [
        ("{}", "0.34.1", "engine: Field required"),
        (engine_file_text(file()), "0.34.0", "another version than 0.34.0"),
        (
            engine_file_text(file()).replace('"extends": "0.33.0"', '"extends": "0.34.1"'),
            "0.34.1",
            "extends is",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_a_problem_of_the_admins_config(text, version, said):
    with pytest.raises(SpecError, match=said) as raised:
        handed_in(admin(text, version))
    assert raised.value.problems[0].field == "engines.versions[0].facts"
