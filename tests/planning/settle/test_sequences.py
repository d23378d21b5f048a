"""Why requests may wait without a limit."""

import pytest

from tests.planning.asking import LLAMA_70B, R1, deployment, planned, pool


@pytest.mark.parametrize(
    ("model", "slo", "why"),
    [
        (LLAMA_70B, {"ttftP99Ms": 2, "itlP99Ms": 2}, "no limit: the target cannot be kept"),
        (R1, {"ttftP99Ms": 2000}, "no limit: the target cannot be kept"),
        (LLAMA_70B, {"itlP99Ms": 50}, "no limit: there is no TTFT target"),
        (LLAMA_70B, {}, "no limit: there is no TTFT target"),
    ],
    ids=[
        "first tokens too soon for these GPUs",
        "a model that fits nowhere",
        "only gaps promised",
        "nothing promised",
    ],
)
def test_a_promise_that_cannot_be_kept_is_not_told_as_one_that_nobody_made(model, slo, why):
    made = planned(deployment(model, slo=slo), pool(nodes=1))
    said = {value.name: value.formula for value in made.values}
    assert said["max_queued_requests"] == why
