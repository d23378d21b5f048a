"""The reader against a small server that answers as an API server does: pages, missing kinds, refusals, silence."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
import yaml

from plimsoll.kube.reader import PAGE, ClusterUnreadable, read_cluster

DEPLOYMENTS = "/apis/plimsoll.dev/v1alpha1/llmdeployments"


class Api(ThreadingHTTPServer):
    """Lists by path; a path that is a number answers with that status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lists: dict[str, list[dict[str, object]] | int] = {"/api/v1/nodes": [], "/api/v1/pods": []}
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        url = urlparse(self.path)
        query = parse_qs(url.query)
        self.server.asked.append(self.path)
        self.server.tokens.add(self.headers.get("Authorization"))
        found = self.server.lists.get(url.path, 404)
        if isinstance(found, int):
            self._answer(found, {"kind": "Status", "message": "no"})
            return
        start = int(query.get("continue", ["0"])[0])
        size = int(query["limit"][0])
        rest = start + size
        metadata = {"continue": str(rest)} if rest < len(found) else {}
        kind = {"apiVersion": "v1", "kind": "NodeList", "metadata": metadata, "items": found[start:rest]}
        self._answer(200, kind)

    def _answer(self, status: int, body: dict[str, object]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    write_kubeconfig(tmp_path / "config", address)
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config")
    )
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def write_kubeconfig(path: Path, address: str) -> None:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": address}}],
                "users": [{"name": "u", "user": {"token": "abc"}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )


def named(name: str, **more: object) -> dict[str, object]:
    return {"metadata": {"name": name, **more}}


def test_lists_longer_than_a_page_are_read_to_their_end(api: Api):
    api.lists["/api/v1/nodes"] = [named(f"n{number}") for number in range(2 * PAGE + 1)]
    cluster = read_cluster()
    assert [node["metadata"]["name"] for node in cluster.nodes] == [f"n{n}" for n in range(2 * PAGE + 1)]
    assert sum("/nodes" in path for path in api.asked) == 3


def test_objects_of_a_list_get_its_kind_back(api: Api):
    api.lists["/api/v1/nodes"] = [named("n")]
    assert read_cluster().nodes[0]["kind"] == "Node"


def test_requests_carry_the_token_of_the_context(api: Api):
    read_cluster("here")
    assert api.tokens == {"Bearer abc"}


def test_a_cluster_without_the_crd_is_read_all_the_same_and_says_so(api: Api):
    cluster = read_cluster()
    assert cluster.deployments == ()
    assert any("LLMDeployment" in note for note in cluster.notes)


def test_resource_slices_are_read_in_the_newest_version_served(api: Api):
    api.lists["/apis/resource.k8s.io/v1beta1/resourceslices"] = [named("s")]
    cluster = read_cluster()
    assert [item["metadata"]["name"] for item in cluster.slices] == ["s"]
    assert not any("resourceslices" in note for note in cluster.notes)


def test_slices_that_may_not_be_listed_are_a_note_and_no_failure(api: Api):
    api.lists["/apis/resource.k8s.io/v1/resourceslices"] = 403
    assert any("403" in note and "resourceslices" in note for note in read_cluster().notes)


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_nodes_and_pods_that_may_not_be_listed_end_it_with_what_is_needed(api: Api, path: str):
    api.lists[path] = 403
    with pytest.raises(ClusterUnreadable, match=f"403 Forbidden for {path}; list must be allowed"):
        read_cluster()


def test_pinned_plans_and_learned_facts_are_found_in_their_config_maps(api: Api):
    labels = {"plimsoll.dev/deployment": "chat"}
    api.lists["/api/v1/configmaps"] = [
        {**named("chat-plan", namespace="a", labels=labels), "data": {"plan.json": '{"schema": 1}'}},
        {**named("plimsoll-learned", namespace="plimsoll"), "data": {"learned.json": "{}"}},
        {**named("other", namespace="a"), "data": {"plan.json": "not ours"}},
    ]
    kept = read_cluster().kept
    assert kept.plans == {"a/chat": {"schema": 1}}
    assert kept.learned == "{}"


def test_an_unknown_context_names_what_to_check(api: Api):
    with pytest.raises(ClusterUnreadable, match="get-contexts"):
        read_cluster("nowhere")


def test_a_cluster_that_does_not_answer_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config")
    )
    with pytest.raises(ClusterUnreadable, match="does not answer"):
        read_cluster(timeout_seconds=1)
