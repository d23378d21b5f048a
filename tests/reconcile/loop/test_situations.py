"""One deployment as the control law takes it: its sets by their entries in the plan, and what keeps them from more replicas."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.serving import Serving
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.grounds import Grounds
from plimsoll.reconcile.loop.situations import serving_set
from plimsoll.reconcile.loop.subject import subject_of
from tests.planning.asking import inventory, pool
from tests.reconcile.loop.test_given_up import EDITS, edited, situation
from tests.reconcile.test_decide import seen

AUTO = {"scaling": {"min": 1, "max": 4}}


def test_a_set_that_an_edit_renames_bears_the_same_entry_of_the_plan() -> None:
    kept = decide(seen(spec=AUTO)).kept
    asked = [seen(spec={**AUTO, "podAnnotations": {"team": team}}) for team in ("blue", "red")]
    grounds = Grounds(inventory(pool(nodes=1)), OperatorConfig())
    found = []
    for each in asked:
        subject = subject_of(each.deployment, kept, each.config, {})
        assert subject is not None
        (planned,) = subject.sets
        found.append(serving_set(planned, (), grounds.for_set(planned)))
    assert found[0].name != found[1].name
    assert found[0].entry == found[1].entry == planned.digest


def test_what_the_api_server_refuses_to_make_is_told_on() -> None:
    met = edited(EDITS["other labels"])
    (there, _) = met.serving.sets
    for why in ("", "exceeded quota: gpus"):
        (found,) = situation(met.before, Serving(sets=(replace(there, refused=why),))).roles[0].sets
        assert found.refused is bool(why)
