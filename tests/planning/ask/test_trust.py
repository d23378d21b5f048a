"""What is told of an argument that may not be."""

from __future__ import annotations

from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, planned


def test_what_a_flag_is_set_to_is_not_repeated_as_it_may_be_a_key() -> None:
    made = planned(deployment(engine={"extraArgs": ["--api-key=hunter2"]}))
    assert made.outcome is Outcome.INVALID
    assert [one.value for one in made.findings if one.reason == "FlagOwned"] == ["--api-key"]
    assert "hunter2" not in repr(made.findings)
