"""What of a spec makes a plan anew: what planning reads, and no block that says nothing to it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.planning.pinning import spec_digest
from tests.planning.asking import deployment


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ({"engine": {"imagePullPolicy": "Always"}}, True),
        ({"engine": {}}, True),
        ({"slo": {"availabilityPercent": "99.9"}}, True),
        ({"workload": {}}, True),
        ({"tuning": {"mode": "off"}}, True),
        ({"engine": {"maxSequences": 64}}, False),
        ({"slo": {"ttftP99Ms": 900}}, False),
    ],
)
def test_a_block_with_nothing_that_planning_reads_is_as_none(said: dict[str, Any], same: bool) -> None:
    assert (spec_digest(deployment(**said).spec) == spec_digest(deployment().spec)) is same
