"""Constants are looked up by class, and what was not fitted is said instead of guessed."""

from __future__ import annotations

import pytest

from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.speed.rates import (
    DEPENDS,
    Dimension,
    classes_of,
    committed,
    keys_of,
    rates_for,
    unfitted,
)
from plimsoll.planning.speed.roofline import TimeCost, Work


def classes(name: str, gpu: str, version: str | None = None) -> dict[Dimension, str]:
    model = lookup(name)
    assert model is not None
    work = Work.of(model.architecture, gpu_named(gpu), Layout(), None)
    return dict(classes_of(work, engine_facts("vllm", version)))


@pytest.mark.parametrize(
    ("name", "gpu", "version", "expected"),
    [
        ("Qwen/Qwen3-32B", "H100-SXM-80GB", None, {"gpu": "hopper", "dense": "16-bit", "cache": "wide"}),
        (
            "openai/gpt-oss-120b",
            "H100-SXM-80GB",
            None,
            {"gpu": "hopper", "dense": "16-bit", "cache": "wide", "experts": "unpacked"},
        ),
        (
            "openai/gpt-oss-120b",
            "B200-SXM",
            None,
            {"gpu": "blackwell", "dense": "16-bit", "cache": "wide", "experts": "4-bit"},
        ),
        (
            "MiniMaxAI/MiniMax-M2.5",
            "H200-SXM-141GB",
            "0.16.0",
            {
                "gpu": "hopper",
                "dense": "8-bit",
                "cache": "wide",
                "experts": "8-bit",
                "version": "before 0.18.0",
            },
        ),
    ],
)
def test_a_class_is_hardware_format_and_version_never_a_model(name, gpu, version, expected):
    assert classes(name, gpu, version) == expected


def test_every_cost_has_a_constant_and_depends_only_on_what_is_listed():
    constants = committed().constants
    assert set(constants) == set(DEPENDS) == set(TimeCost)
    for cost, constant in constants.items():
        assert set(constant.by) <= set(DEPENDS[cost])
        assert constant.value > 0


def test_a_rate_is_the_value_for_all_times_the_factors_of_its_classes():
    found = classes("Qwen/Qwen3-32B", "H100-SXM-80GB")
    constant = committed().constants[TimeCost.DENSE_WEIGHTS]
    expected = (
        constant.value
        * constant.by[Dimension.GPU]["hopper"].factor
        * constant.by[Dimension.DENSE]["16-bit"].factor
    )
    rates = rates_for(committed(), found)
    assert rates.seconds_each[TimeCost.DENSE_WEIGHTS] == pytest.approx(expected)
    assert keys_of(TimeCost.DENSE_WEIGHTS, found) == (
        (TimeCost.DENSE_WEIGHTS, None, ""),
        (TimeCost.DENSE_WEIGHTS, Dimension.GPU, "hopper"),
        (TimeCost.DENSE_WEIGHTS, Dimension.DENSE, "16-bit"),
    )


def test_an_unknown_class_takes_the_value_for_all_and_is_named():
    found = classes("Qwen/Qwen3-32B", "L40S-48GB")
    assert unfitted(committed(), found) == ("gpu ada",)
    known = rates_for(committed(), classes("Qwen/Qwen3-32B", "H100-SXM-80GB"))
    rates = rates_for(committed(), found)
    assert rates.seconds_each[TimeCost.LAUNCH] == committed().constants[TimeCost.LAUNCH].value
    assert rates.tpot_spread > known.tpot_spread
