"""`plimsoll ramp NAME`: the deployment's own Service, pods and plan are found in the cluster."""

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from plimsoll import names
from plimsoll.load import ramp as ramping
from plimsoll.planning.plan import Plan
from tests.cli.endpoints import listening
from tests.cli.running import plimsoll
from tests.kube.api_server import Api, serving
from tests.load.known_server import Behaviour, KnownServer
from tests.runtime.sites import certified

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANNED = ("-f", str(EXAMPLES / "02-chat.yaml"), "--snapshot", str(EXAMPLES / "fleet.yaml"))
OURS = "/apis/plimsoll.dev/v1alpha1/llmdeployments"
SPACE = "/api/v1/namespaces/team"
HERE = "127.0.0.1"
SHORT = ("--start", "4", "--max", "4", "--step-duration", "1", "--json")
PAGE = 'vllm:num_requests_running{engine="0"} 3.0\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n'


def service(address: str, port: int, scheme: str = "http") -> dict[str, Any]:
    spec = {"clusterIP": address, "ports": [{"name": "http", "appProtocol": scheme, "port": port}]}
    return {"metadata": {"name": "chat", "namespace": "team"}, "spec": spec}


def pod(port: int, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": f"chat-{port}", "namespace": "team"},
        "spec": {"containers": [{"name": "engine", "ports": [{"name": "http", "containerPort": port}]}]},
        "status": {
            "podIP": HERE,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, KnownServer]]:
    monkeypatch.setattr(ramping, "_SETTLE_S", 0.1)
    with listening(Behaviour(ttft_s=0.0, gap_s=0.0, metrics=lambda _: PAGE)) as (url, server):
        yield url, server


@pytest.fixture
def cluster(tmp_path: Path, engine: tuple[str, KnownServer]) -> Iterator[Api]:
    """One deployment, whose Service is the known server."""
    port = urlsplit(engine[0]).port
    assert port is not None
    deployment = yaml.safe_load((EXAMPLES / "02-chat.yaml").read_text())
    deployment["metadata"] = {"name": "chat", "namespace": "team", "uid": "u"}
    plan = json.loads(plimsoll("plan", *PLANNED, "-o", "json").out)["plans"][0]
    kept = {names.PLAN_KEY: Plan.from_data(plan).to_bytes().decode()}
    with serving(tmp_path) as api:
        api.lists[OURS] = [deployment]
        api.lists[f"{OURS.replace('/llm', '/namespaces/team/llm')}"] = [deployment]
        api.lists[f"{SPACE}/services"] = [service("None", port), service(HERE, port)]
        api.lists[f"{SPACE}/configmaps"] = [{"metadata": {"name": "chat-plan"}, "data": kept}]
        api.lists[f"{SPACE}/pods"] = [pod(port), pod(1, ready=False)]
        yield api


def test_of_an_exporter_the_gpus_of_the_deployment_s_pods_count(
    cluster: Api, engine: tuple[str, KnownServer]
):
    port = urlsplit(engine[0]).port
    told = {f"chat-{port}": 20, "chat-1": 60, "other-0": 90}
    page = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{namespace="team",pod="{name}"}} {busy}\n' for name, busy in told.items()
    )
    with listening(Behaviour(metrics=lambda _: page)) as (exporter, _):
        ran = plimsoll("ramp", "chat", *SHORT, "--step-duration", "3", "--gpu-metrics", f"{exporter}/metrics")
    assert json.loads(ran.out)["steps"][0]["engine"]["gpu_busy"] == 0.4


@pytest.mark.parametrize("what", [("chat",), ("team/chat",), ("chat", "-n", "team")])
def test_a_name_is_enough(cluster: Api, engine: tuple[str, KnownServer], what: tuple[str, ...]):
    url, server = engine
    ran = plimsoll("ramp", *what, *SHORT)
    assert ran.code in (0, 2), ran.err
    data = json.loads(ran.out)
    assert data["url"] == url
    assert data["comparison"]["expected"]["plan"] == "support/chat"
    assert data["steps"][0]["engine"]["kv_usage_max"] == 0.5, "from the pods' own pages"
    assert data["steps"][0]["result"]["promises"], "the resource's own targets"
    assert {str(body["max_tokens"]) for body in server.bodies} == {data["output_tokens"]}


def test_one_that_shows_a_certificate_is_asked_by_the_name_that_is_in_it_and_its_pods_by_address(
    cluster: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Which has to show the same one: a key goes with each question."""
    name = "chat.team.svc"
    tls, authority = certified(tmp_path, name)
    (folder := tmp_path / "other").mkdir()
    stranger, _ = certified(folder, name)
    lookup = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *more, **said: lookup(HERE if host == name else host, *more, **said),
    )
    trusting = ssl.create_default_context(cafile=authority)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusting)
    with listening(Behaviour(ttft_s=0.0, gap_s=0.0, metrics=lambda _: PAGE), tls) as (url, _):
        port = urlsplit(url).port
        assert port is not None
        cluster.lists[f"{SPACE}/services"] = [service("10.0.0.1", port, "https")]
        cluster.lists[f"{SPACE}/pods"] = [pod(port)]
        ran = plimsoll("ramp", "chat", *SHORT)
        with listening(Behaviour(metrics=lambda _: PAGE), stranger) as (other, _):
            cluster.lists[f"{SPACE}/pods"] = [pod(urlsplit(other).port or 0)]
            fooled = plimsoll("ramp", "chat", *SHORT)
    assert ran.code in (0, 2), ran.err
    assert json.loads(fooled.out)["steps"][0]["engine"] is None
    data = json.loads(ran.out)
    assert data["url"] == f"https://{name}:{port}"
    assert data["steps"][0]["engine"]["kv_usage_max"] == 0.5, "from the pod's own page"


def test_another_address_takes_the_services_place(cluster: Api, engine: tuple[str, KnownServer]):
    cluster.lists[f"{SPACE}/services"] = []
    ran = plimsoll("ramp", "chat", "--url", engine[0], *SHORT)
    assert json.loads(ran.out)["comparison"] is not None


def test_without_a_plan_it_is_measured_and_said(cluster: Api):
    cluster.lists[f"{SPACE}/configmaps"] = 403
    ran = plimsoll("ramp", "chat", *SHORT, "--output-tokens", "3")
    assert json.loads(ran.out)["comparison"] is None
    assert "its plan is not seen" in ran.err
    assert "no pinned plan, so there is nothing to compare with" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to measure: give the NAME of a LLMDeployment, or an address"),
        (("other",), "no LLMDeployment 'other' in any namespace: there are chat"),
        (("Chat!",), "'Chat!' is neither an address (http://HOST:PORT) nor the name of a LLMDeployment"),
        (("other/chat", "-n", "team"), "-n team: 'other/chat' names another namespace"),
        (("http://a", "-n", "team"), "-n team: belongs to the NAME of a deployment"),
        (("http://a", "--url", "http://b"), "http://a is an address already; give one of them"),
    ],
)
def test_a_wrong_name_is_told(cluster: Api, arguments: tuple[str, ...], said: str):
    ran = plimsoll("ramp", *arguments)
    assert (ran.code, ran.out) == (3, "")
    assert said in ran.err


def test_who_may_not_list_all_namespaces_is_told_to_name_one(cluster: Api):
    cluster.lists[OURS] = 403
    assert "name a namespace that you may list: -n NAMESPACE" in plimsoll("ramp", "chat").err


def test_a_name_in_two_namespaces_must_be_told_apart(cluster: Api):
    found = cluster.lists[OURS]
    assert isinstance(found, list)
    other = {**found[0], "metadata": {"name": "chat", "namespace": "zeta"}}
    cluster.lists[OURS] = [*found, other]
    assert "'chat' is in team, zeta; say which with -n NAMESPACE" in plimsoll("ramp", "chat").err


def test_a_deployment_that_has_no_address_yet_is_told(cluster: Api):
    cluster.lists[f"{SPACE}/services"] = []
    ran = plimsoll("ramp", "chat")
    assert ran.code == 3
    assert "team/chat has no Service with an address yet; `plimsoll doctor chat`" in ran.err
