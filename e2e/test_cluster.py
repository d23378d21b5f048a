"""The cluster itself: several at once, nothing left behind however it ends, and the rights a default cluster gives."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from cluster import Cluster, ClusterFailed
from cluster.api import ApiError, Object
from common import alive, eventually, killed_owner

OWNER: Final = """
import json, signal, time
from cluster import Cluster
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
with Cluster() as running:
    print(json.dumps({"folder": str(running.folder), "pids": list(running.processes.pids.values())}), flush=True)
    time.sleep(600)
"""
PRIVILEGED_POD: Final[Object] = {
    "metadata": {"name": "privileged"},
    "spec": {"containers": [{"name": "main", "image": "none", "securityContext": {"privileged": True}}]},
}


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_nothing_is_left_when_the_owner_is_killed(ending: signal.Signals) -> None:
    told = killed_owner(OWNER, ending)
    assert eventually(lambda: not Path(told["folder"]).exists())


def test_two_clusters_live_side_by_side_and_leave_no_folder(cluster: Cluster) -> None:
    with Cluster() as other:
        assert other.server != cluster.server
        other.api.create("/api/v1/namespaces", {"metadata": {"name": "only-here"}})
        with pytest.raises(ApiError, match="not found"):
            cluster.api.get("/api/v1/namespaces/only-here")
        pids = other.processes.pids.values()
    assert not other.folder.exists()
    assert not any(alive(pid) for pid in pids)


def test_a_cluster_that_cannot_start_says_so_in_the_words_of_its_log(tmp_path: Path) -> None:
    with (
        pytest.raises(
            ClusterFailed, match=r"kube-apiserver ended with(.|\n)*unrecognized feature gate: NoSuchGate"
        ),
        Cluster(feature_gates={"NoSuchGate": True}, folder=tmp_path),
    ):
        raise AssertionError
    assert [left.name for left in tmp_path.iterdir()] == ["logs"]


def test_gates_api_versions_and_the_audit_log_are_chosen(tmp_path: Path) -> None:
    with Cluster(
        feature_gates={"MutatingAdmissionPolicy": True},
        runtime_config={"admissionregistration.k8s.io/v1beta1": True},
        audit=True,
        folder=tmp_path,
    ) as chosen:
        assert chosen.api.items("/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies") == []
        chosen.api.create("/api/v1/namespaces", {"metadata": {"name": "audited"}})
        lines = [json.loads(line) for line in chosen.audit_log.read_text().splitlines()]
    assert ("create", "audited") in {(one["verb"], one.get("objectRef", {}).get("name")) for one in lines}


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ClusterFailed, match="is not empty"), Cluster(folder=tmp_path):
        raise AssertionError
    assert (tmp_path / "precious").exists()


def test_a_service_account_may_do_what_it_is_granted_and_no_more(cluster: Cluster, namespace: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    cluster.api.create(accounts, {"metadata": {"name": "reader"}})
    binding: Object = {
        "metadata": {"name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    }
    cluster.api.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", binding)
    reader = cluster.api_as(namespace, "reader")
    assert eventually(lambda: granted(lambda: reader.items(f"/api/v1/namespaces/{namespace}/pods")))
    assert not granted(lambda: reader.items("/api/v1/nodes"))
    assert not granted(lambda: reader.create(accounts, {"metadata": {"name": "another"}}))
    file = cluster.kubeconfig_for(namespace, "reader")
    who = cluster.kubectl("auth", "whoami", f"--kubeconfig={file}", "-o", "json")
    assert (
        json.loads(who.stdout)["status"]["userInfo"]["username"]
        == f"system:serviceaccount:{namespace}:reader"
    )


def granted(call: Callable[[], object]) -> bool:
    try:
        call()
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True


def test_pod_security_is_enforced_where_a_namespace_asks_for_it(cluster: Cluster, namespace: str) -> None:
    def accepted() -> bool:
        return granted(lambda: cluster.api.create(pods, PRIVILEGED_POD, dryRun="All"))

    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert accepted()
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    assert eventually(lambda: not accepted())
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        cluster.api.create(pods, PRIVILEGED_POD)
