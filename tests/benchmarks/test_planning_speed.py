"""What the benchmark plans is valid, differs from plan to plan, and meets another inventory each time."""

from itertools import pairwise

import planning_speed
from fleets import mixed_fleet
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import plan


def test_every_deployment_of_the_benchmark_is_another_one_and_can_be_planned():
    asked = [planning_speed.deployment(number) for number in range(2 * len(planning_speed.MODELS))]
    assert len({one.name for one in asked}) == len(asked)
    fleet = planning_speed.filled(mixed_fleet(30))
    made = plan(asked[0], fleet.inventory(), planning_speed.facts_of(asked[0]))
    assert made.outcome is not Outcome.INVALID
    assert all(planning_speed.facts_of(one).model is not None for one in asked)


def test_one_node_and_one_pod_change_between_plans():
    objects = mixed_fleet(30)
    fleet = planning_speed.filled(objects)
    seen = [fleet.inventory(), *planning_speed.changes(fleet, objects, 4)]
    assert all(one != other for one, other in pairwise(seen))
