"""A retune's set beside the one that serves."""

from dataclasses import replace

import pytest

from plimsoll.control.record import Record
from plimsoll.control.retune import Phase, RetuneMemory, Step
from plimsoll.control.retune.figures import Figures
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.direction import Direction
from tests.planning.asking import pool
from tests.reconcile.staging import AUTO
from tests.reconcile.test_decide import after, seen


@pytest.mark.parametrize(("more", "sets"), [(1024, 2), (0, 1)])
def test_a_change_of_nothing_tries_no_set_since_two_of_one_name_would_be_one_object(
    more: int, sets: int
) -> None:
    asked = seen(spec={**AUTO, "replicas": 3}, pools=(pool(nodes=4),))
    first = decide(asked)
    assert first.plan is not None
    (served,) = first.plan.sets
    before = served.settings.max_num_batched_tokens
    step = Step(
        id="x-1", set=served.digest, setting="maxBatchedTokens", before=str(before), after=str(before + more),
        symptom="late first tokens", why="w", phase=Phase.CANARY, began=0, since=0, deadline=1e12, replicas=3,
        surge=True, spec="", baseline=Figures(), rolled=1,
    )  # fmt: skip
    direction = Direction(record=Record(retune=RetuneMemory(step=step)))
    rollout = decide(replace(after(first, asked), direction=direction)).rollout
    assert rollout is not None
    names = [each.name for each in rollout.targets]
    assert len(names) == len(set(names)) == sets
