"""What is asked for as a way in, and would lead requests to no replica, is told at once."""

import pytest

from plimsoll.planning.plan import Severity
from tests.planning.asking import deployment, finding, planned, reasons


def asked(networking, **more):
    return planned(deployment(networking=networking, **more))


def ingress(path, **annotations):
    return {"ingress": {"hosts": ["llm.example"], "path": path, "annotations": annotations}}


NGINX = {"nginx.ingress.kubernetes.io/rewrite-target": "/"}
TRAEFIK = {"traefik.ingress.kubernetes.io/router.middlewares": "team-a-strip@kubernetescrd"}


def test_the_path_of_an_ingress_that_the_engine_does_not_know_is_told_with_what_makes_it_known():
    issuer = {"cert-manager.io/cluster-issuer": "letsencrypt"}
    told = finding(asked(ingress("/chat", **issuer)), "PathUnknownToEngine")
    assert (told.severity, told.field, told.value) == (Severity.WARNING, "networking.ingress.path", "/chat")
    assert "--root-path=/chat in engine.extraArgs" in told.remedy


@pytest.mark.parametrize(
    ("networking", "more"),
    [
        (ingress("/"), {}),
        (ingress("/v1"), {}),
        (ingress("/v1/chat/completions"), {}),
        (ingress("/rerank"), {}),
        (ingress("/chat"), {"engine": {"extraArgs": ["--root-path=/chat"]}}),
        (ingress("/chat", **NGINX), {}),
        (ingress("/chat", **TRAEFIK), {}),
        ({"gateway": {"name": "g", "path": "/chat"}}, {}),
        ({}, {}),
    ],
    ids=[
        "everything",
        "the API",
        "a part of it",
        "rerank",
        "the engine is told",
        "nginx takes it off",
        "Traefik does",
        "a route takes it off",
        "none",
    ],
)
def test_a_path_that_finds_the_engine_is_not_told_of(networking, more):
    found = asked(networking, **more)
    assert found.sets
    assert "PathUnknownToEngine" not in reasons(found)


def picked(**networking):
    gateway = {"name": "g", "endpointPicker": {"service": "picker"}, **networking.pop("gateway", {})}
    return {"gateway": gateway, **networking}


def test_a_pool_of_replicas_that_speak_tls_is_told_to_be_asked_without():
    told = finding(asked(picked(tlsSecret="cert")), "PoolAskedWithoutTLS")
    assert (told.severity, told.field, told.value) == (Severity.WARNING, "networking.tlsSecret", "cert")
    assert "networking.gateway.endpointPicker" in told.message


@pytest.mark.parametrize(
    "networking",
    [picked(), {"tlsSecret": "cert"}, picked(tlsSecret="cert", gateway={"inferencePool": False})],
    ids=["plain HTTP", "no picker", "no pool"],
)
def test_where_nobody_asks_a_pool_that_speaks_tls_nothing_is_told(networking):
    assert "PoolAskedWithoutTLS" not in reasons(asked(networking))


def test_a_picker_that_may_not_ask_the_replicas_is_told_who_has_to_be_let_in():
    told = finding(asked(picked(allowFrom=["gateways", "apps"])), "PickerShutOut")
    assert (told.severity, told.field, told.value) == (
        Severity.WARNING,
        "networking.allowFrom",
        "gateways, apps",
    )
    assert told.remedy == "team-a in networking.allowFrom as well"


@pytest.mark.parametrize(
    "networking",
    [
        picked(),
        picked(allowFrom=["gateways", "team-a"]),
        {"allowFrom": ["gateways"]},
        picked(allowFrom=["gateways"], gateway={"inferencePool": False}),
    ],
    ids=["nobody is shut out", "it is let in", "no picker", "no pool"],
)
def test_where_no_picker_is_shut_out_nothing_is_told(networking):
    assert "PickerShutOut" not in reasons(asked(networking))
