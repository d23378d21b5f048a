"""Which pods wait for a volume that is being made for them."""

from __future__ import annotations

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from plimsoll.status.doctor.volumes import SELECTED, volumes_being_made
from tests.status.doctor.shown import Object, claim, look, serving_pod

POD = "chat-1a2b3c4d-x"
CHOSEN = {SELECTED: "n1"}


def mounting(*volumes: Object) -> Object:
    found = serving_pod(phase="Pending", conditions=[])
    return found | {"spec": found["spec"] | {"volumes": list(volumes)}}


def of(name: str) -> Object:
    return {"name": "weights", "persistentVolumeClaim": {"claimName": name}}


def named(
    name: str = "weights", namespace: str = "team", phase: str = "Pending", notes: Object | None = None
) -> Object:
    found = claim("late", name, phase)
    return found | {"metadata": found["metadata"] | {"namespace": namespace, "annotations": notes}}


def test_a_pod_waits_for_a_volume_that_is_made_on_the_node_that_a_scheduler_chose() -> None:
    pod = mounting({"name": "tmp", "emptyDir": {}}, of("cache"), of("weights"))
    claims = (named("cache", phase="Bound", notes=CHOSEN), named(notes=CHOSEN))
    assert volumes_being_made(look(pods=(pod,), claims=claims)) == {f"team/{POD}": "weights"}


def test_so_does_one_whose_claim_is_its_own() -> None:
    """Kubernetes names such a claim after the pod and the volume."""
    pod = mounting({"name": "cache", "ephemeral": {"volumeClaimTemplate": {}}})
    own = named(f"{POD}-cache", notes=CHOSEN)
    assert volumes_being_made(look(pods=(pod,), claims=(own,))) == {f"team/{POD}": f"{POD}-cache"}


@pytest.mark.parametrize(
    "claims",
    [
        (),
        (named(),),
        (named(phase="Bound", notes=CHOSEN),),
        (named("cache", notes=CHOSEN),),
        (named(namespace="other", notes=CHOSEN),),
    ],
    ids=["no claim", "no node chosen", "it is there", "another claim", "another namespace"],
)
def test_no_other_claim_is_waited_for(claims: tuple[Object, ...]) -> None:
    assert volumes_being_made(look(pods=(mounting(of("weights")),), claims=claims)) == {}


def test_a_pod_without_volumes_waits_for_none() -> None:
    assert volumes_being_made(look(claims=(named(notes=CHOSEN),))) == {}


def test_it_is_not_told_as_a_pod_that_no_scheduler_has_seen() -> None:
    """A scheduler that waits for the volume says nothing of the pod."""
    seen = {"pods": (mounting(of("weights")),), "classes": ()}
    (silent,) = diagnose(look(**seen)).found
    assert (silent.severity, silent.reason) == ("error", "NoScheduler")
    (made,) = diagnose(look(**seen, claims=(named(notes=CHOSEN),))).found
    assert (made.severity, made.reason) == ("warning", "Volume")
    assert "claim weights is made" in made.message
