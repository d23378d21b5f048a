"""The objects of which a deployment has one, and those of APIs that a cluster may lack."""

import re
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.signals import FRESH_S
from plimsoll.facts.capabilities import NONE
from plimsoll.render.routing import LEADER_WORKER_SETS, MONITOR, POOL, ROUTE, SCRAPED_S, routes, unserved
from plimsoll.render.sets import owner_of, workload
from plimsoll.render.shared import endpoint, service_name
from tests.planning.asking import pool
from tests.render.building import ROUTES, config, everything, frozen, of_kind, only, resource
from tests.render.cases import GROUP, KINDS, entry

GATEWAY: dict[str, Any] = {"networking": {"gateway": {"name": "g"}}}
PICKER = {"service": "picker", "port": 9002, "failureMode": "FailOpen"}


def gateway(**said: Any) -> dict[str, Any]:
    return {"networking": {"gateway": {"name": "g", **said}}}


PICKED = gateway(endpointPicker=PICKER)


def routed(chosen=None, capabilities=NONE, **said):
    asked = resource(**said)
    owner, revision = owner_of(asked), frozen(asked, chosen=chosen or entry())
    made = routes(asked.spec, owner, service_name(asked.spec, owner), [revision], capabilities)
    return {one.ref.kind: one.body for one in made}


def test_every_object_is_the_deployment_s_by_its_uid_and_carries_its_own_digest():
    for one in everything(resource(**GATEWAY), capabilities=ROUTES):
        metadata = one.body["metadata"]
        (owner,) = metadata["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
            resource().metadata.uid,
            True,
            True,
        )
        assert metadata["labels"][names.LABEL_MANAGED_BY] == names.MANAGED_BY
        assert metadata["labels"][names.LABEL_DEPLOYMENT] == "chat"
        assert len(metadata["annotations"][names.ANNOTATION_HASH]) == 16
        assert metadata["namespace"] == "team-a"


def test_without_a_uid_objects_name_no_owner():
    assert all("ownerReferences" not in one.body["metadata"] for one in everything(resource(uid=None)))


def test_the_service_selects_the_leaders_of_all_sets_and_nobody_else():
    selector = only(everything(resource()), "Service")["spec"]["selector"]
    for said, chosen in KINDS.values():
        if "podPatches" in said:
            continue
        revision = frozen(resource(**said), chosen=chosen)
        assert selector.items() <= revision.leader["metadata"]["labels"].items()
        if revision.worker is not None:
            assert not selector.items() <= revision.worker["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("networking", "where"),
    [
        ({}, "http://chat.team-a.svc"),
        ({"service": {"port": 443}}, "http://chat.team-a.svc:443"),
        ({"tlsSecret": "t", "service": {"port": 443}}, "https://chat.team-a.svc"),
        ({"tlsSecret": "t", "service": {"port": 80, "name": "door"}}, "https://door.team-a.svc:80"),
    ],
)
def test_an_endpoint_names_the_port_where_its_scheme_does_not_say_it(networking, where):
    asked = resource(networking=networking)
    assert endpoint(asked.spec, owner_of(asked)) == where


def test_the_user_s_labels_of_the_service_lie_under_ours():
    said = {
        "name": "door",
        "port": 8080,
        "labels": {names.LABEL_MANAGED_BY: "x", "team": "a"},
        "annotations": {"n": "v"},
    }
    body = only(everything(resource(networking={"service": said})), "Service")
    assert body["metadata"]["name"] == "door"
    assert body["spec"]["ports"][0]["port"] == 8080
    assert body["metadata"]["labels"]["team"] == "a"
    assert body["metadata"]["labels"][names.LABEL_MANAGED_BY] == names.MANAGED_BY
    assert body["metadata"]["annotations"]["n"] == "v"


def test_a_service_account_without_a_token_is_made_unless_one_is_named():
    assert only(everything(resource()), "ServiceAccount")["automountServiceAccountToken"] is False
    admin = {"trust": {"serviceAccounts": [{"namespace": "*", "names": ["*"]}]}}
    made = everything(resource(scheduling={"serviceAccount": "own"}), admin=config(**admin))
    assert of_kind(made, "ServiceAccount") == []
    assert only(made, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "own"


@pytest.mark.parametrize(
    ("said", "capabilities", "kinds"),
    [
        ({}, NONE, set()),
        ({}, ROUTES, {"PodMonitor"}),
        (GATEWAY, NONE, set()),
        (GATEWAY, {ROUTE}, {"HTTPRoute"}),
        (GATEWAY, {ROUTE, POOL}, {"HTTPRoute"}),
        (gateway(inferencePool=True), {ROUTE, POOL}, {"HTTPRoute"}),
        (PICKED, {ROUTE}, {"HTTPRoute"}),
        (PICKED, {ROUTE, POOL}, {"HTTPRoute", "InferencePool"}),
        (gateway(endpointPicker=PICKER, inferencePool=False), {ROUTE, POOL}, {"HTTPRoute"}),
        ({"networking": {"ingress": {"hosts": ["h"]}}}, NONE, {"Ingress"}),
        ({"networking": {"allowFrom": ["apps"]}}, {MONITOR}, {"NetworkPolicy", "PodMonitor"}),
    ],
)
def test_an_optional_object_is_made_where_it_is_asked_for_and_served(said, capabilities, kinds):
    assert set(routed(capabilities=frozenset(capabilities), **said)) == kinds


def test_a_replica_is_scraped_several_times_before_control_takes_it_to_be_silent():
    engines, supervisors = routed(capabilities={MONITOR})["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert engines["interval"] == f"{SCRAPED_S}s"
    assert 4 * SCRAPED_S <= FRESH_S
    assert "interval" not in supervisors


def test_a_supervisor_may_be_asked_by_the_operator_whoever_else_is_shut_out():
    operator = {
        "namespaceSelector": {},
        "podSelector": {"matchLabels": {"plimsoll.dev/role": "operator"}},
    }
    _, told = routed(networking={"allowFrom": ["apps"]})["NetworkPolicy"]["spec"]["ingress"]
    assert told["ports"] == [{"port": 8079, "protocol": "TCP"}]
    first, callers = told["from"]
    assert first == operator
    assert callers["namespaceSelector"]["matchExpressions"][0]["values"] == ["apps"]


@pytest.mark.parametrize(
    ("said", "capabilities", "fields"),
    [
        ({}, NONE, []),
        (GATEWAY, NONE, ["spec.networking.gateway"]),
        (GATEWAY, {ROUTE}, []),
        (PICKED, {ROUTE}, ["spec.networking.gateway.endpointPicker"]),
        (gateway(endpointPicker=PICKER, inferencePool=False), {ROUTE}, []),
        (PICKED, {ROUTE, POOL}, []),
    ],
)
def test_what_is_asked_for_and_not_served_is_said(said, capabilities, fields):
    asked = resource(**said)
    problems = unserved(asked.spec, [frozen(asked, chosen=entry())], frozenset(capabilities))
    assert [one.field for one in problems] == fields
    assert all("install its CRD" in one.message for one in problems)


def test_a_pool_in_which_nobody_would_choose_is_not_made_and_that_is_said():
    """Most versions of the API refuse one, and a route to a pool that is not there loses all requests."""
    asked = resource(**gateway(inferencePool=True))
    (problem,) = unserved(asked.spec, [frozen(asked, chosen=entry())], frozenset({ROUTE, POOL}))
    assert problem.field == "spec.networking.gateway.inferencePool"
    assert "endpointPicker" in problem.message


def test_a_leaderworkerset_that_the_cluster_does_not_serve_is_said():
    asked = resource(topology={"groups": "LeaderWorkerSet"})
    (problem,) = unserved(asked.spec, [frozen(asked, chosen=GROUP)], NONE)
    assert problem.field == "spec.topology.groups"
    assert unserved(asked.spec, [frozen(asked, chosen=GROUP)], frozenset({LEADER_WORKER_SETS})) == ()


def test_a_route_leads_to_the_pool_where_there_is_one():
    found = routed(capabilities=ROUTES, **PICKED)["HTTPRoute"]["spec"]["rules"][0]
    assert found["backendRefs"][0]["kind"] == "InferencePool"
    found = routed(capabilities=frozenset({ROUTE}), **GATEWAY)["HTTPRoute"]["spec"]["rules"][0]
    assert found["backendRefs"][0] == {
        "group": "",
        "kind": "Service",
        "name": "chat",
        "port": 80,
        "weight": 1,
    }


@pytest.mark.parametrize(
    ("said", "timeout"),
    [({}, "1640s"), ({"rollout": {"drainSeconds": 0}}, "1640s"), (gateway(timeoutSeconds=86_400), "86400s")],
)
def test_a_route_cuts_no_answer_that_the_engine_would_end_unless_it_is_told_to(said, timeout):
    made = routed(capabilities=frozenset({ROUTE}), **{**GATEWAY, **said})["HTTPRoute"]
    found = made["spec"]["rules"][0]["timeouts"]
    assert found == {"request": timeout, "backendRequest": timeout}
    assert re.fullmatch("([0-9]{1,5}(h|m|s|ms)){1,4}", timeout)


@pytest.mark.parametrize("path", ["/chat", "/team/chat/", "/v1beta"])
def test_a_route_takes_off_a_prefix_that_the_engine_does_not_know(path):
    (rule,) = routed(capabilities={ROUTE}, **gateway(path=path))["HTTPRoute"]["spec"]["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": path}}]
    taken_off = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}
    assert rule["filters"] == [{"type": "URLRewrite", "urlRewrite": {"path": taken_off}}]


@pytest.mark.parametrize("said", [{}, {"path": "/"}, {"path": "/v1"}, {"path": "/v1/chat"}, {"path": "/v2"}])
def test_a_route_hands_on_a_path_that_the_engine_knows(said):
    (rule,) = routed(capabilities={ROUTE}, **gateway(**said))["HTTPRoute"]["spec"]["rules"]
    assert "filters" not in rule


def test_a_pool_says_of_its_picker_whatever_the_api_server_would_add():
    pool = routed(capabilities=ROUTES, **gateway(endpointPicker={"service": "picker"}))["InferencePool"]
    assert pool["spec"]["endpointPickerRef"] == {
        "group": "",
        "kind": "Service",
        "name": "picker",
        "port": {"number": 9002},
        "failureMode": "FailClose",
    }


def test_ports_between_ranks_are_open_to_members_alone():
    ingress = routed(chosen=GROUP)["NetworkPolicy"]["spec"]["ingress"]
    api, _told, among = ingress
    assert api == {"ports": [{"port": 8000, "protocol": "TCP"}]}
    assert among["from"][0]["podSelector"]["matchLabels"] == {
        names.LABEL_DEPLOYMENT: "chat",
        names.LABEL_ROLE: "serving",
    }


def test_names_for_groups_are_there_before_their_pods_are_ready():
    asked = resource(topology={"mode": "manual", "tensor": 4, "pipeline": 2})
    objects = everything(asked, pool(per_node=4, nodes=4, rdma=True))
    headless = next(one for one in of_kind(objects, "Service") if one["metadata"]["name"] == "chat-headless")
    assert headless["spec"]["publishNotReadyAddresses"] is True
    assert headless["spec"]["clusterIP"] == "None"
    for one in of_kind(objects, "StatefulSet"):
        assert one["spec"]["serviceName"] == "chat-headless"
        assert headless["spec"]["selector"].items() <= one["spec"]["template"]["metadata"]["labels"].items()


def test_objects_are_the_same_bytes_whenever_they_are_rendered():
    assert [one.digest for one in everything(resource(**GATEWAY), capabilities=ROUTES)] == [
        one.digest for one in everything(resource(**GATEWAY), capabilities=ROUTES)
    ]
    revision, owner = frozen(resource(), chosen=entry()), owner_of(resource())
    assert workload(revision, owner, 2) == workload(revision, owner, 2)
