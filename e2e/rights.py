"""What the shipped chart lets an operator do, and what an operator was seen to do: the two are compared, and operators run under it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from chart import NAMESPACE, RELEASE, VALUES, objects, rendered
from cluster import Cluster
from common import eventually

Right = tuple[str, str, str]
"""Group, resource and verb."""
RULES: Final = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount")
GIVEN: Final = (*RULES, "ConfigMap")

USER: Final = f"system:serviceaccount:{NAMESPACE}:{RELEASE}-plimsoll"
"""Who the operators of tests are, unless a test brings its own."""


@cache
def shipped(cluster: Cluster, own: str = NAMESPACE) -> Path:
    """The kubeconfig of an account with what the chart gives by default, and in `own` what it gives in the release's namespace."""
    for each in {NAMESPACE, own}:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}}
        cluster.api.apply(f"/api/v1/namespaces/{each}", body)
    found = [one for one in objects(rendered(VALUES["default"])) if one["kind"] in RULES]
    for one in found:
        if one["kind"] in ("Role", "RoleBinding"):
            one["metadata"]["namespace"] = own
    done = cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(found))
    assert done.returncode == 0, done.stderr
    # The API server heeds a new binding a moment after it took it.
    asked = (("", "nodes", "list", ""), ("coordination.k8s.io", "leases", "get", own))
    assert eventually(lambda: all(_may(cluster, *one) for one in asked))
    return cluster.kubeconfig_for(NAMESPACE, account_of(found))


def _may(cluster: Cluster, group: str, resource: str, verb: str, namespace: str) -> bool:
    what = {"group": group, "resource": resource, "verb": verb, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": USER, "groups": ["system:serviceaccounts"], "resourceAttributes": what},
    }
    done = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(done["status"]["allowed"])


def beyond(cluster: Cluster, since: int = 0) -> list[Right]:
    """What the operators of tests asked for there without a right to it."""
    refused = cluster.audit.forbidden(user=USER, since=since)
    return sorted({(one.call.group, one.call.resource, one.call.verb) for one in refused})


def installed(cluster: Cluster, values: Path, namespace: str, *more: str) -> Path:
    """Its rights and its account, without its pods; the account's kubeconfig. The admin's file lies beside it."""
    found = objects(rendered(values, "--set=crds.enabled=false", *more, namespace=namespace))
    kept = [one for one in found if one["kind"] in GIVEN]
    done = cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(kept))
    assert done.returncode == 0, done.stderr
    return cluster.kubeconfig_for(namespace, account_of(found))


def account_of(found: list[dict[str, Any]]) -> str:
    (account,) = (one["metadata"]["name"] for one in found if one["kind"] == "ServiceAccount")
    return str(account)


def admins_file(values: Path, folder: Path) -> Path:
    (config,) = (
        one["data"]["config.yaml"]
        for one in objects(rendered(values))
        if one["kind"] == "ConfigMap" and "config.yaml" in one["data"]
    )
    file = folder / "config.yaml"
    file.write_text(config)
    return file


def granted() -> set[Right]:
    """Each verb of the rules of all namespaces and of the operator's own, apart."""
    found = objects(rendered(VALUES["default"]))
    return {
        (group, resource, verb)
        for one in found
        if one["kind"] in ("Role", "ClusterRole")
        for rule in one["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(cluster: Cluster, user: str, since: int) -> set[Right]:
    """What the API server let it do. An apply of what was not there needs the right to create as well."""
    found: set[Right] = set()
    for one in cluster.audit.entries(user=user, since=since):
        if one.code >= 400 or not one.call.resource:
            continue
        found.add((one.call.group, one.call.resource, one.call.verb))
        if one.code == 201:
            found.add((one.call.group, one.call.resource, "create"))
    return found
