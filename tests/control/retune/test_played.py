"""Retunes in virtual time, with engines that do what their settings say: whatever a rung brings and whoever dies, no bad one stays.

The states are the machine's own; a rung goes bad in one of them, and the operator dies in one, with all that it had in its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Phase
from plimsoll.control.situation import Slo
from tests.control.retune.played import LIMITS, Played

STATES = ("Planned", "Canary", "Judging", "Rolling", "Verifying")
DEAD_TICKS = 5
RULES = Restarts(canary_seconds=90, canary_requests=40, canary_limit_seconds=600, retunes_per_day=1)


def run_out_of_memory(world: Played) -> None:
    world.dead = True
    # Where the change is part of the plan by then, engines of the plan's own set do.
    world.crashed = 1 if world.memory.step is not None and world.memory.step.phase is Phase.DONE else 0


def become_slower(world: Played) -> None:
    # Fewer at once make steps shorter by a tenth.
    world.slower = 1.3 * 1.1


def change_nothing(world: Played) -> None:
    world.moot = True


def nobody_asks(world: Played) -> None:
    world.asks = False


BAD: dict[Callable[[Played], None], str] = {
    run_out_of_memory: "do not start or crash",
    become_slower: "without the change",
    change_nothing: "",  # no gain where the pool shows it first, a longer gap where an answer that stood still does
    nobody_asks: "inconclusive",
}
"""With what is said of them in the end."""


def dying(world: Played, state: str | None) -> list[str]:
    """The operator is gone for some ticks as soon as it is in the state; nobody looks, and what it remembered is lost."""
    died: list[str] = []

    def alive(now: Played) -> bool:
        step = now.memory.step
        if step is None or step.phase.value != state or len(died) == DEAD_TICKS:
            return True
        died.append(state)
        return False

    world.alive = alive
    return died


def played(free: int = 1) -> Played:
    return Played(replicas=2, free=free, rules=RULES, slo=Slo(itl_p99_s=0.5))


def ended(
    world: Played, *, state: str | None = None, happens: Callable[[Played], None] | None = None
) -> Played:
    for _ in range(200):
        step = world.memory.step
        if happens is not None and step is not None and step.phase.value == state:
            happens(world)
        world.tick()
        if world.memory.past and world.memory.step is None:
            break
    return world


@pytest.mark.parametrize("dies", [None, *STATES, "Done"])
@pytest.mark.parametrize("free", [0, 1])
def test_a_good_rung_stays_whoever_dies(dies: str | None, free: int) -> None:
    world = played(free)
    died = dying(world, dies)
    ended(world)
    (past,) = world.memory.past
    assert past.outcome is Phase.DONE, past.reason
    assert world.knobs.max_sequences == int(past.after) < LIMITS.max_num_seqs
    assert len(died) == (DEAD_TICKS if dies else 0)


@pytest.mark.parametrize("seed", range(6))
def test_blocks_kept_free_stay_though_one_answer_stands_still_for_longer_than_any_before(seed: int) -> None:
    """Of ten that were preempted one still is: in some of these runs it has the longest gap of all, and all others are shorter."""
    world = played()
    world.consent = Consent()
    world.random = Random(seed)
    ended(world)
    (past,) = world.memory.past
    assert (past.setting, past.outcome) == ("watermark", Phase.DONE), past.reason


def test_fewer_places_follow_where_blocks_kept_free_bring_nothing() -> None:
    world = played()
    world.consent = Consent()
    world.rules = RULES.model_copy(update={"retunes_per_day": 2})
    world.moot = True
    ended(world)
    (past,) = world.memory.past
    assert (past.setting, past.outcome) == ("watermark", Phase.FAILED)
    world.moot = False
    for _ in range(200):
        world.tick()
        if len(world.memory.past) == 2 and world.memory.step is None:
            break
    past = world.memory.past[0]
    assert (past.setting, past.outcome) == ("maxSequences", Phase.DONE)
    assert world.knobs.text("watermark") == "0"


@pytest.mark.parametrize("dies", [None, "there", "RollingBack"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("happens", BAD)
def test_a_rung_that_goes_bad_in_any_state_ends_at_the_old_settings_whoever_dies(
    happens: Callable[[Played], None], state: str, dies: str | None
) -> None:
    world = played()
    before = world.knobs
    died = dying(world, state if dies == "there" else dies)
    ended(world, state=state, happens=happens)
    assert world.memory.past, world.why_not
    assert world.memory.past[0].outcome is Phase.FAILED, world.memory.past[0].reason
    assert BAD[happens] in world.memory.past[0].reason
    world.tick()
    assert (world.knobs, world.at_old_settings) == (before, True)
    assert len(died) == (DEAD_TICKS if dies else 0)


@pytest.mark.parametrize("dies", [None, "RollingBack"])
@pytest.mark.parametrize("happens", BAD)
def test_whatever_goes_bad_besides_on_the_way_back_it_ends_at_the_old_settings_whoever_dies(
    happens: Callable[[Played], None], dies: str | None
) -> None:
    world = played()
    before = world.knobs
    become_slower(world)
    died = dying(world, dies)
    ended(world, state="RollingBack", happens=happens)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert BAD[become_slower] in world.memory.past[0].reason
    world.tick()
    assert (world.knobs, world.at_old_settings) == (before, True)
    assert len(died) == (DEAD_TICKS if dies else 0)


@pytest.mark.parametrize("dies", [None, "Done"])
@pytest.mark.parametrize("free", [0, 1])
def test_engines_that_run_out_of_memory_once_the_change_is_done_take_it_back_whoever_dies(
    dies: str | None, free: int
) -> None:
    world = played(free)
    before = world.knobs
    died = dying(world, dies)
    ended(world, state="Done", happens=run_out_of_memory)
    assert world.memory.past[0].outcome is Phase.DONE
    for _ in range(20):
        world.tick()
    (past,) = world.memory.past
    assert past.outcome is Phase.FAILED
    assert "ended and were started again" in past.reason
    assert (world.knobs, world.memory.step, world.at_old_settings) == (before, None, True)
    assert len(died) == (DEAD_TICKS if dies else 0)
