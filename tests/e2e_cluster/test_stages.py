"""What kwok is told: every answer of the programs that choose has its stage, and every stage can be an answer."""

import re

import pytest
import yaml

from cluster.stages import config
from cluster.stages.habits import PREFIX, habits_of
from cluster.stages.nodes import NODE_STAGES
from cluster.stages.pods import POD_STAGES
from cluster.stages.stage import HERE


@pytest.mark.parametrize(("kind", "stages"), [("nodes", NODE_STAGES), ("pods", POD_STAGES)])
def test_a_stage_is_there_for_each_answer_and_an_answer_for_each_stage(kind, stages):
    program = (HERE / f"{kind}.jq").read_text()
    names = [stage.name for stage in stages]
    assert len(names) == len(set(names))
    answers = set(re.findall(r'"([a-z][a-z-]+)"', program))
    # Deaths are put together from what the pod says.
    assert {name for name in names if not name.startswith("dies-by-")} <= answers
    assert set(re.findall(r'stage: "([a-z-]+)"', program)) <= set(names)


def test_habits_are_a_stage_of_their_own_that_goes_first():
    node = {
        "metadata": {
            "name": "n-0",
            "labels": {f"{PREFIX}pull": "5s", f"{PREFIX}reclaimed-after": "1h", "a": "b"},
        }
    }
    habits = habits_of([node, {"metadata": {"name": "n-1", "labels": {}}}])
    assert habits == {"n-0": {f"{PREFIX}pull": "5s"}}
    plain, special = (list(yaml.safe_load_all(config(one))) for one in ({}, habits))
    assert len(special) == len(plain) + 1 == len(NODE_STAGES) + len(POD_STAGES) + 1
    assert [one["spec"].get("weight", 0) for one in special] == [0] * len(plain) + [1]
    assert config(habits) == config(habits)
