"""What holds of every look at a retune: ten thousand short sequences, drawn by seed, that begin in any state and bring anything.

`test_budgets` tells longer stories of worlds that obey; here worlds need not make sense, so that every arrow of the machine is taken often.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Final, Literal

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Phase, RetuneMemory, Scene, Step, Turned, advance, effect_of
from plimsoll.control.retune.figures import Figures, Tally
from plimsoll.control.retune.sizing import MOST_WATERMARK
from plimsoll.control.retune.steps import Past
from plimsoll.control.retune.symptoms import Symptom, cause
from plimsoll.control.situation import ReplicaState, ServingSet
from tests.control.retune.world import GOOD, OLD, Behaviour, World, replica, said
from tests.control.situations import CAPACITY, NOW

SEQUENCES, LOOKS = 10_000, 6
DAY = 86400.0
START: Final = World(free=0).scene()
BEHAVIOURS = (
    GOOD,
    OLD,
    replace(GOOD, preempted=0.0, kv=0.3),
    replace(GOOD, gap=9.0),
    replace(GOOD, rate=0.05),
    replace(GOOD, rate=0.0, preempted=0.0),
    replace(OLD, waiting=9.0, kv=0.4, preempted=0.0),
    replace(OLD, itl=0.2, kv=0.4, preempted=0.0),
    Behaviour(errors=0.2),
)
SIGNALS = {
    (kind, count): [said(how, count, NOW, kind) for how in BEHAVIOURS]
    for kind in ("old", "new")
    for count in range(5)
}
ARROWS: Final = {
    None: {None, Phase.PLANNED},
    Phase.PLANNED: {Phase.PLANNED, Phase.CANARY, None},
    Phase.CANARY: {Phase.CANARY, Phase.JUDGING, Phase.ROLLING_BACK, None},
    Phase.JUDGING: {Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING, Phase.ROLLING_BACK, None},
    Phase.ROLLING: {Phase.ROLLING, Phase.VERIFYING, Phase.ROLLING_BACK, None},
    Phase.VERIFYING: {Phase.VERIFYING, Phase.DONE, Phase.ROLLING_BACK, None},
    Phase.ROLLING_BACK: {Phase.ROLLING_BACK, None},
    Phase.DONE: {Phase.DONE, None},
}
"""From each state those that one look may lead to. None: no retune, as one ended or the user's edit dropped it."""
MODES: Final[tuple[Literal["auto", "dryRun", "off"], ...]] = (
    "auto",
    "auto",
    "auto",
    "auto",
    "auto",
    "auto",
    "dryRun",
    "off",
)
TOUCHED: Final = (Phase.CANARY, Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING)


def a_set(rng: random.Random, name: str, count: int) -> ServingSet:
    states = [ReplicaState.READY] * 8 + [ReplicaState.STARTING, ReplicaState.FAILED]
    chosen = (rng.choice(states) for _ in range(count))
    return ServingSet(
        name=name,
        pool="a",
        capacity=CAPACITY,
        replicas=tuple(replica(f"{name}-{i}", state, NOW - 99) for i, state in enumerate(chosen)),
    )


def a_past(rng: random.Random, place: int) -> Past:
    ended = NOW - rng.choice([600, 7200, 30_000, 80_000, 90_000])
    setting, before, after = rng.choice([("maxSequences", "32", "10"), ("watermark", "0", "50")])
    outcome, symptom = rng.choice([
        (Phase.FAILED, Symptom.PREEMPTION), (Phase.DONE, Symptom.CAPPED), (Phase.DONE, Symptom.PREEMPTION),
    ])  # fmt: skip
    return Past(
        id=f"{setting}-old-{place}", setting=setting, before=before, after=after, symptom=symptom, outcome=outcome,
        began=ended - 3000, ended=ended, reason="", tried=rng.random() < 0.9,
    )  # fmt: skip


def a_memory(rng: random.Random, rules: Restarts) -> RetuneMemory:
    """In any state, as far as a machine that keeps the budgets may have come."""
    phase = rng.choice([None, None, *(one for one in Phase if one is not Phase.FAILED)])
    failures = rng.randint(0, 3)
    memory = RetuneMemory(
        since=rng.choice([{}, {"preemptions": NOW - 900}, {"slow tokens": NOW - 900, "capped": NOW}]),
        failures=failures,
        paused_at=NOW - 50 if failures >= rules.failures_until_pause else None,
        count=rng.randint(0, 9),
        past=tuple(a_past(rng, place) for place in range(rng.choice([0, 1, 2, 2]))),
    )
    if phase is None:
        return memory
    replicas = rng.randint(1, 4)
    rolled = {Phase.PLANNED: 0, Phase.CANARY: 1, Phase.JUDGING: 1, Phase.ROLLING_BACK: 0}.get(phase, replicas)
    if phase is Phase.ROLLING:
        rolled = rng.randint(1, replicas)
    surge = rng.random() < 0.5 or 2 * replicas > (rules.restarts_per_day or 6)
    since = NOW - rng.choice([0, 100, 900, 4000])
    tally = Tally(finished=rng.choice([0, 30, 900]), preempted=rng.choice([0, 9, None]), seconds=600)
    step = Step(
        id="maxSequences-1", set="set-a", setting="maxSequences", before="32", after="10", symptom="preemptions",
        why="", phase=phase, began=NOW - 5000, since=since, deadline=since + rng.choice([60, 3000]),
        replicas=replicas, surge=surge, spec="spec", rolled=rolled, new=tally, old=tally,
        baseline=Figures(preempted=0.3, finished=2.0, itl_p99=0.04, tokens=500),
    )  # fmt: skip
    return replace(memory, step=step, restarts=() if surge else (NOW - 60,) * rolled)


def a_scene(rng: random.Random, before: Scene, memory: RetuneMemory) -> Scene:
    effect = effect_of(memory)
    tried = 0 if effect is None else min(4, max(0, effect.replicas - (rng.random() < 0.2)))
    serving = a_set(rng, "old", rng.randint(0 if tried else 1, 4))
    changed = a_set(rng, "new", tried) if tried else None
    return replace(
        before,
        now=before.now + rng.choice([0, 15, 15, 60, 400, 4000, -3600 if rng.random() < 0.05 else 15]),
        serving=replace(serving, name="set-a"),
        changed=changed,
        signals=rng.choice(SIGNALS["old", serving.ready]),
        changed_signals=None if changed is None else rng.choice(SIGNALS["new", changed.ready]),
        consent=replace(before.consent, mode=rng.choice(MODES), disruption=rng.random() < 0.5),
        spec="spec" if rng.random() < 0.95 else "edited",
        data=rng.random() < 0.8,
        scaled=rng.random() < 0.1,
        busy="a rollout" if rng.random() < 0.05 else None,
        free_replicas=rng.choice([0, 0, 1]),
        fleet_retuning=rng.choice([0.0, 0.0, 5.0, 9.0]),
        wants_more=rng.random() < 0.2,
        more_replicas=rng.random() < 0.5,
    )


def look(scene: Scene, memory: RetuneMemory) -> Turned:
    """One look, of which all holds that always holds."""
    turned = advance(scene, memory)
    before, step, after = memory.step, turned.memory.step, turned.memory
    was, now = before.phase if before else None, step.phase if step else None
    assert now in ARROWS[was]
    if step is not None and before is not None:
        same = ("id", "set", "setting", "before", "after", "began")
        assert all(getattr(step, name) == getattr(before, name) for name in same)
        taken = was is Phase.PLANNED and not scene.free_replicas
        assert step.surge is (before.surge and not (taken and now is Phase.CANARY))
        assert 0 <= step.rolled <= max(before.rolled + 1, step.replicas)
    if step is not None and before is None:
        began(scene, after, step)
    further = step is not None and (before is None or step.rolled > before.rolled)
    # While it is verified whoever comes has the change already: that is told, and asks for nothing.
    if step is not None and further and was is not Phase.VERIFYING:
        assert scene.data, "on missing figures nothing is touched"
        assert not scene.scaled, "one action a tick"
        if not step.surge and now is not Phase.VERIFYING:
            most = scene.restarts.restarts_per_day
            assert most is not None
            assert len(after.restarts) + step.rolled <= most, "the way back is kept"
    if before is not None and before.phase in TOUCHED and scene.spec == before.spec and now is None:
        raise AssertionError("what was touched ends by going back, or as good")
    if scene.spec == "edited" and was is not Phase.DONE:
        assert before is None or now is None, "whoever edits wins"
    if scene.consent.mode == "off":
        assert now is None or before is not None
        assert was not in TOUCHED or now in (Phase.ROLLING_BACK, None)
    effect = effect_of(after)
    if effect is not None and step is not None:
        assert (effect.set, effect.setting, effect.value) == (step.set, step.setting, step.after)
        assert effect.adopt is (now is Phase.DONE)
        assert now is not Phase.ROLLING_BACK or effect.replicas == 0
    return turned


def began(scene: Scene, after: RetuneMemory, step: Step) -> None:
    tried = [past for past in after.past if past.tried and scene.now - past.began < DAY]
    assert len(tried) < scene.restarts.retunes_per_day
    assert (scene.consent.mode, after.paused_at, scene.busy, step.rolled) == ("auto", None, None, 0)
    assert step.setting in scene.consent.allowed
    assert step.before == scene.knobs.text(step.setting) != step.after
    if step.setting == "maxSequences":
        assert int(step.after) >= scene.consent.least_sequences
    if step.setting == "watermark":
        assert int(step.after) <= MOST_WATERMARK
    if not step.surge:
        assert scene.ready > 1 or scene.consent.disruption
    allowed = scene.restarts.fleet_percent / 100 * scene.fleet_gpus
    assert not scene.fleet_retuning or scene.fleet_retuning + scene.serving.gpus * scene.ready <= allowed
    for past in (one for one in tried_of(after) if one.setting == step.setting):
        passed = scene.now - past.ended
        if past.outcome is Phase.FAILED and cause(past.symptom) == cause(step.symptom):
            assert passed >= scene.restarts.retry_after_seconds, "what failed is remembered"
        if past.outcome is Phase.DONE and (past.symptom in MORE) != (step.symptom in MORE):
            assert passed >= scene.restarts.reverse_after_seconds, "nothing swings to and fro"


MORE: Final = frozenset({Symptom.CAPPED, Symptom.RELAXED, Symptom.LATE_FIRST})
"""They ask for more at once, all others for less."""


def tried_of(memory: RetuneMemory) -> list[Past]:
    """Of requests like those of now, as all are here."""
    return [past for past in memory.past if past.tried]


def closed(scene: Scene, memory: RetuneMemory) -> RetuneMemory:
    """Hours in which nothing comes of it, and replicas with a change go as they are told to."""
    for _ in range(12):
        if memory.step is None:
            return memory
        adopted = memory.step.phase is Phase.DONE
        knobs = replace(scene.knobs, max_sequences=int(memory.step.after)) if adopted else scene.knobs
        back = memory.step.phase is Phase.ROLLING_BACK
        scene = replace(
            scene,
            now=scene.now + 4000,
            data=False,
            knobs=knobs,
            changed=None if back or adopted else scene.changed,
            serving=START.serving,
            spec=memory.step.spec,
        )
        memory = look(scene, memory).memory
    raise AssertionError(f"it never ends: {memory.step}")


def test_of_any_sequence_of_looks_bounds_and_budgets_hold_and_each_ends_at_the_old_settings() -> None:
    rng, taken, ends = random.Random(1), Counter[tuple[Phase | None, Phase | None]](), Counter[Phase]()
    for _ in range(SEQUENCES):
        rules = Restarts(
            restarts_per_day=rng.choice([2, 6, 11]),
            retunes_per_day=rng.choice([1, 2, 4]),
            canary_seconds=60,
            canary_requests=rng.choice([20, 200]),
            canary_limit_seconds=900,
        )
        memory = a_memory(rng, rules)
        scene = replace(START, restarts=rules, spec="spec", consent=Consent())
        for place in range(LOOKS):
            scene = a_scene(rng, scene, memory)
            turned = look(scene, memory)
            if place == 0:
                assert advance(scene, memory) == turned, "the same again is answered the same"
            was, now = memory.step, turned.memory.step
            taken[was.phase if was else None, now.phase if now else None] += 1
            memory = turned.memory
        before = len(memory.past)
        memory = closed(replace(scene, consent=Consent(mode="off")), memory)
        ends.update(past.outcome for past in memory.past[: len(memory.past) - before])
    missing = {(was, now) for was, many in ARROWS.items() for now in many} - set(taken)
    assert not missing, "each arrow was taken"
    assert set(ends) == {Phase.FAILED}, "turned off, whatever is in flight goes back"
