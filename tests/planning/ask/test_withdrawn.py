"""Models that an engine has given up: refused where it is certain that it does not start, and told where something else may serve them."""

import pytest

from plimsoll.facts.configs.withdrawn import IN_TRANSFORMERS, NOWHERE
from plimsoll.planning.plan import Outcome, Severity
from tests.planning.asking import deployment, finding, planned, reasons

GONE = "baichuan-inc/Baichuan2-13B-Chat"
ELSEWHERE = "meta-llama/Llama-3.2-11B-Vision-Instruct"


def test_a_model_that_the_version_knows_no_more_is_refused_with_the_last_one_that_did():
    made = planned(deployment(GONE, engine={"version": "0.33.0"}))
    told = finding(made, "ModelWithdrawn")
    assert (made.outcome, told.severity) == (Outcome.INVALID, Severity.ERROR)
    assert told.message == "vllm 0.33.0 has no BaichuanForCausalLM any more, 0.23.0 was the last that had it"
    assert told.remedy == "engine.version: 0.23.0, or a model that newer ones know"


@pytest.mark.parametrize("version", ["0.23.0", "0.23.1", "0.18.0"])
def test_until_then_nothing_is_said(version):
    assert "ModelWithdrawn" not in reasons(planned(deployment(GONE, engine={"version": version})))


@pytest.mark.parametrize(
    "spec",
    [
        {"source": ELSEWHERE},
        {"source": GONE, "engine": {"version": "0.33.0", "image": "example.com/vllm:ours"}},
        {"model": {"source": GONE, "trustRemoteCode": True}},
        {"source": GONE, "engine": {"extraArgs": ['--hf-overrides={"architectures":["LlamaForCausalLM"]}']}},
    ],
    ids=[
        "Transformers has a class",
        "an image of one's own",
        "code of the model's own",
        "another class is named",
    ],
)
def test_where_something_else_may_serve_it_that_is_a_warning(spec):
    assert finding(planned(deployment(**spec)), "ModelWithdrawn").severity is Severity.WARNING


def test_nor_is_it_certain_in_an_image_that_the_admin_brings():
    config = {"engines": {"versions": [{"version": "0.33.0", "image": "example.com/vllm:ours"}]}}
    made = planned(deployment(GONE, engine={"version": "0.33.0"}), config=config)
    assert finding(made, "ModelWithdrawn").severity is Severity.WARNING


def test_no_class_is_in_both_lists():
    assert not set(IN_TRANSFORMERS) & set(NOWHERE)
