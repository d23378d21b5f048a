"""The reader against a small server that answers as an API server does: pages, missing kinds, refusals, silence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kube.by_hand import ClusterUnreadable
from plimsoll.kube.reader import PAGE_ITEMS, read_cluster
from tests.kube.api_server import TOKEN, Api, kubeconfig, serving

CHART = Path(__file__).parents[1] / "charts" / "golden" / "default.yaml"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path) as server:
        yield server


def named(name: str, **more: object) -> dict[str, object]:
    return {"metadata": {"name": name, **more}}


def test_lists_longer_than_a_page_are_read_to_their_end(api: Api):
    api.lists["/api/v1/nodes"] = [named(f"n{number}") for number in range(2 * PAGE_ITEMS + 1)]
    cluster = read_cluster()
    assert [node["metadata"]["name"] for node in cluster.nodes] == [
        f"n{n}" for n in range(2 * PAGE_ITEMS + 1)
    ]
    assert sum("/nodes" in path for path in api.asked) == 3


def test_objects_of_a_list_get_its_kind_back(api: Api):
    api.lists["/api/v1/nodes"] = [named("n")]
    assert read_cluster().nodes[0]["kind"] == "Node"


def test_requests_carry_the_token_of_the_context(api: Api):
    read_cluster("here")
    assert api.tokens == {f"Bearer {TOKEN}"}


def test_a_cluster_without_the_crd_is_read_all_the_same_and_says_so(api: Api):
    cluster = read_cluster()
    assert cluster.deployments == ()
    assert any("LLMDeployment" in note for note in cluster.notes)


def test_resource_slices_are_read_in_the_version_in_which_claims_are_made(api: Api):
    """Before Kubernetes 1.34 there are others, and devices of theirs could not be had."""
    api.lists["/apis/resource.k8s.io/v1beta2/resourceslices"] = [named("old")]
    before = read_cluster()
    assert before.slices == ()
    api.lists["/apis/resource.k8s.io/v1/resourceslices"] = [named("s")]
    cluster = read_cluster()
    assert [item["metadata"]["name"] for item in cluster.slices] == ["s"]
    assert not any("resourceslices" in note for note in (*before.notes, *cluster.notes))


def test_slices_that_may_not_be_listed_are_a_note_and_no_failure(api: Api):
    api.lists["/apis/resource.k8s.io/v1/resourceslices"] = 403
    assert any("403" in note and "resourceslices" in note for note in read_cluster().notes)


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_nodes_and_pods_that_may_not_be_listed_end_it_with_what_is_needed(api: Api, path: str):
    api.lists[path] = 403
    with pytest.raises(ClusterUnreadable, match=f"403 Forbidden for {path}; list must be allowed"):
        read_cluster()


def test_a_server_that_cannot_answer_now_is_no_matter_of_rights(api: Api):
    api.lists["/api/v1/nodes"] = 502
    with pytest.raises(ClusterUnreadable, match=r"502 Bad Gateway for /api/v1/nodes$"):
        read_cluster()


@pytest.mark.parametrize("page", ["<html>sign in</html>", "[]"])
def test_a_page_that_no_api_server_writes_ends_it_with_what_to_look_at(api: Api, page: str):
    api.texts["/api/v1/nodes"] = page
    with pytest.raises(
        ClusterUnreadable, match=r"nodes: what answers there is no API server \(200, and no JSON\): look"
    ):
        read_cluster()


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/apis/apps/v1/controllerrevisions"])
def test_credentials_that_are_not_taken_end_it_with_what_helps(api: Api, path: str):
    """Whatever they are asked for: no other list would be given for them."""
    api.lists[path] = 401
    with pytest.raises(ClusterUnreadable, match=f"{path}: 401 Unauthorized; .* sign in anew"):
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


def test_learned_facts_are_those_of_the_operators_own_namespace(api: Api):
    def learned(space: str, text: str) -> dict[str, object]:
        return {**named("plimsoll-learned", namespace=space), "data": {"learned.json": text}}

    api.lists["/api/v1/configmaps"] = [learned("ops", "theirs"), learned("zoo", "anybody's")]
    found = read_cluster()
    assert found.kept.learned == "theirs"
    assert (
        "plimsoll-learned is in namespaces ops, zoo; read in ops, where no operator's pod" in found.notes[-1]
    )
    ours = installed("zoo")
    labels = ours["metadata"]["labels"]
    api.lists["/api/v1/pods"] = [ours]
    found = read_cluster()
    assert found.kept.learned == "anybody's"
    assert "read in zoo, where an operator runs" in found.notes[-1]
    others = {"containers": [{"name": "operator", "command": ["/manager"]}]}
    api.lists["/api/v1/pods"] = [{**named("another-1", namespace="zoo", labels=labels), "spec": others}]
    found = read_cluster()
    assert found.kept.learned == "theirs", "another operator's pod bears the same label"
    assert "no operator's pod" in found.notes[-1]


def installed(namespace: str) -> dict[str, Any]:
    """A pod of the operator as the chart makes it."""
    (made,) = (one for one in yaml.safe_load_all(CHART.read_text()) if one["kind"] == "Deployment")
    template = made["spec"]["template"]
    labels = template["metadata"]["labels"]
    return {**named("plimsoll-1", namespace=namespace, labels=labels), "spec": template["spec"]}


def test_an_unknown_context_names_what_to_check(api: Api):
    with pytest.raises(ClusterUnreadable, match="get-contexts"):
        read_cluster("nowhere")


def test_a_cluster_that_does_not_answer_is_said_to(tmp_path: Path):
    with (
        kubeconfig(tmp_path, "http://127.0.0.1:9"),
        pytest.raises(ClusterUnreadable, match="does not answer"),
    ):
        read_cluster(timeout_seconds=1)
