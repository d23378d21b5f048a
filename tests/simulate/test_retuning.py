"""Engines' settings in a simulation: the operator's own retunes, on the replicas that it would have."""

from array import array
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Knobs, RetuneMemory, Scene, Turned, advance
from plimsoll.control.situation import NO_LIMITS, ReplicaState
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import Comparison
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies import retuning
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.tuning import Settings, Try, Tunable, Variant
from plimsoll.simulate.world import Hardware, Site, draw_world
from tests.control.retune.played import LIMITS, TIMES
from tests.simulate.test_several import played
from tests.simulate.worlds import SCENARIO

CAPACITY = replace(SCENARIO.capacity, kv_tokens=LIMITS.kv_tokens, requests_per_second=0.8)


def varied(settings: Settings) -> Variant:
    """As planned, but for these."""
    limits = replace(
        LIMITS,
        max_num_seqs=int(settings.get("maxSequences", LIMITS.max_num_seqs)),
        watermark_blocks=LIMITS.blocks * int(settings.get("watermark", 0)) // 1000,
    )
    capacity = replace(CAPACITY, max_num_seqs=limits.max_num_seqs)
    return Variant(times=TIMES, limits=limits, capacity=capacity)


TUNABLE = Tunable(
    consent=Consent(),
    knobs=Knobs(max_sequences=LIMITS.max_num_seqs),
    has_watermark=True,
    restarts=Restarts(),
    variant=varied,
    fixed=True,
)
HOURS = 1.25
"""Enough for one retune to come to its end."""
ROOMY = Hardware(ready=4, growing=0, devices=1.0)
"""For three that serve, and one more."""


def crowded(hours: float = HOURS, rate: float = 2.4) -> Arrivals:
    """Answers so long that what runs at once outgrows the pools of three replicas now and then."""
    random, at, inputs, outputs = Random(7), array("d"), array("q"), array("q")
    now = random.expovariate(rate)
    while now < 3600 * hours:
        at.append(now)
        inputs.append(random.randint(100, 400))
        outputs.append(int(min(2000, random.lognormvariate(6.0, 0.6))))
        now += random.expovariate(rate)
    return Arrivals(
        trace="crowded", at=at, inputs=inputs, outputs=outputs, prefixes=None, span_s=3600 * hours
    )


def outcome(
    tunable: Tunable | None = TUNABLE,
    *,
    arrivals: Arrivals | None = None,
    hardware: Hardware = ROOMY,
    policy: str = "plimsoll",
    replicas: int = 3,
) -> Outcome:
    scenario = replace(
        SCENARIO,
        times=TIMES,
        limits=LIMITS,
        capacity=CAPACITY,
        slo=NO_LIMITS,
        least=replicas,
        most=replicas,
        fixed=True,
        hardware=hardware,
        tunable=tunable,
    )
    here = draw_world(seed=1, times=TIMES, limits=LIMITS, slo=NO_LIMITS, hardware=hardware)
    stage = Stage(scenario=scenario, world=here, arrivals=arrivals or crowded())
    return Comparison(stage, routing=Routing.POOL).best(policy).outcome


@cache
def tuned() -> Outcome:
    return outcome()


@cache
def planned() -> Outcome:
    return outcome(None)


def steps(told: Outcome) -> list[str]:
    return [act.reason.removeprefix("Retune") for act in told.acts]


def test_what_preempts_is_retuned_step_by_step_and_what_is_kept_is_what_starts_from_then_on():
    told, as_planned = tuned(), planned()
    assert steps(told)[:3] == ["Planned", "Canary", "Judging"]
    done = next(act for act in told.acts if act.reason == "RetuneDone")
    assert (done.what, done.before) == ("watermark", "0")
    assert "requests are preempted" in told.acts[0].message
    assert told.figures.preemptions_per_1000 < as_planned.figures.preemptions_per_1000 / 2
    assert as_planned.acts == ()
    assert told.figures.failed == as_planned.figures.failed == 0


def test_a_retune_costs_what_a_further_replica_does_while_it_is_tried():
    assert planned().figures.gpu_hours == pytest.approx(3 * HOURS)
    assert max(point.ready + point.starting for point in tuned().points) == 4
    assert 3 * HOURS < tuned().figures.gpu_hours < 4 * HOURS


def test_without_a_free_gpu_one_goes_before_another_comes():
    told = outcome(hardware=Hardware(ready=3, growing=0, devices=1.0))
    assert "Canary" in steps(told)
    assert max(point.ready + point.starting for point in told.points) == 3
    assert told.figures.gpu_hours <= 3 * HOURS + 1e-6


@pytest.mark.parametrize(("replicas", "begins"), [(3, False), (5, True)])
def test_scaled_to_their_most_on_a_full_cluster_one_of_five_can_be_spared_and_one_of_three_cannot(
    replicas: int, begins: bool
) -> None:
    told = outcome(
        replace(TUNABLE, fixed=False),
        arrivals=crowded(hours=0.75, rate=0.7 * replicas),
        hardware=Hardware(ready=replicas, growing=0, devices=1.0),
        replicas=replicas,
    )
    assert steps(told)[:2] == (["Planned", "Canary"] if begins else [])
    assert max(point.ready + point.starting for point in told.points) == replicas


@pytest.mark.parametrize(
    ("consent", "said"),
    [
        (Consent(mode="off"), set()),
        (Consent(mode="dryRun"), {"Suggested"}),
        (Consent(allowed=("maxSequences",)), None),
    ],
)
def test_only_what_the_user_allows_is_changed(consent: Consent, said: set[str] | None):
    told = outcome(replace(TUNABLE, consent=consent))
    if said is None:
        assert {act.what for act in told.acts} == {"maxSequences"}
        return
    assert set(steps(told)) == said
    assert told.figures.gpu_hours == pytest.approx(3 * HOURS), "nothing is touched"


def test_no_more_retunes_than_the_admin_allows():
    assert outcome(replace(TUNABLE, restarts=Restarts(retunes_per_day=0))).acts == ()


def several(*rooms: int, arrivals: Arrivals) -> Outcome:
    """Five replicas: two on one kind, and on another as many as are left."""
    small, large = (
        Site(times=TIMES, limits=LIMITS, hardware=Hardware(ready=room, growing=0, devices=1.0))
        for room in rooms
    )
    sets = tuple(
        replace(played(site, gpu, "1"), capacity=CAPACITY, tunable=TUNABLE)
        for site, gpu in ((small, "H100"), (large, "L40S"))
    )
    scenario = replace(
        SCENARIO,
        capacity=CAPACITY,
        slo=NO_LIMITS,
        least=5,
        most=5,
        fixed=True,
        hardware=small.hardware,
        sets=sets,
    )
    here = draw_world(
        seed=1, times=TIMES, limits=LIMITS, slo=NO_LIMITS, hardware=small.hardware, beside=[large]
    )
    stage = Stage(scenario=scenario, world=here, arrivals=arrivals)
    return Comparison(stage, routing=Routing.POOL).best("plimsoll").outcome


def test_of_several_sets_the_largest_is_retuned_on_its_own_gpus_and_that_is_said():
    """It has room for one more, and no queue so long that a replica which goes cannot answer it."""
    told = several(2, 4, arrivals=crowded(rate=3.4))
    assert steps(told)[:3] == ["Planned", "Canary", "Judging"]
    assert all(act.what.endswith(" on L40S") for act in told.acts)
    assert [each.replicas_most for each in told.sets] == [2, 4], "a further one beside the three"
    assert told.figures.failed == 0


def test_what_the_others_carry_while_one_restarts_is_counted_as_the_operator_does(monkeypatch):
    looks = []

    def noted(scene: Scene, memory: RetuneMemory) -> Turned:
        looks.append(scene)
        return advance(scene, memory)

    monkeypatch.setattr(retuning, "advance", noted)
    several(2, 3, arrivals=crowded(hours=0.05, rate=4.0))
    assert (looks[0].ready, looks[0].beside) == (3, 2.0)


def test_a_change_of_one_set_leaves_the_others_as_they_are():
    here = draw_world(
        seed=1,
        times=TIMES,
        limits=LIMITS,
        slo=NO_LIMITS,
        hardware=ROOMY,
        beside=[Site(times=TIMES, limits=LIMITS, hardware=ROOMY)],
    )
    made = Estate(here)
    made.begin(5)
    made.try_out(replace(asked(1), site=1), 100.0)
    assert Counter((one.site, one.tried) for one in made.present) == {
        (0, False): 4,
        (1, False): 1,
        (1, True): 1,
    }
    started(made)
    made.try_out(replace(asked(1, surge=False, adopt=True), site=1), 9000.0)
    made.tell_each([4, 2], 9100.0)
    assert [site.limits.watermark_blocks > 0 for site in made.sites] == [False, True]
    assert made.sites[1].times == here.sites[1].times


@pytest.mark.parametrize("policy", ["hpa", "reference", "static_peak"])
def test_others_leave_every_setting_as_it_is_planned(policy: str):
    assert outcome(policy=policy, arrivals=crowded(0.5)).acts == ()


def test_the_same_seed_is_the_same_retune():
    arrivals = crowded(0.25)
    assert outcome(arrivals=arrivals).acts == outcome(arrivals=arrivals).acts != ()


def test_a_world_is_off_the_belief_of_a_changed_engine_as_it_is_off_that_of_the_planned_one():
    here = draw_world(seed=3, times=TIMES, limits=LIMITS, slo=NO_LIMITS, hardware=ROOMY)
    same, other = here.varied(varied({})), here.varied(varied({"watermark": "250"}))
    assert (same.times, same.limits) == (here.times, here.limits)
    assert other.times == here.times
    assert other.limits.watermark_blocks == LIMITS.blocks // 4 * here.limits.blocks // LIMITS.blocks


# The replicas of a change


def asked(replicas: int, *, surge: bool = True, adopt: bool = False) -> Try:
    return Try(variant=varied({"watermark": "250"}), replicas=replicas, surge=surge, adopt=adopt)


def three(hardware: Hardware = ROOMY) -> Estate:
    made = Estate(draw_world(seed=1, times=TIMES, limits=LIMITS, slo=NO_LIMITS, hardware=hardware))
    made.begin(3)
    return made


def kinds(made: Estate) -> Counter[tuple[bool, bool]]:
    """With the change or not, ready or not."""
    return Counter((one.tried, one.state is ReplicaState.READY) for one in made.present)


def started(made: Estate) -> None:
    while made.next_at < 1e9 and any(one.state is ReplicaState.STARTING for one in made.instances):
        made.happen(made.next_at)


def test_a_further_replica_with_the_change_comes_beside_those_without_it():
    made = three()
    made.try_out(asked(1), 100.0)
    assert kinds(made) == {(False, True): 3, (True, False): 1}
    started(made)
    made.try_out(asked(1), 2000.0)
    assert kinds(made) == {(False, True): 3, (True, True): 1}
    (one,) = (one for one in made.ready if one.tried)
    assert one.engine.limits.watermark_blocks > 0
    assert {each.engine.limits.watermark_blocks for each in made.ready if not each.tried} == {0}


def test_all_with_the_change_need_no_further_replica_and_once_it_is_kept_are_as_any_other():
    made = three()
    for count in (1, 2, 3):
        made.try_out(asked(count), 1000.0 * count)
        made.sweep(1000.0 * count + 10)
        started(made)
    made.try_out(asked(3, surge=False), 9000.0)
    assert kinds(made) == {(True, True): 3}
    made.try_out(asked(3, surge=False, adopt=True), 9015.0)
    made.try_out(None, 9030.0)
    assert kinds(made) == {(False, True): 3}
    made.tell(4, 9100.0)
    assert {one.engine.limits.watermark_blocks for one in made.present} == {
        made.ready[0].engine.limits.watermark_blocks
    }


@pytest.mark.parametrize("surge", [True, False])
def test_on_the_way_back_those_with_the_change_stay_until_others_serve_in_their_place(surge: bool):
    made = three(ROOMY if surge else Hardware(ready=3, growing=0, devices=1.0))
    for count in (1, 2):
        made.try_out(asked(count, surge=surge), 1000.0 * count)
        made.sweep(1000.0 * count + 10)
        started(made)
    now, least = 5000.0, len(made.ready)
    while any(one.tried for one in made.instances) or len(made.ready) < 3:
        made.try_out(asked(0, surge=surge), now)
        made.sweep(now)
        least = min(least, len(made.ready))
        started(made)
        now += 2000.0
    assert kinds(made) == {(False, True): 3}
    assert least >= (3 if surge else 2)


def test_replicas_that_come_by_the_load_meanwhile_are_without_the_change():
    made = three(replace(ROOMY, ready=8))
    made.try_out(asked(1), 100.0)
    made.tell(5, 200.0)
    assert Counter(one.tried for one in made.present) == {False: 5, True: 1}
    made.try_out(None, 300.0)
    assert Counter(one.tried for one in made.present) == {False: 5}


def test_one_with_the_change_that_crashes_comes_back_with_it_and_that_is_seen():
    made = three()
    made.try_out(asked(1), 100.0)
    started(made)
    (one,) = (one for one in made.ready if one.tried)
    made._do("crash", one, 5000.0)
    assert one.seen().restarts == 1
    assert one.engine.limits.watermark_blocks > 0


def test_what_is_kept_and_whose_engines_end_goes_back_one_by_one_as_by_a_rollout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[float] = []

    def looked(scene: Scene, memory: RetuneMemory) -> Turned:
        if memory.kept is not None and scene.now - memory.kept.since > 600 and not ended:
            ended.append(scene.now)
            crashed = tuple(replace(one, restarts=1) for one in scene.serving.replicas)
            scene = replace(scene, serving=replace(scene.serving, replicas=crashed))
        return advance(scene, memory)

    monkeypatch.setattr(retuning, "advance", looked)
    told = outcome(arrivals=crowded(hours=2.0))
    assert steps(told)[steps(told).index("Done") :][:3] == ["Done", "RollingBack", "Failed"]
    (at,) = ended
    after = [point for point in told.points if point.at > at]
    assert min(point.ready for point in after) == 3, "another one serves before one goes"
    assert max(point.ready + point.starting for point in after) == 4
