"""Pods that the API server refuses: the API server's words, what cures them, and which condition tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.serving import SetSeen, Stage
from plimsoll.status.refusals import refusal_words, words_of_refusal
from plimsoll.status.said import conditions_of
from plimsoll.status.story import Story
from plimsoll.status.told import status_after
from tests.status.stories import NOW, pod, story

QUOTA = "exceeded quota: team-gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
POD_SECURITY = (
    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "engine" must set '
    "securityContext.allowPrivilegeEscalation=false)"
)

WORDS = {
    "a quota that is used up": (QUOTA, "Quota", "team-gpus"),
    "a quota of what pods do not name": (
        "failed quota: compute: must specify limits.cpu for: engine; limits.memory for: engine",
        "QuotaNeedsValues",
        "compute wants limits.cpu",
    ),
    "a limit range's maximum": (
        "[maximum memory usage per Container is 8Gi, but limit is 64Gi, maximum cpu usage per Container is 2, but limit is 8]",
        "LimitRange",
        "limitrange",
    ),
    "a limit range's ratio": (
        "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        "LimitRange",
        "limitrange",
    ),
    "a limit range's default below what is asked for": (
        'spec.containers[0].resources.requests: Invalid value: "24Gi": must be less than or equal to memory limit of 1Mi',
        "LimitRange",
        "limitrange",
    ),
    "pod security": (POD_SECURITY, "PodSecurity", "pod-security.kubernetes.io/enforce"),
    "a service account that is not there": (
        'error looking up service account team/robot: serviceaccount "robot" not found',
        "NoServiceAccount",
        "spec.scheduling.serviceAccount",
    ),
    "a priority class that is not there": (
        "no PriorityClass with name urgent was found",
        "NoPriorityClass",
        "PriorityClass urgent",
    ),
    "a webhook that says no": (
        'admission webhook "guard.example.com" denied the request: only signed images',
        "WebhookDenied",
        "guard.example.com",
    ),
    "a webhook that is down": (
        'Internal error occurred: failed calling webhook "guard.example.com": connection refused',
        "WebhookDown",
        "guard.example.com does not answer",
    ),
    "anything else": ("the moon is full", "Refused", "reason=FailedCreate"),
}


@pytest.mark.parametrize(("text", "reason", "remedy"), WORDS.values(), ids=WORDS)
def test_a_refusal_keeps_the_api_servers_words_and_says_what_cures_it(
    text: str, reason: str, remedy: str
) -> None:
    words = words_of_refusal("chat-aaaa", text)
    assert words.reason == reason
    assert text in words.message
    assert "chat-aaaa" in words.message
    assert remedy in words.remedy
    assert (words.waits == "quota") == (reason == "Quota")


def refused(text: str, *, pods: int = 0, replicas: int = 1) -> Story:
    made = story(pod(), spec={"replicas": replicas})
    seen = SetSeen(
        name="chat-aaaa",
        replicas=replicas,
        refused=text,
        pods=tuple(pod(number=number) for number in range(pods)),
    )
    return replace(made, serving=replace(made.serving, sets=(seen,)))


def said(one: Story) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in conditions_of(one)}


def test_a_quota_is_waited_for_and_counted() -> None:
    one = refused(QUOTA, replicas=2)
    assert said(one)[names.READY] == ("False", "WaitingForQuota")
    assert names.STALLED not in said(one)
    counted = status_after(one, LLMDeploymentStatus(), NOW).replica_status
    assert counted is not None
    assert (counted.waiting_for_quota, counted.waiting_for_gpus) == (2, 0)
    message = next(each.message for each in conditions_of(one) if each.type == names.READY)
    assert "raise ResourceQuota team-gpus" in message


def test_what_only_a_person_can_allow_is_stalled_with_the_remedy() -> None:
    one = refused(POD_SECURITY)
    assert said(one)[names.STALLED] == ("True", "Refused")
    assert said(one)[names.READY] == ("False", "StartFailed")
    assert names.RECONCILING not in said(one)
    message = next(each.message for each in conditions_of(one) if each.type == names.STALLED)
    assert "podPatches" in message


def test_a_refusal_of_some_pods_leaves_those_that_serve_in_the_count() -> None:
    one = refused(QUOTA, pods=1, replicas=2)
    assert said(one)[names.READY] == ("False", "WaitingForQuota")
    assert said(one)[names.DEGRADED] == ("True", "FewerReplicas")


def test_a_refusal_that_is_over_is_not_told() -> None:
    assert (
        refusal_words(SetSeen(name="chat-aaaa", replicas=1, refused=QUOTA, pods=(pod(Stage.LOADING),)))
        is None
    )
    assert said(refused(QUOTA, pods=1))[names.READY] == ("True", "Serving")


def test_a_set_that_is_on_its_way_out_may_be_refused() -> None:
    old = SetSeen(name="chat-old", replicas=1, refused=POD_SECURITY)
    assert names.STALLED not in said(story(pod(), old=(old,)))
