"""What each situation of a deployment is told as."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.conditions import REASONS, get_condition
from plimsoll.api.problems import Problem
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.failure import Failure
from plimsoll.facts.serving import SetSeen, Stage
from plimsoll.planning.pinning import Wish
from plimsoll.status.said import conditions_of
from plimsoll.status.story import Story, Trouble
from plimsoll.status.told import news, status_after
from tests.planning.asking import LLAMA, QWEN_32B, R1, cpu_pool, planned, pool
from tests.status.stories import NOW, asked, pod, story

UNSCHEDULED = pod(Stage.UNSCHEDULED, message="0/4 nodes are available: 4 Insufficient nvidia.com/gpu.")
CRASHED = pod(Stage.FAILED, reason="CrashLoopBackOff", restarts=5, exit_code=1, message="bad flag")
HELD = pod(Stage.LOADING, reason="ContainersNotReady", message="unready status: [istio-proxy]")
OLD = SetSeen(name="chat-old", replicas=1, pods=(pod(number=9),))

CASES = {
    "it serves": (story(pod()), {"Ready": ("True", "Serving")}),
    "it loads": (
        story(pod(Stage.LOADING)),
        {"Ready": ("False", "Starting"), "Reconciling": ("True", "Starting")},
    ),
    "no GPU is free for a pod": (
        story(UNSCHEDULED),
        {"Ready": ("False", "WaitingForGPUs"), "Reconciling": ("True", "Starting")},
    ),
    "a queue holds it back": (
        story(pod(Stage.GATED)),
        {"Ready": ("False", "WaitingForQuota"), "Reconciling": ("True", "Starting")},
    ),
    "the image cannot be pulled": (
        story(pod(Stage.FAILED, reason="ImagePullBackOff", message="not found")),
        {"Ready": ("False", "StartFailed"), "Reconciling": ("True", "Starting")},
    ),
    "the engine dies again and again": (
        story(CRASHED),
        {"Ready": ("False", "StartFailed"), "Stalled": ("True", "StartFailed"), "Progressing": ("False", "DeadlineExceeded")},
    ),
    "the new set failed and the old one serves": (
        story(CRASHED, old=(OLD,)),
        {"Ready": ("False", "StartFailed"), "Stalled": ("True", "StartFailed"), "Progressing": ("False", "RolledBack")},
    ),
    "a container beside the engine is not ready": (
        story(HELD),
        {"Ready": ("False", "Starting"), "Reconciling": ("True", "Starting")},
    ),
    "a container beside the engine is not ready in time": (
        story(HELD, now=1801.0),
        {"Ready": ("False", "StartFailed"), "Stalled": ("True", "StartFailed"), "Progressing": ("False", "DeadlineExceeded")},
    ),
    "a container beside the engine of a new replica is not ready": (
        story(HELD, old=(OLD,)),
        {"Ready": ("False", "RollingOut"), "Reconciling": ("True", "RollingOut"), "Degraded": ("False", "Healthy")},
    ),
    "an engine that died before is ready, and a container beside it is not": (
        story(replace(HELD, restarts=1), pod(number=1)),
        {"Ready": ("True", "Serving"), "Degraded": ("False", "Healthy")},
    ),
    "replicas move": (
        story(pod(Stage.LOADING), old=(OLD,)),
        {"Ready": ("False", "RollingOut"), "Reconciling": ("True", "RollingOut"), "Degraded": ("False", "Healthy")},
    ),
    "a route is asked for and the cluster serves none": (
        story(pod(), unserved=(Problem("spec.networking.gateway", "", "the cluster serves no HTTPRoute"),)),
        {"Ready": ("True", "Serving"), "Degraded": ("True", "NotServed")},
    ),
    "the cluster does not serve the kind that pods should be made by": (
        story(pod(Stage.LOADING), unserved=(Problem("spec.topology.groups", "", "the cluster serves no LeaderWorkerSet"),)),
        {"Ready": ("False", "StartFailed"), "Stalled": ("True", "NotServed")},
    ),
    "it is stopped": (
        story(spec={"replicas": 0}),
        {"Ready": ("True", "Stopped")},
    ),
    "it is being stopped": (story(pod(), spec={"replicas": 0}), {"Ready": ("False", "Stopped")}),
    "it is paused while it serves": (story(pod(), spec={"paused": True}), {"Ready": ("True", "Paused")}),
    "it is paused before it serves": (
        story(pod(Stage.LOADING), spec={"paused": True}),
        {"Ready": ("False", "Paused")},
    ),
    "no layout fits any GPU": (
        story(spec={"source": R1}, pools=(pool("L4", 1),)),
        {"Ready": ("False", "DoesNotFit"), "Stalled": ("True", "DoesNotFit"), "Fits": ("False", "DoesNotFit")},
    ),
    "the fleet has none of the GPUs": (
        story(spec={"source": LLAMA, "topology": {"gpuProducts": ["H200"]}}),
        {"Ready": ("False", "DoesNotFit"), "Stalled": ("True", "DoesNotFit"), "Placed": ("False", "NoGPUs")},
    ),
    "the spec contradicts the model": (
        story(spec={"source": LLAMA, "topology": {"tensor": 3}}),
        {"Ready": ("False", "InvalidSpec"), "Stalled": ("True", "InvalidSpec"), "Fits": ("Unknown", "NotPlanned")},
    ),
    "the model cannot be read": (
        story(spec={"source": "hf://example/nobody-knows-this"}),
        {"Ready": ("False", "ModelUnreadable"), "Stalled": ("True", "ModelUnreadable"), "Fits": ("Unknown", "NotPlanned")},
    ),
    "fewer GPUs are free than asked for": (
        story(pod(), spec={"source": QWEN_32B, "replicas": 40}),
        {
            "Ready": ("False", "WaitingForGPUs"),
            "Reconciling": ("True", "Starting"),
            "Placed": ("False", "NoGPUs"),
            "Degraded": ("True", "FewerReplicas"),
        },
    ),
    "all that found GPUs serve, but more are wanted": (
        story(*(pod(number=n) for n in range(16)), spec={"source": QWEN_32B, "replicas": 40}),
        {"Ready": ("False", "WaitingForGPUs"), "Reconciling": ("True", "Starting"), "Placed": ("False", "NoGPUs")},
    ),
    "an engine that serves has died before": (
        story(pod(restarts=4, reason="OOMKilled", exit_code=137)),
        {"Ready": ("True", "Serving"), "Degraded": ("True", "EngineRestarts")},
    ),
    "an autoscaler targets it but spec.replicas is absent": (
        story(pod(), scalers=("HorizontalPodAutoscaler web",)),
        {"ScalingLimited": ("True", "SetReplicas")},
    ),
    "a foreign object has the name": (
        story(pod(), troubles=(Trouble(reason="NameConflict", message="Service chat is not ours", stalled=True),)),
        {"Stalled": ("True", "NameConflict")},
    ),
    "the API server does not answer": (
        story(pod(), troubles=(Trouble(reason="Applying", message="timed out"),)),
        {"Reconciling": ("True", "Applying"), "Ready": ("True", "Serving")},
    ),
}  # fmt: skip
ABNORMAL = (names.RECONCILING, names.STALLED)


@pytest.mark.parametrize("case", CASES)
def test_a_situation_is_told_by_its_conditions(case: str) -> None:
    scene, wanted = CASES[case]
    said = {one.type: (one.status, one.reason) for one in conditions_of(scene)}
    assert wanted == {kind: said.get(kind) for kind in wanted}
    for kind in ABNORMAL:
        assert (kind in said) == (kind in wanted), f"{kind} is {said.get(kind)}"


@pytest.mark.parametrize("case", CASES)
def test_every_condition_has_a_known_reason_a_sentence_and_the_generation(case: str) -> None:
    scene, _ = CASES[case]
    status = status_after(scene, LLMDeploymentStatus(), NOW)
    assert status.observed_generation == 3
    for condition in status.conditions:
        assert condition.reason in REASONS[condition.type]
        assert condition.message.strip(), condition
        assert condition.observed_generation == 3


@pytest.mark.parametrize("case", CASES)
def test_telling_the_same_story_again_changes_nothing(case: str) -> None:
    scene, _ = CASES[case]
    once = status_after(scene, LLMDeploymentStatus(), NOW)
    assert status_after(scene, once, "2026-01-02T00:00:00Z") == once
    assert news(once.conditions, once.conditions) == ()


def test_the_first_status_is_there_before_there_is_a_plan() -> None:
    status = status_after(Story(deployment=asked(), plan=None, rollout=None), LLMDeploymentStatus(), NOW)
    ready = get_condition(status.conditions, names.READY)
    assert ready is not None
    assert (ready.status, status.ready) == ("Unknown", "0/0")


def test_a_failing_pod_is_told_with_what_it_said_and_what_helps() -> None:
    status = status_after(CASES["the image cannot be pulled"][0], LLMDeploymentStatus(), NOW)
    ready = get_condition(status.conditions, names.READY)
    assert ready is not None
    assert "ImagePullBackOff: not found" in ready.message.replace(") :", ":").replace("): ", ": ")
    assert "engine.imagePullSecrets" in ready.message


@pytest.mark.parametrize("case", [name for name in CASES if name.startswith("a container beside")])
def test_what_holds_a_replica_back_beside_its_engine_is_named(case: str) -> None:
    ready = get_condition(status_after(CASES[case][0], LLMDeploymentStatus(), NOW).conditions, names.READY)
    assert ready is not None
    assert "[istio-proxy]" in ready.message
    assert "kubectl describe pod chat-aaaa-0" in ready.message


def test_a_start_that_takes_longer_than_its_probe_is_told_with_the_field_that_cures_it() -> None:
    slow = pod(Stage.LOADING, restarts=2, exit_code=137, late_s=600)
    ready = get_condition(status_after(story(slow), LLMDeploymentStatus(), NOW).conditions, names.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "StartFailed")
    assert "after 600 s, before it had loaded its model, 2 times" in ready.message
    assert "spec.rollout.deadlineSeconds" in ready.message


@pytest.mark.parametrize(
    ("found", "serves"),
    [
        (story(pod()), True),
        (story(pod(Stage.LOADING), old=(OLD,)), True),
        (story(spec={"replicas": 0}), True),
        (story(pod(Stage.LOADING)), False),
        (story(UNSCHEDULED), False),
    ],
)
def test_where_no_replica_serves_nothing_is_told_of_what_does(found: Story, serves: bool) -> None:
    said = get_condition(status_after(found, LLMDeploymentStatus(), NOW).conditions, names.DEGRADED)
    assert said is not None
    assert (said.status, said.reason) == ("False", "Healthy")
    assert ("what serves" in said.message) == serves


def test_what_the_engine_could_not_be_told_is_told_beside_how_it_serves() -> None:
    untold = "--max-num-queued-reqs 50: vllm 0.20.2 has no such flag"
    for said, message in (
        ((), "nothing is missing of what serves"),
        ((untold,), f"nothing is missing of what serves; the engine was not told {untold}"),
    ):
        found = replace(story(pod()), unsaid=said)
        degraded = get_condition(status_after(found, LLMDeploymentStatus(), NOW).conditions, names.DEGRADED)
        assert degraded is not None
        assert (degraded.status, degraded.reason, degraded.message) == ("False", "Healthy", message)


def test_replicas_are_counted_by_what_they_wait_for() -> None:
    status = status_after(story(UNSCHEDULED, pod(number=1), spec={"replicas": 2}), LLMDeploymentStatus(), NOW)
    found = status.replica_status
    assert found is not None
    assert (found.wanted, found.ready, found.waiting_for_gpus, found.starting) == (2, 1, 1, 0)


def test_the_plan_is_told_in_short() -> None:
    plan = story(pod()).plan
    assert plan is not None
    found = status_after(story(pod()), LLMDeploymentStatus(), NOW).plan
    assert found is not None
    assert (found.digest, found.layout, found.verdict) == (plan.digest, "tp1", "Fits")
    assert sum(term.bytes for term in found.ledger) > 0


def test_a_cpu_plan_is_told_as_any_other() -> None:
    one = asked(source="Qwen/Qwen3-0.6B", topology={"cpu": {}})
    plan = planned(one, cpu_pool())
    status = status_after(
        Story(deployment=one, plan=plan, rollout=None, config_map="chat-plan"), LLMDeploymentStatus(), NOW
    )
    assert status.plan is not None
    assert status.plan.gpus_per_replica == plan.sets[0].devices_per_replica


def test_the_time_of_pinning_stays_while_the_plan_does() -> None:
    once = status_after(story(pod()), LLMDeploymentStatus(), NOW)
    again = status_after(story(pod(Stage.LOADING)), once, "2026-01-02T00:00:00Z")
    assert again.plan is not None
    assert again.plan.pinned_at == NOW


def test_conditions_and_fields_of_others_are_let_through() -> None:
    before = LLMDeploymentStatus.model_validate({
        "lastScaleTime": NOW,
        "conditions": [
            {"type": names.METRICS, "status": "True", "reason": "Fresh", "message": "m", "lastTransitionTime": NOW}
        ],
    })  # fmt: skip
    status = status_after(story(pod()), before, NOW)
    assert status.last_scale_time == NOW
    assert get_condition(status.conditions, names.METRICS) is not None


def test_a_change_of_a_condition_is_an_event_once() -> None:
    loads = status_after(story(pod(Stage.LOADING)), LLMDeploymentStatus(), NOW)
    serves = status_after(story(pod()), loads, NOW)
    found = news(loads.conditions, serves.conditions)
    assert [(one.type, one.reason) for one in found] == [("Normal", "Serving")]


def test_a_failure_is_a_warning() -> None:
    before = status_after(story(pod(Stage.LOADING)), LLMDeploymentStatus(), NOW)
    after = status_after(story(CRASHED), before, NOW)
    assert {(one.type, one.reason) for one in news(before.conditions, after.conditions)} >= {
        ("Warning", "StartFailed")
    }


def test_the_longest_message_of_an_engine_is_cut() -> None:
    long = replace(CRASHED, message="x" * 5000)
    status = status_after(story(long), LLMDeploymentStatus(), NOW)
    assert max(len(condition.message) for condition in status.conditions) <= 2048


NO_ROOM = Failure(
    "NoKvRoom", "weights leave no room for the cache", "fewer sequences: spec.engine.maxSequences"
)


@pytest.mark.parametrize(("restarts", "stalled"), [(1, None), (4, "NoKvRoom")])
def test_a_supervisor_s_word_is_the_reason_and_its_remedy_the_cure(
    restarts: int, stalled: str | None
) -> None:
    failing = pod(Stage.FAILED, reason="Error", message=NO_ROOM.message, restarts=restarts, failure=NO_ROOM)
    conditions = {one.type: one for one in conditions_of(story(failing))}
    ready = conditions[names.READY]
    assert (ready.status, ready.reason) == ("False", "NoKvRoom")
    assert NO_ROOM.message in ready.message
    assert NO_ROOM.remedy in ready.message
    assert (conditions[names.STALLED].reason if names.STALLED in conditions else None) == stalled


def test_a_word_that_is_not_known_is_told_in_the_sentence() -> None:
    strange = Failure("SomethingNew", "it is new", "ask")
    failing = pod(Stage.FAILED, reason="Error", restarts=1, failure=strange)
    ready = next(one for one in conditions_of(story(failing)) if one.type == names.READY)
    assert ready.reason == "StartFailed"
    assert "it is new; ask" in ready.message


def test_a_set_that_only_stands_by_is_not_told_as_one_that_serves() -> None:
    spec: dict[str, object] = {"scaling": {"max": 3}, "topology": {"tensor": 1}}
    served = pool("L40S-48GB", nodes=1, free={1: 1}, price_per_hour="1")
    full = pool("L40S-48GB", nodes=1, free={0: 1}, held={"team-a/chat": 1}, price_per_hour="1")
    first = planned(asked(**spec), served)
    wish = Wish(replicas=1, further=True)
    mixed = planned(asked(**spec), full, pool(nodes=1), pinned=first, wish=wish)
    assert [one.replicas for one in mixed.sets] == [1, 0]
    found = status_after(story(pod(), spec=spec, plan=mixed), LLMDeploymentStatus(), NOW)
    assert found.plan is not None
    assert (found.plan.gpu, found.plan.cost_per_hour) == (str(first.sets[0].hardware), first.cost.per_hour)
    placed = get_condition(found.conditions, names.PLACED)
    assert placed is not None
    assert placed.message == f"1 x {first.sets[0].layout} on {first.sets[0].hardware}"


def test_the_condition_names_the_target_that_no_plan_keeps_and_what_would_help():
    told = {
        one.type: one for one in conditions_of(story(pod(), spec={"slo": {"ttftP99Ms": 2000, "itlP99Ms": 1}}))
    }
    said = told[names.SLO]
    assert (said.status, said.reason) == ("False", "Unattainable")
    assert "keeps slo.itlP99Ms 1 even for a single request" in said.message.replace("also ", "")
    assert "ms. It is planned all the same, and keeps slo.ttftP99Ms" in said.message
    assert "slo.itlP99Ms of " in said.message
