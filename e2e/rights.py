"""What the shipped chart lets an operator do, and what an operator was seen to do: the two are compared, and operators run under it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from chart import VALUES, objects, rendered
from cluster import Cluster

Right = tuple[str, str, str]
"""Group, resource and verb."""
GIVEN: Final = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount", "ConfigMap")


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
