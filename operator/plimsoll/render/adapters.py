"""The ConfigMap with the list of a deployment's adapters, and what its pods are told of it: where it is mounted, where to fetch to.

The ConfigMap is made whatever the admin's config says; only pods that are made with a supervisor read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.adapters import LIST_FOLDER, LIST_KEY, adapter_list, come_and_go
from plimsoll.objects import Manifest, Owner, Ref
from plimsoll.render.owned import owned
from plimsoll.render.volumes import ADAPTERS


def keeps_adapters(spec: LLMDeploymentSpec, config: OperatorConfig) -> bool:
    """Whether the supervisors of new pods load and unload adapters by the list."""
    return come_and_go(spec) and config.runtime.enabled


def list_name(owner: Owner) -> str:
    return names.child_name(owner.name, "adapters")


def list_ref(owner: Owner) -> Ref:
    return Ref("v1", "ConfigMap", owner.namespace, list_name(owner))


def adapter_object(spec: LLMDeploymentSpec, owner: Owner) -> Manifest:
    return owned(
        "configmap",
        owner,
        kind="ConfigMap",
        name=list_name(owner),
        data={LIST_KEY: adapter_list(spec)},
        fixed=False,
    )


def reads_adapters(template: Mapping[str, Any]) -> bool:
    """Whether pods of a frozen template mount the list."""
    containers = template["spec"]["containers"]
    return any(
        mount.get("mountPath") == LIST_FOLDER for one in containers for mount in one.get("volumeMounts", ())
    )


def adapter_words(spec: LLMDeploymentSpec, config: OperatorConfig) -> tuple[str, ...]:
    """Arguments that tell the supervisor where the list is and where adapters are fetched to."""
    if not keeps_adapters(spec, config):
        return ()
    return "--adapters", f"{LIST_FOLDER}/{LIST_KEY}", "--adapters-into", ADAPTERS
