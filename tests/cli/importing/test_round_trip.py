"""What Plimsoll tells an engine, read back: the same fields come out."""

import shlex
from pathlib import Path

import pytest
import yaml

from plimsoll.api.loading import load_deployments
from plimsoll.cli.importing import import_text
from plimsoll.engines.vllm import command
from plimsoll.facts.engines import engine_facts
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.settings import LoraSlots, Speculation
from tests.engines.sets import chosen

SAMPLES = sorted((Path(__file__).parents[2] / "api" / "samples" / "valid").glob("*.yaml"))
NEWEST = engine_facts("vllm")
SAME = ("toolCalling", "reasoning", "structuredOutput", "quantization", "multimodal")


def read_back(spec, **others):
    argv = command(spec, chosen(**others), NEWEST).argv
    return import_text(shlex.join(argv))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_resource_told_to_the_engine_is_read_back_as_the_same_resource(sample):
    for deployment in load_deployments(sample.read_bytes()).or_raise():
        tokens = deployment.spec.speculative.tokens if deployment.spec.speculative else None
        speculation = Speculation(method="ngram", tokens=tokens) if tokens else None
        slots = LoraSlots(max_loras=1, max_rank=16, max_cpu_loras=1)
        imported = read_back(
            deployment.spec,
            layout=Layout(tensor=2),
            lora=slots if deployment.spec.adapters else None,
            speculation=speculation,
        )
        (document,) = imported.documents
        written, read = deployment.to_dict()["spec"], document["spec"]
        for group in SAME:
            told = {key: value for key, value in written.get(group, {}).items() if value is not False}
            if written.get("multimodal", {}).get("textOnly") and group == "multimodal":
                told = {"textOnly": True}
            found = {key: value for key, value in read.get(group, {}).items() if value is not False}
            found.pop("autoChoice", None)
            told.pop("autoChoice", None)
            assert found == told, group
        if speculation is not None:
            assert read["speculative"] == written["speculative"] | {"tokens": tokens}
        assert read["topology"] == {"tensor": 2, "mode": "manual"} | {
            key: value for key, value in read["topology"].items() if key not in ("tensor", "mode")
        }
        assert read["workload"]["contextTokens"] == 8192
        assert read["engine"]["maxSequences"] == 64
        assert read["memory"]["utilizationPercent"] == 92


def test_reading_is_the_inverse_of_telling_for_what_import_itself_wrote():
    text = (
        "vllm serve org/model -tp 2 --max-model-len 8192 --max-num-seqs 64 --max-num-batched-tokens 8192 "
        "--gpu-memory-utilization 0.92 --enable-prefix-caching --tool-call-parser hermes --enable-auto-tool-choice "
        "--served-model-name org/model"
    )
    (first,) = import_text(text).documents
    spec = load_deployments(yaml.safe_dump(first)).or_raise()[0].spec
    (second,) = read_back(spec, layout=Layout(tensor=2)).documents
    # How long to drain is told to every engine, whoever decided it.
    assert second["spec"].pop("rollout").keys() == {"drainSeconds"}
    assert second == first
