import pytest

from plimsoll.kube.kinds import resource_in


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/nodes", "nodes"),
        ("/api/v1/nodes/a", "nodes"),
        ("/api/v1/namespaces", "namespaces"),
        ("/api/v1/namespaces/a", "namespaces"),
        ("/api/v1/namespaces/a/pods", "pods"),
        ("/api/v1/namespaces/a/pods/b", "pods"),
        ("/api/v1/namespaces/a/pods/b/binding", "pods/binding"),
        ("/apis/apps/v1/namespaces/a/deployments/b", "deployments"),
        ("/apis/plimsoll.dev/v1alpha1/namespaces/a/llmdeployments/b/status", "llmdeployments/status"),
        ("/apis/plimsoll.dev/v1alpha1/llmdeployments", "llmdeployments"),
        ("/apis", "discovery"),
        ("/apis/apps/v1", "discovery"),
        ("/version", "discovery"),
    ],
)
def test_a_metric_is_labelled_by_the_resource_in_a_path(path: str, resource: str) -> None:
    assert resource_in(path) == resource
