"""What a deployment hands to its pods that is somebody's: Secrets, ServiceAccounts and their tokens, wherever it names them."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from plimsoll.api.v1alpha1.pods import PodPatch
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec

_NAMES_SECRET: Final = re.compile(
    r"/spec/imagePullSecrets/[^/]+/name"
    r"|/spec/(?:(?:c|initC|ephemeralC)ontainers|volumes)/.+/(?:secretName|(?:secret|secretKeyRef|\w*[sS]ecretRef)/name)"
)
"""Where a pod names a Secret: to pull images, in variables, and in volumes of every kind."""
_NAMES_ACCOUNT: Final = re.compile(r"/spec/serviceAccount(?:Name)?")
_MOUNTS_TOKEN: Final = "/spec/automountServiceAccountToken"  # noqa: S105 - a path
_TOKEN_VOLUME: Final = re.compile(r"/spec/volumes/.+/serviceAccountToken(?:/.+)?")


def secrets_of(spec: LLMDeploymentSpec) -> tuple[tuple[str, str], ...]:
    """Every Secret that a deployment names, with the field that names it."""
    networking = spec.networking
    named = [
        ("spec.model.tokenSecret.name", spec.model.token_secret and spec.model.token_secret.name),
        ("spec.networking.apiKeySecret.name", networking.api_key_secret and networking.api_key_secret.name),
        ("spec.networking.tlsSecret", networking.tls_secret),
        ("spec.networking.ingress.tlsSecret", networking.ingress and networking.ingress.tls_secret),
    ]
    if spec.adapters is not None and spec.adapters.token_secret is not None:
        named.append(("spec.adapters.tokenSecret.name", spec.adapters.token_secret.name))
    named += [
        (f"spec.engine.imagePullSecrets[{n}]", name) for n, name in enumerate(spec.engine.image_pull_secrets)
    ]
    named += [
        (f"spec.engine.env[{n}].secret.name", variable.secret.name)
        for n, variable in enumerate(spec.engine.env)
        if variable.secret is not None
    ]
    named += [(field, name) for field, name in _patched(spec, _NAMES_SECRET) if name]
    return tuple((field, name) for field, name in named if isinstance(name, str))


def accounts_of(spec: LLMDeploymentSpec) -> tuple[tuple[str, str], ...]:
    """Every ServiceAccount that it names, with the field that names it; the last one is its pods'."""
    account = spec.scheduling.service_account
    named = [] if account is None else [("spec.scheduling.serviceAccount", account)]
    return (*named, *_patched(spec, _NAMES_ACCOUNT))


def _patched(spec: LLMDeploymentSpec, places: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Names that patches bring to places of the pod, with their fields."""
    for n, patch in enumerate(spec.pod_patches):
        if patch.op in ("add", "replace"):
            for path, name in brought(patch):
                if isinstance(name, str) and places.fullmatch(path):
                    yield f"spec.podPatches[{n}].value", name


def tokens_of(spec: LLMDeploymentSpec) -> tuple[str, ...]:
    """Fields by which its pods get a token of their ServiceAccount, of which they have none by themselves."""
    return tuple(
        f"spec.podPatches[{n}].value" for n, patch in enumerate(spec.pod_patches) if _brings_token(patch)
    )


def _brings_token(patch: PodPatch) -> bool:
    """Mounted by the kubelet, where nothing says that it must not be, or by a volume."""
    if patch.op == "remove":
        return patch.path == _MOUNTS_TOKEN
    return patch.op != "test" and any(
        (path == _MOUNTS_TOKEN and value is not False) or _TOKEN_VOLUME.fullmatch(path)
        for path, value in brought(patch)
    )


def brought(patch: PodPatch) -> Iterator[tuple[str, Any]]:
    """What a patch puts where, and every field inside its value, with the pointer's escapes undone."""
    path = "/".join(part.replace("~1", "/").replace("~0", "~") for part in patch.path.split("/"))
    yield from _inside(None if patch.value is None else json.loads(patch.value), path)


def _inside(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _inside(item, f"{path}/{key}")
