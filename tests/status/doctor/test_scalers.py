"""By which of their own conditions autoscalers are told to fail: those of KEDA are others than those of Kubernetes."""

from __future__ import annotations

import pytest

from plimsoll import names
from plimsoll.status.doctor.diagnosis import diagnose
from plimsoll.status.doctor.found import Found
from tests.status.doctor.shown import Object, deployment, look, scaled_object, scaler


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def found(autoscaler: Object, replicas: int = 2) -> tuple[Found, ...]:
    return diagnose(look(deployments=(deployment(replicas=replicas),), autoscalers=(autoscaler,))).found


@pytest.mark.parametrize(
    "wrong",
    [
        condition("Ready", "False", "ScaledObjectCheckFailed", "no such trigger"),
        condition("Fallback", "True", "FallbackExists", "a trigger is falling back"),
    ],
)
def test_a_scaled_object_is_told_by_the_conditions_that_keda_sets(wrong: Object) -> None:
    (one,) = found(scaled_object(condition("Active", "True"), wrong))
    assert (one.severity, one.about, one.reason) == ("warning", "ScaledObject team/load", wrong["reason"])
    assert wrong["message"] in one.message
    assert one.remedy == "kubectl -n team describe scaledobject load"


def test_a_scaled_object_without_load_or_one_that_somebody_paused_is_well() -> None:
    ready, idle = condition("Ready", "True"), condition("Active", "False", "ScalerNotActive")
    paused, no_fallback = condition("Paused", "True"), condition("Fallback", "False", "NoFallbackFound")
    assert found(scaled_object(ready, idle, no_fallback, paused)) == ()


def test_an_autoscaler_is_not_told_to_fail_where_it_rests_as_replicas_were_set_to_zero() -> None:
    resting = condition(
        "ScalingActive", "False", "ScalingDisabled", "the replica count of the target is zero"
    )
    assert found(scaler("load", (names.KIND, "chat"), resting), replicas=0) == ()
