"""Sixteen complaints of users of other autoscalers, each a sentence that must not come true here."""

import dataclasses
import json
from fractions import Fraction
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.decision import Action
from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.law import LAW
from plimsoll.control.learning import is_settled
from plimsoll.control.memory import Memory
from plimsoll.control.record import Record
from plimsoll.control.samples import Window
from plimsoll.control.scaling import decide
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Bounds, Replica, ReplicaState, Role, Room, ServingSet, Zero
from plimsoll.facts.pod_sample import PodSample
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.planning import codec
from plimsoll.planning.placing.budgets import Limits
from plimsoll.reconcile.loop.replicas import leaders, live, replicas_of
from tests.control.driving import Story
from tests.control.load_model import Cluster
from tests.control.situations import NOW, after, known, replicas, saying, serving, signals, situation, ticks

BUSY: dict[str, Any] = {"inflight": 60, "waiting": 20, "rate": 8.0, "kv": 0.9}
IDLE: dict[str, Any] = {"inflight": 0, "rate": 0.0, "kv": 0.0}


def only(decision):
    (role,) = decision.roles
    return role


def told(decision, kind):
    return next((each for each in decision.conditions if each.type == kind), None)


def test_01_series_of_dead_pods_do_not_count():
    window = Window()
    for at in (NOW - 30, NOW - 15, NOW):
        full = [
            PodSample(pod=f"dead-{i}", at=at, running=60.0, waiting=50.0, kv_fraction=1.0, finished=9.0)
            for i in range(5)
        ]
        alive = PodSample(pod="alive", at=at, running=5.0, waiting=0.0, kv_fraction=0.1, finished=9.0)
        window = window.add(at, [*full, alive])
    said = signals_of(window, now=NOW, live=["alive"])
    assert (said.inflight, said.live, said.coverage) == (5.0, 1, 1.0)


def test_02_nothing_is_scaled_up_tick_after_tick_without_load():
    decision = ticks(situation(signals(2, **IDLE)), 100)
    assert only(decision).action is not Action.UP
    assert decision.replicas <= 2


@pytest.mark.parametrize("load", [BUSY, IDLE], ids=["busy", "idle"])
def test_03_two_controllers_never_write_one_number(load: dict[str, Any]):
    """Who scales the resource writes spec.replicas, and then this law has nothing to say. Who scales an object below it is put back by
    a turn and told of by `status` (e2e/turns/test_complaints.py), and what it wrote meanwhile is nothing that is decided from."""
    decision = ticks(situation(signals(2, **load), bounds=Bounds(min=2, max=2, fixed=2)), 40)
    assert (only(decision).action, decision.replicas, only(decision).reason) == (Action.HOLD, 2, "Fixed")


RANKS = 4


def grouped(count: int, last: Stage = Stage.READY) -> SetSeen:
    """Replicas of four pods each; `last` is how far the last pod of the last one is."""
    pods = [
        PodSeen(
            name=f"group-{group}-{rank}",
            uid=f"pod-{group:03}" if rank == 0 else f"worker-{group}-{rank}",
            stage=last if (group, rank) == (count - 1, RANKS - 1) else Stage.READY,
            group=group,
            rank=rank,
            created=NOW - 5100,
            since=NOW - 5000,
        )
        for group in range(count)
        for rank in range(RANKS)
    ]
    return SetSeen(name="set-a", replicas=count, pods_per_replica=RANKS, pods=tuple(pods))


def of_groups(seen: SetSeen) -> tuple[ServingSet, Signals]:
    """As the operator sees them, where every pod of a group has metrics of its own, each as if it had all requests."""
    window = Window()
    for step in range(9):
        at, done = NOW - 120 + 15 * step, 45.0 * step
        window = window.add(
            at,
            [
                PodSample(
                    pod=pod.uid,
                    at=at,
                    running=30.0,
                    waiting=0.0,
                    kv_fraction=0.4,
                    finished=done,
                    kv_tokens=100_000,
                )
                for pod in seen.pods
            ],
        )
    said = signals_of(window, now=NOW, live=live(leaders(Serving(sets=(seen,)))).values())
    return serving(
        seen.replicas, replicas=replicas_of(seen, node_coming=False), wanted=seen.replicas, gpus=32.0
    ), said


def test_04_a_replica_of_many_pods_is_one_replica():
    groups, said = of_groups(grouped(3))
    assert (groups.ready, said.live, said.coverage, said.inflight) == (3, 3, 1.0, 90.0)
    settled = ticks(situation(said, groups), 60)
    assert (only(settled).action, only(settled).reason, settled.replicas) == (Action.HOLD, "Enough", 3)
    # Twelve pods for three replicas would be in transition for ever, and nothing would be learned of them.
    assert is_settled(settled.memory.of("serve"), NOW + 15 * 59)
    # More are asked for in groups, as many as there are GPUs for.
    crowded, asked = of_groups(grouped(2)), saying(2, **BUSY)
    full = dataclasses.replace(crowded[1], replicas=asked)
    room = Room(gpus={"h100": 3 * 32.0})
    memory = ticks(situation(full, crowded[0]), 1).memory
    wished = decide(now=NOW + 15, situation=situation(full, crowded[0]), memory=memory, room=room)
    assert (only(wished).action, wished.replicas) == (Action.UP, 5)


def test_04b_a_group_that_is_not_whole_is_on_its_way_and_no_fourth_one():
    groups, said = of_groups(grouped(4, last=Stage.LOADING))
    assert (groups.ready, groups.count(ReplicaState.STARTING), said.live) == (3, 1, 3)


def test_05_nothing_over_nothing_is_an_idle_deployment_and_its_gpus_are_released():
    said = signals(3, **IDLE)
    assert said.preempted_share is None
    decision = ticks(situation(said), 30)
    assert told(decision, names.METRICS).status == "True"
    assert decision.replicas < 3


def test_06_an_outage_of_metrics_does_not_skip_the_floor():
    dark = Signals(at=NOW, live=2, replicas=(), reachable=False)
    decision = ticks(situation(dark, serving(2), bounds=Bounds(min=4, max=8)), 3)
    assert decision.replicas == 4
    assert told(decision, names.METRICS).reason == "PrometheusUnreachable"


def test_07_growing_one_while_another_shrinks_never_passes_the_budget():
    there, loads = {"team/a": 2, "team/b": 6}, {"team/a": BUSY, "team/b": IDLE}
    fleet = Fleet(limits={"team": Limits(devices=Fraction(8))})
    memories = {name: known(ready=count) for name, count in there.items()}
    for tick in range(160):
        asked = [
            situation(signals(count, **loads[name]), serving(count), name=name)
            for name, count in there.items()
        ]
        decisions = decide_fleet(now=NOW + 15 * tick, situations=asked, memories=memories, fleet=fleet)
        memories = {each.name: each.memory for each in decisions}
        wished = {each.name: each.replicas for each in decisions}
        # What is to go is still there when what is to come is made.
        assert sum(max(there[name], wished[name]) for name in there) <= 8
        there = wished
    assert there == {"team/a": 7, "team/b": 1}, "and nobody is stuck: what the one let go the other has"


def test_08_replicas_without_gpus_are_given_up_and_the_planner_goes_on():
    stuck = serving(2, replicas=(*replicas(2), *replicas(2, ReplicaState.UNSCHEDULABLE, age=650, first=2)))
    withdrawn = ticks(situation(signals(2, **BUSY), stuck), 1)
    assert (only(withdrawn).reason, withdrawn.replicas) == ("GPUsUnavailable", 2)
    quiet = situation(signals(2, **IDLE), serving(2))
    calm = after(*[quiet] * 40, memory=withdrawn.memory)
    assert calm.replicas == 1


@pytest.mark.parametrize(("least", "left"), [(1, 2), (3, 3), (4, 4)])
def test_08f_what_finds_no_gpus_stays_asked_for_as_far_as_the_minimum_asks(least: int, left: int):
    stuck = serving(2, replicas=(*replicas(2), *replicas(2, ReplicaState.UNSCHEDULABLE, age=650, first=2)))
    asked = situation(signals(2, **BUSY), stuck, bounds=Bounds(min=least, max=20))
    assert ticks(asked, 1).replicas == left


def test_08b_a_wish_is_kept_while_a_node_is_being_made():
    coming = serving(2, replicas=(*replicas(2), *replicas(2, ReplicaState.NODE_COMING, age=1200, first=2)))
    decision = ticks(situation(signals(2, **BUSY), coming), 3)
    assert decision.replicas >= 4


@pytest.mark.parametrize(("provision", "age"), [(0.0, 1900), (1200.0, 3700)])
def test_08e_a_node_that_never_comes_is_not_waited_for_for_ever(provision: float, age: float):
    def waiting(seconds: float):
        coming = replicas(2, ReplicaState.NODE_COMING, age=seconds, first=2)
        there = serving(4, replicas=(*replicas(2), *coming))
        return situation(signals(2, **BUSY), dataclasses.replace(there, wanted=4, provision_s=provision))

    patient = ticks(waiting(age - 300), 1)
    assert (patient.replicas, patient.conditions) == (4, ticks(waiting(60), 1).conditions)
    withdrawn = ticks(waiting(age), 1)
    assert (only(withdrawn).reason, withdrawn.replicas) == ("GPUsUnavailable", 2)


@pytest.mark.parametrize(
    ("unplaced", "told", "busy", "left"),
    [(1, 5, "a rollout", 5), (1, 5, "a retune", 5), (1, 4, None, 4), (2, 5, None, 4)],
    ids=["of a rollout", "of a retune", "of a drain", "of a drain and of a wish"],
)
def test_08d_a_replica_that_moves_and_finds_no_gpus_takes_none_down_that_serves(
    unplaced: int, told: int, busy: str | None, left: int
):
    stuck = serving(
        told, replicas=(*replicas(4), *replicas(unplaced, ReplicaState.UNSCHEDULABLE, age=650, first=4))
    )
    asked = situation(signals(4, **BUSY), dataclasses.replace(stuck, wanted=told), busy=busy)
    decision = after(*[asked] * 5)
    assert decision.replicas == left


def test_08c_after_a_refusal_it_asks_again_later_and_less_often():
    stuck = serving(2, replicas=(*replicas(2), *replicas(1, ReplicaState.UNSCHEDULABLE, age=650, first=2)))
    once = ticks(situation(signals(2, **BUSY), stuck), 1)
    blocked = once.memory.of("serve").blocked["set-a"]
    asked = situation(signals(2, **BUSY), serving(2))
    soon = after(asked, asked, asked, memory=once.memory)
    assert (blocked.retry_s, soon.replicas) == (60.0, 2)
    later = after(*[asked] * 8, memory=once.memory)
    assert later.replicas > 2
    twice = after(situation(signals(2, **BUSY), stuck), memory=later.memory, begin=NOW + 120)
    assert twice.memory.of("serve").blocked["set-a"].retry_s == 120.0


@pytest.mark.parametrize(
    ("edited", "looks", "action", "left"),
    [(2, 1, Action.HOLD, 2), (2, 2, Action.UP, 4), (4, 2, Action.HOLD, 4), (6, 1, Action.DOWN, 5)],
    ids=["scaled down by hand", "and looked at twice", "left alone", "scaled up by hand"],
)
def test_09_what_runs_is_believed_and_not_what_was_once_written(
    edited: int, looks: int, action: Action, left: int
):
    """Four were decided, and written down; then somebody scales the child."""
    total = {"inflight": 120, "rate": 12.0, "kv": 1.6}
    before = ticks(situation(signals(4, **_each(total, 4))), 40, memory=known(ready=4))
    assert before.replicas == 4
    there = situation(signals(edited, **_each(total, edited)), serving(edited, wanted=edited))
    decision = after(*[there] * looks, memory=before.memory, begin=NOW + 600)
    assert (only(decision).action, decision.replicas) == (action, left)


def _each(total: dict[str, float], count: int) -> dict[str, Any]:
    """What each of so many replicas says of one load."""
    return {name: value / count for name, value in total.items()}


def restarted(told: Story) -> Story:
    """Another process goes on from what was written down; the samples of before are gone with the old one."""
    kept = codec.decode(Record, json.loads(codec.canonical(Record(memory=told.memory))))
    assert kept.memory == told.memory
    told.memory, told.window = kept.read(told.cluster.now).memory, Window()
    return told


def test_10_a_restart_forgets_neither_the_load_nor_what_was_learned():
    told = Story(Cluster(rate=lambda _: 16, replicas=1, start_s=200)).run(3600)
    before, replicas_before = told.memory.of("serve"), told.decisions[-1][1].replicas
    restarted(told).run(1800)
    after_it = [decision for at, decision in told.decisions if at > 3600]
    assert replicas_before >= 4
    assert {each.replicas for each in after_it} == {replicas_before}
    assert all(each.roles[0].action is Action.HOLD for each in after_it)
    memory = told.memory.of("serve")
    assert (memory.starts, before.starts != ()) == (before.starts, True)
    assert after_it[0].roles[0].need.lead_s == pytest.approx(200, abs=15)
    assert memory.learnt["set-a"].concurrency == pytest.approx(before.learnt["set-a"].concurrency, rel=0.1)


@pytest.mark.parametrize("memory", ["kept", "lost"])
def test_10b_a_restart_lets_nothing_go_before_it_has_watched_a_whole_window_and_then_does(memory: str):
    """The load ends with the restart: whoever forgot it would see four idle replicas, and whoever never looked would keep them."""
    told = Story(Cluster(rate=lambda at: 16 if at < 1800 else 0, replicas=4, start_s=120)).run(1800)
    there = told.decisions[-1][1].replicas
    restarted(told)
    if memory == "lost":
        told.memory = Memory()
    told.run(LAW.down_window_s - 15)
    assert {decision.replicas for at, decision in told.decisions if at > 1800} == {there}
    told.run(5 * LAW.down_window_s)
    assert told.decisions[-1][1].replicas == 1


def test_11_a_raised_minimum_is_obeyed_at_once():
    decision = ticks(situation(signals(2, inflight=5, rate=0.5), bounds=Bounds(min=5, max=8)), 1)
    assert (decision.replicas, only(decision).reason) == (5, "AtMin")


def test_12_a_broken_image_is_not_asked_for_again_and_again():
    broken = serving(2, replicas=(*replicas(2), *replicas(1, ReplicaState.FAILED, age=60, first=2)))
    decision = ticks(situation(signals(2, **BUSY), broken), 20)
    assert decision.replicas == 3
    assert told(decision, names.SCALING).reason == "StartFailed"


def test_12b_one_replica_that_fails_beside_one_that_started_after_it_stops_nobody():
    failing = replicas(1, ReplicaState.FAILED, age=9000, first=2)
    decision = ticks(situation(signals(2, **BUSY), serving(2, replicas=(*replicas(2), *failing))), 3)
    assert decision.replicas > 3


def test_13_a_woken_replica_is_left_alone_while_its_node_is_coming():
    zero = Zero(after_s=900, waiting=0.0, idle_s=5000.0)
    asleep = situation(
        Signals(at=NOW, live=0, replicas=()), serving(0), bounds=Bounds(min=0, max=4), zero=zero
    )
    woken = ticks(dataclasses.replace(asleep, zero=dataclasses.replace(zero, waiting=3.0)), 1)
    assert (only(woken).action, woken.replicas) == (Action.WAKE, 1)
    coming = serving(0, replicas=replicas(1, ReplicaState.NODE_COMING, age=10))
    waiting = after(*[dataclasses.replace(asleep, roles=(_role(coming, 0),))] * 50, memory=woken.memory)
    assert waiting.replicas == 1
    # Nor is it once it serves, while whoever woke it comes again.
    there = situation(signals(1, **IDLE), bounds=Bounds(min=0, max=4), zero=zero)
    assert after(there, there, memory=waiting.memory, begin=NOW + 50 * 15).replicas == 1


def _role(each, live):
    return Role(sets=(each,), signals=Signals(at=NOW, live=live, replicas=()), bounds=Bounds(min=0, max=4))


def test_14_the_wake_signal_lives_outside_the_pods():
    nobody = Signals(at=NOW, live=0, replicas=())
    silent = situation(nobody, serving(0), bounds=Bounds(min=0, max=4), zero=Zero(waiting=None, idle_s=None))
    assert ticks(silent, 3).replicas == 0
    written = dataclasses.replace(silent, zero=Zero(woken_at=NOW - 5))
    assert ticks(written, 1).replicas == 1
    # And whoever cannot be woken never falls asleep.
    unsaid = situation(signals(1, **IDLE), bounds=Bounds(min=0, max=4), zero=Zero(idle_s=None))
    assert ticks(unsaid, 100).replicas == 1


def test_15_a_pool_that_never_fills_does_not_hide_that_replicas_are_full():
    # 64 requests at once is all the engine runs, at a tenth of its pool: tokens alone would never ask for more.
    decision = ticks(situation(signals(2, inflight=64, waiting=30, rate=6.0, kv=0.1)), 3)
    assert decision.replicas > 2


def test_16_every_role_is_scaled_by_its_own_load():
    calm = situation(signals(2, inflight=10, rate=1.5))
    busy = situation(signals(2, **BUSY), serving(2, name="set-b"))
    both = dataclasses.replace(
        calm, roles=(calm.roles[0], dataclasses.replace(busy.roles[0], name="prefill"))
    )
    memory = Memory(roles={"serve": known().of("serve"), "prefill": known().of("serve")})
    decision = ticks(both, 3, memory=memory)
    by_role = {role.role: role.replicas for role in decision.roles}
    assert by_role["serve"] == 2
    assert by_role["prefill"] > 2


def test_replicas_of_a_gone_pod_are_not_waited_for():
    # The pod is in the window still, but Kubernetes no longer has it: coverage asks only for those that live.
    window = Window().add(NOW, [PodSample(pod="gone", at=NOW, running=1.0)])
    assert signals_of(window, now=NOW, live=[]).coverage == 1.0
    assert Replica(id="x", state=ReplicaState.READY, since=0, created=0).scheduled is None
