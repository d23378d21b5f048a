"""Gaps between tokens that are promised and of which nobody says how long they are: no setting moves for a calm that nobody has seen."""

from dataclasses import dataclass, replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Knobs, Phase
from plimsoll.control.retune.symptoms import as_calm
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Slo
from tests.control.retune.world import Behaviour, World

HOUR = 3600.0
RULES = Restarts.model_validate({"releaseAfterSeconds": 7200})
CALM = Behaviour(preempted=0.0, kv=0.3, itl=0.5)
CAPPED = Behaviour(preempted=0.0, kv=0.4, waiting=9.0, itl=0.5)
IDLE = replace(CALM, rate=0.0, tokens=0.0)


@dataclass
class Mute(World):
    """Whose question for gaps had no answer, or which has seen but few of them."""

    samples: float | None = None
    answered: bool = False

    def heard(self, kind: str, count: int) -> Signals:
        found = super().heard(kind, count)
        itl = found.latencies.itl
        if not found.replicas or itl is None or self.answered:
            return found
        few = None if self.samples is None else replace(itl, samples=self.samples)
        return replace(found, latencies=replace(found.latencies, itl=few))


def calm(**more) -> Mute:
    return Mute(
        old=CALM,
        change=CALM,
        planned={"maxSequences": "64"},
        knobs=Knobs(max_sequences=48),
        consent=Consent(),
        rules=RULES,
        **more,
    )


@pytest.mark.parametrize("samples", [None, 9.0])
def test_no_change_is_taken_back_after_a_calm_in_which_gaps_may_have_been_too_long(samples):
    world = calm(samples=samples).run(6 * HOUR)
    assert (world.knobs.max_sequences, world.memory.past) == (48, ())


def test_one_is_where_nothing_is_promised_of_gaps():
    world = calm(slo=Slo(ttft_p99_s=2.0)).run(6 * HOUR)
    assert [past.outcome for past in world.memory.past] == [Phase.DONE]


@pytest.mark.parametrize("samples", [None, 9.0])
def test_no_more_requests_are_let_run_beside_gaps_that_may_be_too_long(samples):
    world = Mute(
        old=CAPPED, change=replace(CAPPED, waiting=1.0), knobs=Knobs(max_sequences=3), samples=samples
    ).run(5 * HOUR)
    assert (world.knobs.max_sequences, world.memory.past) == (3, ())


def test_calm_that_was_seen_lasts_over_looks_at_which_gaps_are_not_known():
    world = calm()
    world.old = world.change = replace(CALM, itl=0.02)
    world.answered = True
    world.run(HOUR)
    began = world.memory.calm_since
    world.answered = False
    world.run(600)
    assert world.memory.calm_since == began is not None
    world.answered = True
    world.run(HOUR - 540)
    assert world.memory.step is not None


def test_where_nothing_runs_there_is_no_gap_to_be_late():
    idle = calm().scene()
    quiet = tuple(replace(one, running=0.0, waiting=0.0, finished=0.0) for one in idle.signals.replicas)
    assert not as_calm(replace(idle, signals=replace(idle.signals, replicas=quiet))), "it is known to be calm"
    assert as_calm(idle)
