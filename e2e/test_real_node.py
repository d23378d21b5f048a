"""Real nodes: pods without rights that run, are found by name and spoken to, and nothing that stays behind."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Final

import pytest

from cluster import Cluster
from cluster.fleet import read_fleet
from cluster.remains import Footprint
from common import eventually, is_ready, killed_owner
from plimsoll import names
from plimsoll.facts.examined import Examined
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.status.doctor.deployments import probes
from plimsoll.status.pod_words import words_of
from real import Namespace, python_pod, service

pytestmark = pytest.mark.real_node

SERVER: Final = python_pod(
    "server",
    *("-m", "http.server", "8000", "--directory", "/etc"),
    readinessProbe={"httpGet": {"path": "/hostname", "port": 8000}, "periodSeconds": 1},
)
FETCH: Final = """
import sys, time, urllib.request
for _ in range(100):  # a pod is ready a moment before every node's proxy knows
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
        break
    except OSError as error:
        print(error, file=sys.stderr)
        time.sleep(0.2)
"""
SLOW: Final = python_pod(
    "slow",
    *("-c", "import time; time.sleep(3600)"),
    startupProbe={"tcpSocket": {"port": 8000}, "periodSeconds": 2, "failureThreshold": 3},
)
OWNER: Final = """
import json, time
from cluster import Cluster
with Cluster(real_nodes=1) as running:
    (node,) = running.nodes
    pids = [*running.processes.pids.values(), node.machine.pid]
    print(json.dumps({"folder": str(running.folder), "cgroup": running.processes.cgroup, "pids": pids}), flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("node", ["real-1", "real-2"])
@pytest.mark.parametrize("host", ["server", "server.{}.svc.cluster.local"])
def test_a_pod_answers_by_name_on_every_node(real_namespace: Namespace, node: str, host: str) -> None:
    real_namespace.create_all(SERVER, service("server", 8000))
    real_namespace.ready("server")
    url = f"http://{host.format(real_namespace.name)}/hostname"
    real_namespace.create_all(python_pod("client", "-c", FETCH, url, node=node))
    assert real_namespace.said("client").strip().endswith("server")


def test_a_start_that_its_probe_ends_is_told_by_what_a_kubelet_leaves(real_namespace: Namespace) -> None:
    """For a condition by the pod alone, since events go; for `plimsoll doctor` by the event."""
    (engine,) = SLOW["spec"]["containers"]
    again = {"restartPolicy": "Always", "containers": [{**engine, "name": "engine"}]}
    metadata = {**SLOW["metadata"], "labels": {names.LABEL_DEPLOYMENT: "chat"}}
    real_namespace.create_all({**SLOW, "metadata": metadata, "spec": {**SLOW["spec"], **again}})
    assert eventually(lambda: pod_seen(real_namespace.pod("slow")).late_s > 0)
    ended = real_namespace.pod("slow")
    said = words_of(pod_seen(ended))
    assert said is not None
    assert (said.reason, pod_seen(ended).late_s) == ("ProbeTooShort", 6)
    assert "after 6 s, before it had loaded its model" in said.message
    assert "spec.rollout.deadlineSeconds" in said.remedy
    asked = {"metadata": {"name": "chat", "namespace": real_namespace.name}}

    def found() -> list[str]:
        events = real_namespace.cluster.api.items(f"/api/v1/namespaces/{real_namespace.name}/events")
        seen = Examined(now=0.0, deployments=(asked,), pods=(ended,), events=tuple(events))
        return [one.reason for one in probes(seen)]

    assert eventually(lambda: found() == ["ProbeTooShort"])


def test_the_host_reaches_pods_and_services(real_namespace: Namespace) -> None:
    _, made = real_namespace.create_all(SERVER, service("server", 8000))
    pod = real_namespace.ready("server")
    assert eventually(lambda: _fetched(f"http://{pod['status']['podIP']}:8000/hostname") == b"server\n")
    assert eventually(lambda: _fetched(f"http://{made['spec']['clusterIP']}/hostname") == b"server\n")


def test_logs_are_read_and_commands_are_run_in_pods(real_namespace: Namespace) -> None:
    real_namespace.create_all(SERVER)
    real_namespace.ready("server")
    assert "GET /hostname" in real_namespace.log("server")
    done = real_namespace.cluster.kubectl(
        "exec", f"--namespace={real_namespace.name}", "server", "--", "id", "-u"
    )
    assert (done.stdout.strip(), done.returncode) == ("65532", 0), done.stderr


def test_a_pod_with_an_account_reaches_the_api_server_by_its_certificate(real_namespace: Namespace) -> None:
    ask = (
        "import ssl, urllib.request as u; at = '/var/run/secrets/kubernetes.io/serviceaccount/'; "
        "r = u.Request('https://kubernetes.default.svc/version', headers={'Authorization': 'Bearer ' + open(at + 'token').read()}); "
        "print(u.urlopen(r, timeout=10, context=ssl.create_default_context(cafile=at + 'ca.crt')).read().decode())"
    )
    real_namespace.create_all(python_pod("client", "-c", ask, account=True))
    assert json.loads(real_namespace.said("client"))["gitVersion"] == "v1.35.4"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("open('/new', 'w')", "Read-only file system"),
        ("import socket; socket.create_connection(('192.0.2.1', 80), 10)", "No route to host"),
        ("import socket; socket.gethostbyname('nowhere.example')", "Name or service not known"),
    ],
)
def test_a_pod_has_no_way_out(real_namespace: Namespace, what: str, said: str) -> None:
    real_namespace.create_all(python_pod("tries", "-c", what))
    assert said in real_namespace.said("tries")


def test_a_pod_that_takes_too_much_memory_is_killed_for_it(real_namespace: Namespace) -> None:
    real_namespace.create_all(python_pod("greedy", "-c", "bytearray(500_000_000)", limits={"memory": "64Mi"}))
    (status,) = real_namespace.ended("greedy")["status"]["containerStatuses"]
    ended = status["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_pods_that_ask_for_gpus_run_on_a_node_that_looks_like_one_with_them(
    real_namespace: Namespace,
) -> None:
    node, _ = real_namespace.cluster.nodes
    (simulated, *_) = read_fleet("h100").nodes
    pods = [f"asks-{number}" for number in range(5)]
    with node.like(simulated):
        real_namespace.create_all(
            *(
                python_pod(pod, "-c", "import time; time.sleep(600)", limits={"nvidia.com/gpu": "2"})
                for pod in pods
            )
        )

        def running() -> list[str]:
            return [pod for pod in pods if is_ready(real_namespace.pod(pod))]

        assert eventually(lambda: len(running()) == 4)
        (waits,) = set(pods) - set(running())
        (condition,) = real_namespace.pod(waits)["status"]["conditions"]
        assert "Insufficient nvidia.com/gpu" in condition["message"]
        assert {real_namespace.pod(pod)["spec"]["nodeName"] for pod in running()} == {"real-1"}


def test_a_node_keeps_its_looks_and_its_pods_when_kubelet_starts_again(real_namespace: Namespace) -> None:
    real_namespace.create_all(SERVER)
    before = real_namespace.ready("server")
    cluster, (node, _) = real_namespace.cluster, real_namespace.cluster.nodes
    with node.like(read_fleet("mi300x").nodes[0]):

        def seen() -> str:
            return str(cluster.api.get(f"/api/v1/nodes/{node.name}")["metadata"]["resourceVersion"])

        cluster.processes.restart(node.kubelet_program)
        was = seen()
        assert eventually(lambda: seen() != was and node.is_ready())
        status = cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]
        assert status["allocatable"]["amd.com/gpu"] == "8"
    after = real_namespace.pod("server")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert "amd.com/gpu" not in cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]["allocatable"]


def test_a_node_s_programs_are_paused_as_themselves(real_cluster: Cluster) -> None:
    node, processes = real_cluster.nodes[1], real_cluster.processes
    pid = processes.pids[node.kubelet_program]
    assert Path(f"/proc/{pid}/comm").read_text() == "kubelet\n"
    processes.pause(node.kubelet_program)
    try:
        assert eventually(lambda: "State:\tT" in Path(f"/proc/{pid}/status").read_text())
    finally:
        processes.resume(node.kubelet_program)
    assert eventually(lambda: "State:\tT" not in Path(f"/proc/{pid}/status").read_text())
    assert processes.pids[node.kubelet_program] == pid


def test_clusters_with_real_nodes_live_side_by_side_and_leave_nothing(real_cluster: Cluster) -> None:
    links = set(_links())
    with Cluster(real_nodes=1) as other:
        assert len(_links()) == len(links) + 1
        footprint = Footprint.of(other)
        space = Namespace.create(other, "aside")
        space.create_all(SERVER)
        space.ready("server")
    assert eventually(lambda: footprint.left() == []), footprint.left()
    assert eventually(lambda: set(_links()) == links)
    assert all(node.is_ready() for node in real_cluster.nodes)


@pytest.mark.usefixtures("real_cluster")  # or why there cannot be one
def test_nothing_is_left_when_the_owner_of_a_real_node_is_killed() -> None:
    links = set(_links())
    told = killed_owner(OWNER, signal.SIGKILL)
    assert eventually(lambda: not Path(told["folder"]).exists())
    assert eventually(lambda: not list(Path("/sys/fs/cgroup").glob(f"**/{told['cgroup']}")))
    assert eventually(lambda: set(_links()) == links)
    assert told["folder"] not in Path("/proc/self/mounts").read_text()


def _fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def _links() -> list[str]:
    return [link.name for link in Path("/sys/class/net").glob("plimsoll*")]
