"""`plimsoll doctor` against a server that answers lists: what is read, what is printed, how it ends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.crd import custom_resource_definition
from tests.cli.running import plimsoll
from tests.kube.api_server import Api, kubeconfig, serving

OURS = "/apis/plimsoll.dev/v1alpha1/llmdeployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASES = "/apis/coordination.k8s.io/v1/leases"


def deployment(name: str = "chat", reason: str = "Serving", *, ready: bool = True) -> dict[str, Any]:
    condition = {
        "type": "Ready",
        "status": str(ready),
        "reason": reason,
        "message": "the words of the operator",
        "observedGeneration": 1,
    }
    return {
        "metadata": {"name": name, "namespace": "team", "generation": 1},
        "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}},
        "status": {"observedGeneration": 1, "conditions": [condition]},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Api]:
    """Nothing is wrong with it."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    with serving(tmp_path) as server:
        server.lists["/api/v1/nodes"] = [
            {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}
        ]
        server.lists[CRDS] = [custom_resource_definition()]
        server.lists[LEASES] = [
            {
                "metadata": {"name": names.LEASE, "namespace": "plimsoll"},
                "spec": {"holderIdentity": "a", "renewTime": "2999-01-01T00:00:00.000000Z"},
            },
            {"metadata": {"name": "other", "namespace": "plimsoll"}, "spec": {}},
        ]
        server.lists[OURS] = [deployment(), deployment("embed")]
        yield server


def test_nothing_wrong_is_said_and_is_exit_code_0(cluster: Api):
    ran = plimsoll("doctor")
    assert (ran.code, ran.out, ran.err) == (
        0,
        "nothing is wrong with 1 node, 2 LLMDeployments, 0 serving pods\n",
        "",
    )


def test_an_error_is_told_with_its_cure_and_is_exit_code_2(cluster: Api):
    cluster.lists[CRDS] = []
    ran = plimsoll("doctor")
    assert ran.code == 2
    assert "error CustomResourceDefinition llmdeployments.plimsoll.dev: NoCRD" in ran.out
    assert "cure: plimsoll crd | kubectl apply --server-side -f -" in ran.out
    assert ran.out.endswith("1 error, 0 warnings in 1 node, 2 LLMDeployments, 0 serving pods\n")


def test_a_name_leaves_out_other_deployments(cluster: Api):
    cluster.lists[OURS] = [deployment(), deployment("embed", "StartFailed", ready=False)]
    assert plimsoll("doctor", "chat").code == 0
    ran = plimsoll("doctor", "embed", "-o", "json")
    assert ran.code == 2
    assert json.loads(ran.out) == {
        "found": [
            {
                "severity": "error",
                "about": "LLMDeployment team/embed",
                "reason": "StartFailed",
                "message": "the words of the operator",
                "remedy": "",
            }
        ],
        "unseen": [],
    }


def test_only_pods_of_the_deployments_asked_about_are_counted(cluster: Api):
    cluster.lists["/api/v1/pods"] = [
        {
            "metadata": {
                "name": f"{name}-{place}",
                "uid": f"{name}-{place}",
                "namespace": "team",
                "labels": {names.LABEL_DEPLOYMENT: name},
            },
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running"},
        }
        for place, name in enumerate(("chat", "embed", "embed"))
    ]
    assert plimsoll("doctor").out.endswith("2 LLMDeployments, 3 serving pods\n")
    assert plimsoll("doctor", "chat").out.endswith("1 LLMDeployment, 1 serving pod\n")


def test_a_namespace_without_any_is_no_clean_bill(cluster: Api):
    cluster.lists["/apis/plimsoll.dev/v1alpha1/namespaces/taem/llmdeployments"] = []
    ran = plimsoll("doctor", "-n", "taem")
    assert "namespace taem holds no LLMDeployment, if there is such a namespace at all" in ran.err


def test_a_name_that_is_nowhere_is_answered_with_the_nearest(cluster: Api):
    ran = plimsoll("doctor", "chap")
    assert ran.code == 3
    assert "no LLMDeployment 'chap' in any namespace: did you mean chat?" in ran.err


def test_a_namespace_is_all_that_is_read_of_namespaced_kinds(cluster: Api):
    spaced = "/apis/plimsoll.dev/v1alpha1/namespaces/team/llmdeployments"
    cluster.lists[spaced] = [deployment()]
    ran = plimsoll("doctor", "-n", "team")
    assert "1 LLMDeployment," in ran.out
    assert not any(
        path.startswith((f"{OURS}?", "/api/v1/pods?", "/api/v1/events?")) for path in cluster.asked
    )


def test_what_may_not_be_read_is_named_and_nothing_is_concluded_from_it(cluster: Api):
    cluster.lists[CRDS] = 403
    cluster.lists[LEASES] = 403
    cluster.lists["/api/v1/nodes"] = 403
    ran = plimsoll("doctor")
    assert ran.code == 0
    assert ran.out == "nothing wrong was found in what could be seen: 2 LLMDeployments, 0 serving pods\n"
    assert "not looked at: crds" in ran.err
    assert "not looked at: nodes" in ran.err


def test_credentials_that_are_not_taken_are_no_clean_bill(cluster: Api):
    for path in (OURS, CRDS, LEASES, "/api/v1/nodes", "/api/v1/pods"):
        cluster.lists[path] = 401
    ran = plimsoll("doctor")
    assert (ran.code, ran.out) == (3, "")
    assert "401 Unauthorized" in ran.err
    assert "sign in anew" in ran.err


def test_deployments_that_may_not_be_listed_are_no_clean_bill_and_the_way_out_is_named(cluster: Api):
    """As for a member of a team whose rights are those of one namespace."""
    cluster.lists[OURS] = 403
    for given in ((), ("chat",)):
        ran = plimsoll("doctor", *given)
        assert (ran.code, ran.out) == (3, "")
        assert f"LLMDeployments cannot be listed: {OURS}: 403 Forbidden" in ran.err
        assert "name a namespace that you may list: -n NAMESPACE" in ran.err


def test_deployments_that_may_not_be_listed_in_their_namespace_either_are_said_to_need_the_right(
    cluster: Api,
):
    cluster.lists["/apis/plimsoll.dev/v1alpha1/namespaces/team/llmdeployments"] = 403
    ran = plimsoll("doctor", "-n", "team")
    assert ran.code == 3
    assert "403 Forbidden; list must be allowed" in ran.err
    assert "name a namespace" not in ran.err


def test_a_cluster_without_the_crd_is_no_clean_bill_for_those_who_may_not_read_crds_either(cluster: Api):
    cluster.lists[CRDS] = 403
    del cluster.lists[OURS]
    ran = plimsoll("doctor")
    assert (ran.code, ran.out) == (3, "")
    assert "LLMDeployments cannot be listed" in ran.err
    assert "the CRD is not there: plimsoll crd | kubectl apply" in ran.err


@pytest.mark.parametrize("command", [("doctor",), ("history", "chat"), ("ramp", "chat"), ("learned", "list")])
def test_what_can_be_no_namespace_is_asked_for_nowhere(cluster: Api, command: tuple[str, ...]):
    ran = plimsoll(*command, "-n", "team/a")
    assert (ran.code, ran.out) == (3, "")
    assert "--namespace: 'team/a' is no namespace's name" in ran.err
    assert not cluster.asked


def test_a_server_that_fails_on_deployments_is_not_taken_for_a_lack_of_rights(cluster: Api):
    cluster.lists[OURS] = 500
    ran = plimsoll("doctor")
    assert ran.code == 3
    assert "500 Internal Server Error\n" in ran.err


def test_a_cluster_that_does_not_answer_is_exit_code_3(tmp_path: Path):
    with kubeconfig(tmp_path, "http://127.0.0.1:9"):
        ran = plimsoll("doctor")
    assert ran.code == 3
    assert "does not answer" in ran.err
