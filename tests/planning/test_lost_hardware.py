"""What becomes of a pinned plan when no node that is there or declared could hold it any more."""

from dataclasses import replace

from plimsoll.planning.pinning import Event
from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, planned, pool, reasons
from tests.planning.test_pinning import CHAT, pinned_plan


def test_lost_hardware_is_waited_for_where_nothing_else_could_hold_it_and_what_serves_is_no_mistake():
    cordoned = pool("H100-SXM-80GB", nodes=0)
    first = pinned_plan()
    before = planned(deployment(workload=CHAT), cordoned, pinned=first)
    assert "HardwareGone" in reasons(before)
    again = planned(deployment(workload=CHAT), cordoned, pinned=first, event=Event.LOST_HARDWARE)
    assert again == before, "ten minutes later the same is told"
    assert again.outcome is not Outcome.DOES_NOT_FIT
    edited = deployment(workload=CHAT | {"contextTokens": 2048})
    found = planned(edited, cordoned, pinned=first, event=Event.LOST_HARDWARE)
    assert found.outcome is Outcome.DOES_NOT_FIT, "an edit that leads nowhere is told as such"


def test_more_replicas_than_before_of_what_has_no_node_any_more_are_told_to_lack_it():
    """Found by a storm: the sentence about hosts that are too small looked for the largest of none."""
    asked = deployment(workload=CHAT, replicas=3)
    again = planned(asked, pool("L40S-48GB", 4, free={0: 2}), pinned=pinned_plan())
    assert again.outcome is Outcome.SHORT
    assert "HardwareGone" in reasons(again)
    assert "NoHostMemory" not in reasons(again)


def test_lost_hardware_is_a_new_plan_on_what_is_left():
    again = planned(
        deployment(workload=CHAT), pool("L40S-48GB", 4), pinned=pinned_plan(), event=Event.LOST_HARDWARE
    )
    assert again.pinning is not None
    assert again.pinning.reason == "LostHardware"
    assert again.sets[0].hardware.gpu == "L40S-48GB"


def test_a_plan_that_never_had_a_set_waits_for_no_hardware_of_its_own():
    nothing = replace(pinned_plan(), sets=())
    again = planned(
        deployment(workload=CHAT), pool("H100-SXM-80GB", nodes=0), pinned=nothing, event=Event.LOST_HARDWARE
    )
    assert again.outcome is Outcome.DOES_NOT_FIT
