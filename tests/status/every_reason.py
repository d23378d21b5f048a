"""One story for every reason that a condition may give, made by the code that tells it: plans by the planner, rollouts by `move`,
what live traffic says by control. A reason without a story is one that nothing gives, or that nobody has looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

from plimsoll.api.conditions import FAILURES
from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.decision import Told
from plimsoll.control.gate import gate_of, lasting
from plimsoll.control.law import Law
from plimsoll.control.record import EMPTY
from plimsoll.control.retune import Consent, Past, Phase, RetuneMemory, advance
from plimsoll.control.retune.machine import paused
from plimsoll.control.rollout import Rules
from plimsoll.control.scaling import decide
from plimsoll.control.situation import Bounds, ReplicaState, Room
from plimsoll.control.workload import better_declaration
from plimsoll.engines.adapters import adapter_id
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.failure import Failure
from plimsoll.facts.inventory import Pool
from plimsoll.facts.models import lookup
from plimsoll.facts.report import AdapterSeen, Report
from plimsoll.facts.serving import SetSeen, Stage
from plimsoll.planning.pinning import Wish
from plimsoll.planning.placing.budgets import UNLIMITED, Limits
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.prometheus.wakes import Woken
from plimsoll.status.live import ENDS
from plimsoll.status.story import Story, Trouble
from tests.control.retune import world as retuned
from tests.control.situations import NOW, known, obeyed, replicas, serving, signals, situation
from tests.control.test_workload import SEEN
from tests.planning.asking import LLAMA, LLAMA_70B, QWEN_32B, SMALL, inventory, planned, pool
from tests.planning.test_fleet_plan import by_name, request, together
from tests.reconcile.staging import KEY, answer, refuse, staged
from tests.status.stories import asked, pod, story
from tests.status.test_conditions import CASES, OLD, UNSCHEDULED
from tests.status.test_live import STEP as TRIED

HELD: Final = pool(free={0: 1, 1: 1}, held={"b/other": 8})
CHAT: Final = {"preset": "chat"}


def _read(**found: Any) -> Story:
    """A deployment whose model's facts came so."""
    one = asked()
    return story(pod(), plan=plan(one, inventory(pool()), PlanFacts(**found)))


def _known(origin: str) -> Story:
    known = lookup(LLAMA)
    assert known is not None
    return _read(model=replace(known, origin=origin))


def _measured() -> Story:
    made = story(pod())
    assert made.plan is not None
    report = Report(state="serving", kv_tokens=100_000)
    return replace(made, entries={"chat-aaaa": made.plan.sets[0]}, reports={"0": report})


def _half_scheduled() -> Story:
    placed = pod(Stage.LOADING, 0, group=0, node="n")
    waits = pod(Stage.UNSCHEDULED, 1, group=0, rank=1, message="0/4 nodes are available")
    scene = story(placed, waits, per_replica=2)
    (seen,) = scene.serving.sets
    return replace(scene, serving=replace(scene.serving, sets=(replace(seen, groups=(0,)),)))


def _refused(why: str) -> Story:
    return story(old=(SetSeen(name="chat-aaaa", replicas=1, refused=why),))


def _adapter_failed() -> Story:
    adapters = {"runtimeLoading": True, "items": [{"name": "sql", "source": "hf://acme/sql"}]}
    made = story(pod(runtime_port=8079), spec={"adapters": adapters})
    declared = made.deployment.spec.adapters
    assert declared is not None
    seen = AdapterSeen(
        name="sql", id=adapter_id(declared.items[0]), state="Failed", message="the rank is too high"
    )
    return replace(made, adapters=declared, reports={"0": Report(state="serving", adapters=(seen,))})


def _of_two(config: dict[str, Any]) -> Story:
    """What is left for the second of two alike."""
    fleet = by_name(
        together([request(name, model=SMALL, replicas=4) for name in ("a", "chat")], config=config)
    )
    return story(plan=fleet["chat"])


def _ended(word: str, ends: int) -> Story:
    why = Failure(word, "it ended", "mend it")
    return story(pod(Stage.FAILED, reason="Error", restarts=ends, failure=why))


def _better(old: Pool, new: Pool, **spec: Any) -> Story:
    """What was planned on some hardware, with what came since."""
    one = asked(**spec)
    return story(pod(), spec=spec, plan=planned(one, old, new, pinned=planned(one, old)))


def _traffic_differs() -> Story:
    declared = Workload.model_validate({"concurrency": 4})
    pinned = planned(asked(workload=declared.to_dict()), pool(nodes=4))
    far = replace(SEEN, peak_inflight=900.0)
    told = better_declaration(
        far, declared, pinned, lambda workload: planned(asked(workload=workload.to_dict()), pool(nodes=4))
    )
    return story(pod(), plan=pinned, better=told)


def _asleep() -> Story:
    """Whom control lets sleep."""
    spec: dict[str, Any] = {"scaling": {"max": 4, "zero": {"wake": {"annotation": True}}}}
    one = asked(**spec)
    first = planned(one, pool())
    return story(spec=spec, plan=planned(one, pool(), pinned=first, wish=Wish(replicas=0)))


def _live(*told: Told) -> Story:
    return story(pod(), live=told)


def _gate(**said: Any) -> Story:
    return _live(gate_of(replace(signals(2), **said), Law()).told)


def _scaled(*, most: int = 20, state: ReplicaState = ReplicaState.READY, **room: Any) -> Story:
    """Under a load that asks for many more replicas than there are."""
    there = (*replicas(2), *replicas(1, state, age=10, first=2))
    scene = situation(
        signals(2, inflight=60, waiting=20, rate=8.0, kv=0.9),
        serving(replicas=there),
        bounds=Bounds(min=1, max=most),
    )
    left = Room(**{"gpus": {"h100": 99.0}, "limits": UNLIMITED, **room})
    memory, told = known(), list[Told]()
    for tick in range(4):
        found = decide(now=NOW + 15 * tick, situation=scene, memory=memory, room=left)
        scene, memory, told = obeyed(scene, found), found.memory, [*found.conditions]
    return _live(*told)


def _wake_refused() -> Story:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(by)"}}})
    refuse(stage, "no closing parenthesis")
    stage.run(control, world, 4)
    return _live(*world.directions[KEY].told)


def _wake_unanswered() -> Story:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(queue)"}}})
    stage.run(control, world, 30)
    return _live(*world.directions[KEY].told)


def _wake_failed() -> Story:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(queue)"}}})
    answer(stage, Woken(unanswered={KEY: "HTTP 503: busy"}))
    stage.run(control, world, 30)
    return _live(*world.directions[KEY].told)


def _unfollowed() -> Story:
    """More is wanted, and no turn comes to plan it."""
    stage, world, control = staged()
    stage.run(control, world, 6)
    stage.load, stage.turn = 60.0, lambda _: None  # type: ignore[method-assign,assignment]
    stage.run(control, world, 14)
    return _live(*world.directions[KEY].told)


def _tried(phase: Phase) -> Story:
    step = replace(TRIED, phase=phase)
    return replace(story(pod()), control=replace(EMPTY, retune=RetuneMemory(step=step)))


def _was_tried(outcome: Phase, *, tried: bool = True) -> Story:
    past = Past(
        id=TRIED.id, setting=TRIED.setting, before=TRIED.before, after=TRIED.after, symptom=TRIED.symptom,
        outcome=outcome, began=TRIED.began, ended=TRIED.began + 60, reason="it was judged", tried=tried,
    )  # fmt: skip
    return replace(story(pod()), control=replace(EMPTY, retune=RetuneMemory(past=(past,))))


def _held_back(world: retuned.World, **changed: Any) -> Story:
    """Engines preempt for minutes, and nothing is done about it."""
    memory = RetuneMemory()
    for _ in range(12):
        world.now += 30
        memory = advance(replace(world.scene(), **changed), memory).memory
    return replace(story(pod()), control=replace(EMPTY, retune=memory))


HERE: Final[Mapping[str, Callable[[], Story]]] = {
    "nothing is planned yet": lambda: Story(deployment=asked(), plan=None, rollout=None),
    "a node is being made": lambda: story(UNSCHEDULED, pools=(pool(free={}, declared_nodes=2),)),
    "nobody asks": _asleep,
    "something is not trusted": lambda: story(spec={"model": {"source": LLAMA, "trustRemoteCode": True}}),
    "the model cannot be read": lambda: _read(model=None, problem="the hub says that there is none"),
    "the model is being read": lambda: _read(model=None, reading="a pod reads it"),
    "the API server refuses an object": lambda: story(
        pod(), troubles=(Trouble(reason="Refused", message="a policy forbids it", stalled=True),)
    ),
    "the API server refuses pods": lambda: _refused('violates PodSecurity "restricted:latest"'),
    "a quota refuses pods": lambda: _refused("exceeded quota: gpus, requested: 1, used: 8, limited: 8"),
    "the engine has measured it": _measured,
    "a product is not known": lambda: story(spec={"topology": {"gpuProducts": ["H1000"]}}),
    "GPUs are held by others": lambda: story(spec={"source": LLAMA_70B, "workload": CHAT}, pools=(HELD,)),
    "others of the namespace have spent its budget": lambda: _of_two(
        {"budgets": [{"namespace": "team-a", "gpus": 4}]}
    ),
    "it fits tightly": lambda: story(
        pod(), spec={"source": LLAMA_70B, "topology": {"tensor": 1}}, pools=(pool("L4-24GB", 8, 1),)
    ),
    "some pods of a group have no node": _half_scheduled,
    "a part tries the change": lambda: story(
        pod(Stage.LOADING), spec={"replicas": 2}, old=(OLD,), rules=Rules(percents=(10,))
    ),
    "the user holds the change": lambda: story(pod(Stage.LOADING), old=(OLD,), rules=Rules(hold=True)),
    "a replica leaves a node": lambda: story(pod(leaves="node n, which is cordoned")),
    "a smaller setting is in use": lambda: replace(
        story(pod()), safe_retry="a start failed for memory, so fewer sequences are asked for"
    ),
    "a set that serves cannot be read": lambda: replace(story(pod()), spared=frozenset({"aaaa"})),
    "an adapter cannot be loaded": _adapter_failed,
    "the hub told of the model": lambda: _known("hub"),
    "the spec tells of the model": lambda: _known("inline"),
    "a pod told of the model": lambda: _known("facts pod"),
    "the engine is newer than all that is known": lambda: _read(
        model=lookup(LLAMA), engine=engine_facts("vllm", "99.0.0")
    ),
    "there is something cheaper": lambda: _better(
        pool(nodes=1, price_per_hour="4"), pool("L40S-48GB", 4, price_per_hour="0.3")
    ),
    "there is something that takes fewer GPUs": lambda: _better(
        pool("L40S-48GB", 4), pool(), source=QWEN_32B
    ),
    "there is something faster": lambda: _better(pool("L40S-48GB", 4), pool()),
    "the traffic is not what was declared": _traffic_differs,
    "metrics are there": _gate,
    "too few replicas have metrics": lambda: _gate(live=9),
    "metrics are there and old": lambda: _gate(replicas=(), late=2),
    "nobody answers for metrics": lambda: _gate(reachable=False),
    "nobody has answered for metrics for an hour": lambda: _live(
        lasting(gate_of(replace(signals(2), reachable=False), Law()).told, NOW - 3600, NOW, Law())
    ),
    "a query is refused": _wake_refused,
    "a query finds nothing": _wake_unanswered,
    "Prometheus fails on a query": _wake_failed,
    "more than the most is wanted": lambda: _scaled(most=3),
    "more than the fleet has is wanted": lambda: _scaled(gpus={"h100": 0.0}),
    "more than the budget allows is wanted": lambda: _scaled(limits=Limits(devices=Fraction(0))),
    "what fails to start is wanted": lambda: _scaled(state=ReplicaState.FAILED),
    "what no plan follows is wanted": _unfollowed,
    "limits are kept": lambda: story(pod(), spec={"slo": {"ttftP99Ms": 60_000}, "workload": CHAT}),
    "limits cannot be kept": lambda: story(pod(), spec={"slo": {"ttftP99Ms": 1}, "workload": CHAT}),
    "limits are kept for typical requests alone": lambda: story(
        pod(), spec={"slo": {"ttftP99Ms": 60}, "workload": CHAT | {"requestsPerSecond": "4"}}
    ),
    "two scale it": lambda: story(
        pod(), spec={"replicas": 1}, scalers=("HorizontalPodAutoscaler a", "ScaledObject b")
    ),
    "retuning failed too often": lambda: _live(paused(RetuneMemory(failures=3, paused_at=NOW))),
    "retuning is on": lambda: _live(paused(RetuneMemory())),
    **{f"a retune is {phase}": partial(_tried, phase) for phase in Phase if phase not in ENDS},
    "a retune stays": lambda: _was_tried(Phase.DONE),
    "a retune was taken back": lambda: _was_tried(Phase.FAILED),
    "a retune was given up before it was tried": lambda: _was_tried(Phase.FAILED, tried=False),
    "a retune would restart the only replica": lambda: _held_back(retuned.World(replicas=1, free=0)),
    "retunes of the day are used up": lambda: _held_back(retuned.World(rules=Restarts(retunes_per_day=0))),
    "a retune takes more restarts than a day may have": lambda: _held_back(
        retuned.World(free=0, rules=Restarts(restarts_per_day=1))
    ),
    "others are retuned": lambda: _held_back(retuned.World(), fleet_retuning=9.0),
    "too few ask to judge a retune by": lambda: _held_back(
        retuned.World(old=replace(retuned.OLD, rate=0.01))
    ),
    "no setting helps": lambda: _held_back(retuned.World(consent=Consent(allowed=("maxBatchedTokens",)))),
}
ENDED: Final = {f"{word}, {ends} times": _ended(word, ends) for word in FAILURES for ends in (1, 4)}
STORIES: Final[Mapping[str, Story]] = {
    **{name: scene for name, (scene, _) in CASES.items()},
    **{name: make() for name, make in HERE.items()},
    **ENDED,
}
