"""What conditions say is left out where another finding says it, and nowhere else."""

from __future__ import annotations

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import deployment, look, serving_pod, unscheduled, waiting


def test_conditions_do_not_repeat_what_a_check_has_said() -> None:
    pod = waiting("ImagePullBackOff", "not found")
    alone = diagnose(look(pods=(pod,))).found
    repeated = {
        "type": "Ready",
        "status": "False",
        "reason": "StartFailed",
        "message": f"0 of 1: {alone[0].message}",
    }
    assert diagnose(look(pods=(pod,), deployments=(deployment(repeated),))).found == alone


def test_a_warning_does_not_speak_for_the_error_that_nothing_serves_for_it() -> None:
    """The exit code is the same, whether or not pods may be read."""
    gated = {**unscheduled(""), "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}}
    (pod,) = diagnose(look(pods=(gated,))).found
    assert pod.severity == "warning"
    waits = {
        "type": "Ready",
        "status": "False",
        "reason": "WaitingForQuota",
        "message": f"0 of 1: {pod.message}",
    }
    seen = diagnose(look(pods=(gated,), deployments=(deployment(waits),)))
    assert [(one.severity, one.reason) for one in seen.found] == [
        ("error", "WaitingForQuota"),
        ("warning", "Gated"),
    ]


def test_a_further_replica_that_waits_at_a_gate_is_no_error_while_another_one_serves() -> None:
    gated = {
        **unscheduled("", "chat-1a2b3c4d-y"),
        "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
    }
    (pod,) = diagnose(look(pods=(serving_pod(), gated))).found
    why = {"status": "False", "reason": "WaitingForQuota", "message": f"1 of 2 replicas serve: {pod.message}"}
    fewer = {
        "type": "Degraded",
        "status": "True",
        "reason": "FewerReplicas",
        "message": "1 of 2 replicas answer",
    }
    some = deployment({"type": "Ready"} | why, fewer)
    assert diagnose(look(pods=(serving_pod(), gated), deployments=(some,))).found == (pod,)
    (blind,) = diagnose(look(pods=(), deployments=(some,))).found
    assert (blind.severity, blind.reason) == ("warning", "WaitingForQuota")


def test_a_further_replica_that_fails_is_an_error_also_while_another_one_serves() -> None:
    failing = waiting("ImagePullBackOff", "not found")
    (pod,) = diagnose(look(pods=(failing,))).found
    why = {"status": "False", "reason": "StartFailed", "message": f"1 of 2 replicas serve: {pod.message}"}
    some = deployment(
        {"type": "Ready"} | why, {"type": "Degraded", "status": "True", "reason": "FewerReplicas"}
    )
    assert diagnose(look(pods=(serving_pod(), failing), deployments=(some,))).found == (pod,)
    assert pod.severity == "error"


def test_a_deployment_that_is_held_says_so_beside_what_is_wrong_with_its_pod() -> None:
    """The cure of the pod reaches no pod before the other is done."""
    pod = waiting("ImagePullBackOff", "not found")
    (wrong,) = diagnose(look(pods=(pod,))).found
    held = deployment(
        {"type": "Ready", "status": "False", "reason": "Paused", "message": f"paused; {wrong.message}"}
    )
    assert [one.reason for one in diagnose(look(pods=(pod,), deployments=(held,))).found] == [
        "ImagePull",
        "Paused",
    ]
