"""Which GPUs compute a model in 16 bits: before Ampere there is no bfloat16, and some families are not stable in float16."""

import pytest

from plimsoll.facts.gpus import gpu_named
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.layouts.rules import Question, Site, Wishes, refusal_on
from tests.facts.known_models import known
from tests.planning.asking import LLAMA, deployment, planned, pool

GEMMA = "google/gemma-3-4b-it"


def refusal(name, gpu, **others):
    asked = Question(architecture=known(name).architecture, wishes=Wishes(), **others)
    return refusal_on(Layout(), asked, Site(gpu=gpu_named(gpu), devices_per_node=1, devices=1))


@pytest.mark.parametrize(
    "name", [GEMMA, "google/gemma-3-1b-it", "google/gemma-2-2b-it", "zai-org/GLM-4-9B-0414"]
)
@pytest.mark.parametrize("gpu", ["T4-16GB", "V100-SXM-32GB"])
def test_a_family_that_is_not_stable_in_float16_is_on_no_gpu_without_bfloat16(name, gpu):
    refused = refusal(name, gpu)
    assert refused is not None
    assert refused[0] == "weight-format"
    assert "falls back on float32" in refused[1]


@pytest.mark.parametrize(
    ("name", "gpu"),
    [(GEMMA, "A10-24GB"), (GEMMA, "MI300X"), (LLAMA, "T4-16GB"), ("google/gemma-3n-E2B-it", "T4-16GB")],
)
def test_it_is_on_any_other_and_other_families_are_on_all(name, gpu):
    assert refusal(name, gpu) is None


def test_one_that_only_embeds_is_not_turned_down_as_it_needs_little_beside_its_weights():
    assert refusal(GEMMA, "T4-16GB", generates=False) is None
    asked = deployment(model={"source": "google/gemma-3-1b-it", "task": "embed"}, replicas=1)
    assert planned(asked, pool("T4-16GB")).sets
