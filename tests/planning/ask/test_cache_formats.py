"""Formats of the cache that no kernel of the engine keeps for a model: they are refused, as the engine would end at its start."""

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import R1, deployment, finding, planned, pool


@pytest.mark.parametrize("word", ["int8_per_token_head", "fp8_per_token_head", "fp8_e5m2", "turboquant_k8v4"])
def test_latents_are_kept_in_no_format_that_is_scaled_by_head_nor_in_other_eight_bits(word):
    asked = deployment(R1, memory={"kvCacheDtype": word})
    plan = planned(asked, pool("H200-SXM-141GB"))
    assert plan.outcome is Outcome.INVALID
    told = finding(plan, "KvDtypeNotOfLatents")
    assert told.field == "memory.kvCacheDtype"
    assert f"{word!r}, but" in told.message
    assert "write fp8 or, where the engine reads it, nvfp4_ds_mla" in told.message


@pytest.mark.parametrize("word", ["auto", "bfloat16", "fp8", "fp8_e4m3"])
def test_latents_are_kept_in_what_their_kernels_read(word):
    plan = planned(deployment(R1, memory={"kvCacheDtype": word}), pool("H200-SXM-141GB"))
    assert plan.sets
