"""What a dry run suggests can be written down as it says, and is then what the plan has and a retune begins with."""

import re

import pytest
import yaml

from plimsoll.control.retune import Consent
from plimsoll.control.retune.scene import FIELDS, KNOBS, knobs_of
from plimsoll.planning.plan import Outcome
from tests.control.retune.world import World
from tests.planning.asking import deployment, finding, planned

HOUR = 3600.0
WRITTEN = re.compile(r"\(spec\.engine\.(\w+: \d+)\)")


@pytest.mark.parametrize("setting", KNOBS)
def test_every_setting_that_is_retuned_can_be_set_by_hand(setting):
    _, _, field = FIELDS[setting].partition("engine.")
    (chosen,) = planned(deployment(engine={field: 600})).sets
    assert knobs_of(chosen.settings, chosen.layout).text(setting) == "600"


@pytest.mark.parametrize("allowed", ["watermark", "maxSequences"])
def test_what_a_dry_run_says_to_write_is_taken_as_it_stands(allowed):
    world = World(consent=Consent(mode="dryRun", allowed=(allowed,))).run(HOUR)
    (event,) = world.events
    (written,) = WRITTEN.findall(event.message)
    suggested = world.memory.suggested
    assert suggested is not None
    (chosen,) = planned(deployment(engine=yaml.safe_load(written))).sets
    assert knobs_of(chosen.settings, chosen.layout).text(suggested.setting) == suggested.after


def test_what_is_done_is_not_told_as_if_a_person_had_to():
    world = World().run(HOUR)
    assert WRITTEN.findall("".join(event.message for event in world.events)) == []


def test_a_watermark_set_by_hand_is_told_as_such_and_with_its_field():
    (chosen,) = planned(deployment(engine={"watermarkPermille": 0})).sets
    (told,) = (one for one in chosen.values if one.name == "watermark_permille")
    assert (told.value, told.formula, told.field) == ("0", "as set", "engine.watermarkPermille")


@pytest.mark.parametrize(("asked", "outcome"), [(50, Outcome.INVALID), (0, Outcome.FITS)])
def test_an_engine_version_that_cannot_be_told_of_a_watermark_says_so(asked, outcome):
    made = planned(deployment(engine={"version": "0.31.0", "watermarkPermille": asked}))
    assert made.outcome is outcome
    if outcome is Outcome.INVALID:
        told = finding(made, "NoWatermark")
        assert told.field == "engine.watermarkPermille"
        assert "vllm 0.31.0 has no --watermark" in told.message
