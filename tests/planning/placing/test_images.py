"""Whose image a pod gets decides what is known of it."""

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import SMALL, deployment, planned, pool

VERSION = "0.33.0"


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        ({"version": VERSION}, Outcome.DOES_NOT_FIT),
        ({"version": VERSION, "rocmImage": "example.com/vllm:rocm"}, Outcome.DOES_NOT_FIT),
        ({"version": VERSION, "image": "example.com/vllm:volta"}, Outcome.FITS),
    ],
    ids=["published", "the admin's, of other hardware", "the admin's"],
)
def test_v100s_are_planned_with_an_image_that_the_admin_may_have_built_for_them(entry, outcome):
    config = {"engines": {"versions": [entry]}}
    made = planned(deployment(SMALL, engine={"version": VERSION}), pool("V100-SXM-16GB"), config=config)
    assert made.outcome is outcome
