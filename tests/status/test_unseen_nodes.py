"""An operator that watches namespaces alone sees no nodes: what its conditions say of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plimsoll.api.config import OperatorConfig
from plimsoll.control.decision import Told
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.serving import Stage
from plimsoll.planning.plan import Plan
from plimsoll.planning.planner import plan
from plimsoll.status.said import conditions_of
from tests.planning.asking import facts
from tests.status.stories import asked, pod, story

CLASSES = {
    "nodeClasses": [{"name": "h100", "gpuProduct": "H100-SXM-80GB", "gpusPerNode": 8, "maxNodes": 4}],
}


def planned(config: Mapping[str, object], *, sees_nodes: bool = False) -> Plan:
    admin = OperatorConfig.model_validate(config)
    one = asked()
    return plan(one, Fleet(admin, sees_nodes=sees_nodes).inventory(), facts(one), config=admin)


def said(kind: str, made: Plan, *pods) -> Told:
    return next(one for one in conditions_of(story(*pods, plan=made)) if one.type == kind)


def test_what_is_placed_on_declared_nodes_says_that_nodes_are_not_seen() -> None:
    placed = said("Placed", planned(CLASSES))
    assert (placed.status, placed.reason) == ("True", "NodeDeclared")
    assert "sees no nodes" in placed.message
    assert "node classes of the admin's config" in placed.message


def test_a_pod_without_a_node_waits_for_gpus_since_no_node_is_known_to_be_made() -> None:
    waiting = pod(Stage.UNSCHEDULED, message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    assert said("Ready", planned(CLASSES), waiting).reason == "WaitingForGPUs"
    assert said("Ready", planned(CLASSES, sees_nodes=True), waiting).reason == "WaitingForNodes"


def test_without_node_classes_it_says_which_field_helps() -> None:
    stalled = said("Stalled", planned({}))
    assert stalled.reason == "DoesNotFit"
    assert "watches namespaces alone" in stalled.message
    assert "nodeClasses in the admin's config" in stalled.message


def test_who_sees_nodes_says_nothing_of_it() -> None:
    made = planned(CLASSES, sees_nodes=True)
    assert "sees no nodes" not in " ".join(one.message for one in conditions_of(story(plan=made)))
    assert {one.reason for one in made.findings} & {"FreeAssumed", "NodesUnseen"} == {"FreeAssumed"}
    assert replace(made, findings=()) == replace(planned(CLASSES), findings=())
