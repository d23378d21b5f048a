"""What the doctor says of an operator that acts, by what it has and has not said of deployments."""

from __future__ import annotations

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import Object, deployment, lease, look

LONG_AGO = "2027-01-15T07:50:00Z"
JUST_NOW = "2027-01-15T07:59:30Z"
SERVING: Object = {"type": "Ready", "status": "True", "reason": "Serving"}


def new(created: str = LONG_AGO, **metadata: object) -> Object:
    """A deployment without a status."""
    found = deployment()
    return {
        **found,
        "metadata": found["metadata"] | {"creationTimestamp": created} | metadata,
        "status": {},
    }


def edited(*written: Object) -> Object:
    """A deployment whose status is of the spec before, and by whom and when it was written."""
    found = deployment(SERVING)
    return {**found, "metadata": found["metadata"] | {"generation": 3, "managedFields": list(written)}}


def test_a_deployment_that_no_acting_operator_looks_at_is_an_error_that_says_who_acts_and_what_to_see() -> (
    None
):
    """As in a namespace that the chart's `namespaces` leave out."""
    diagnosis = diagnose(look(deployments=(new(),), pods=(), workloads=()))
    (found,) = diagnosis.found
    assert (found.severity, found.about, found.reason) == ("error", "LLMDeployment team/chat", "NotLookedAt")
    assert found.message == "no operator has looked at team/chat, though one acts: pod-a"
    assert "`namespaces` of the chart" in found.remedy
    assert "kubectl -n plimsoll logs -l plimsoll.dev/role=operator" in found.remedy


def test_what_an_operator_that_acts_watches_is_told_where_it_has_said_so() -> None:
    """Of two releases in one namespace only one acts, as they share a Lease."""
    seen = look(deployments=(new(),), pods=(), workloads=(), leases=(lease(watches="zoo"),))
    (found,) = diagnose(seen).found
    assert found.message.endswith("though one acts: pod-a, which watches zoo")
    assert "whether another release in plimsoll waits for its Lease" in found.remedy


def test_deployments_that_nobody_looks_at_are_one_finding_that_names_each_operator_that_acts() -> None:
    """One that is silent does not act."""
    away: Object = {**lease("pod-c", LONG_AGO), "metadata": {"name": "plimsoll-operator", "namespace": "old"}}
    several = tuple(new(name=f"chat-{number}") for number in range(5))
    seen = look(deployments=several, pods=(), workloads=(), leases=(away, lease("pod-b"), lease("pod-a")))
    (found,) = diagnose(seen).found
    assert found.about == "LLMDeployment team/chat-0, team/chat-1, team/chat-2 and 2 more"
    assert found.message.endswith("though one acts: pod-a, pod-b")


def test_a_deployment_that_nobody_looks_at_is_told_too_where_leases_may_not_be_read() -> None:
    """As by a member of a team, who sees its status and not who acts."""
    forbidden: Object = {"leases": (), "unseen": {"leases": "403"}, "pods": (), "workloads": ()}
    (found,) = diagnose(look(deployments=(new(),), **forbidden)).found
    assert (found.severity, found.reason) == ("error", "NotLookedAt")
    assert found.message == "no operator has looked at team/chat, and whether one acts could not be seen"
    assert "`namespaces` of the chart" in found.remedy
    assert "kubectl get lease -A" in found.remedy
    assert diagnose(look(deployments=(new(JUST_NOW),), **forbidden)).found == ()


def test_an_operator_that_has_just_left_does_not_hide_another_that_acts() -> None:
    left: Object = {**lease("", JUST_NOW), "metadata": {"name": "plimsoll-operator", "namespace": "old"}}
    assert diagnose(look(leases=(left, lease("pod-a", "2027-01-15T07:59:20Z")))).found == ()


def test_a_deployment_is_given_time_to_be_looked_at_and_one_that_goes_need_not_be() -> None:
    written = ({"time": LONG_AGO},)
    for one in (new(JUST_NOW), new(deletionTimestamp=LONG_AGO, managedFields=written)):
        assert diagnose(look(deployments=(one,), pods=(), workloads=())).found == ()


def test_an_operator_that_has_just_begun_is_given_time_to_look_at_what_is_there_for_long() -> None:
    """None ran meanwhile."""
    begun, acts = lease("pod-a"), lease("pod-b")
    acts["spec"]["acquireTime"] = LONG_AGO
    for one in (new(), edited({"time": LONG_AGO})):
        begun["spec"]["acquireTime"] = JUST_NOW
        for leases in ((begun,), (acts, begun)):
            assert diagnose(look(deployments=(one,), pods=(), workloads=(), leases=leases)).found == ()
        begun["spec"]["acquireTime"] = LONG_AGO
        (found,) = diagnose(look(deployments=(one,), pods=(), workloads=(), leases=(begun,))).found
        assert found.reason in ("NotLookedAt", "OldStatus")


def test_a_spec_that_was_written_long_ago_and_is_newer_than_its_status_is_a_warning() -> None:
    (found,) = diagnose(look(deployments=(edited({"time": LONG_AGO}),))).found
    assert (found.severity, found.about, found.reason) == ("warning", "LLMDeployment team/chat", "OldStatus")
    assert found.message == "no operator has looked at the present spec of team/chat, though one acts: pod-a"
    assert "kubectl -n plimsoll logs" in found.remedy


def test_a_spec_of_which_it_is_not_known_that_it_is_long_there_is_not_spoken_of() -> None:
    """Somebody may have written it just now; what the operator wrote into the status is no spec."""
    status: Object = {"time": LONG_AGO, "subresource": "status"}
    for written in ((), (status,), ({"time": LONG_AGO}, {"time": JUST_NOW, "subresource": "scale"})):
        assert diagnose(look(deployments=(edited(*written),))).found == ()
    said = diagnose(look(deployments=(edited({"time": LONG_AGO}, status | {"time": JUST_NOW}),))).found
    assert [one.reason for one in said] == ["OldStatus"]
