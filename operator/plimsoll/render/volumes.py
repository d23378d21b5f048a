"""Where a pod keeps what: weights and caches as the user said, everything else it writes on scratch that ends with it.

The root file system is read-only, so every folder that anything writes into is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names
from plimsoll.api.config import Network
from plimsoll.api.quantity import format_quantity, parse_bytes
from plimsoll.api.v1alpha1.model import ClaimTemplate, Volume
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.command import ADAPTER_FOLDER, MODEL_FOLDER, TEMPLATE_FILE, TLS_FOLDER
from plimsoll.planning.plan import PlanSet

CACHE: Final = "/cache"
MODELS: Final = f"{CACHE}/models"
"""What is fetched from hubs."""
CACHES: Final = f"{CACHE}/engine"
"""Compiled kernels and graphs."""
HOME: Final = "/home/plimsoll"
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount of the pod's own
TEMPORARY: Final = "/tmp"  # noqa: S108 - another one
CA_FOLDER: Final = "/etc/plimsoll/ca"
CA_FILE: Final = f"{CA_FOLDER}/ca.crt"
TEMPLATE_KEY: Final = "chat-template.jinja"
COMPILED_BYTES: Final = 10 * 2**30
SHARED: Final = "ReadWriteMany"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """One volume and where it is seen."""

    volume: dict[str, Any]
    mounts: tuple[dict[str, Any], ...]


def volumes(
    spec: LLMDeploymentSpec,
    chosen: PlanSet,
    network: Network,
    *,
    deployment: str,
    set_name: str,
    weight_bytes: int,
) -> tuple[Mounted, ...]:
    shm = format_quantity(chosen.resources.shm_bytes)
    found = [
        _scratch("shm", SHARED_MEMORY, {"medium": "Memory", "sizeLimit": shm}),
        _scratch("tmp", TEMPORARY, {}),
        _scratch("home", HOME, {}),
        *_kept(spec, chosen, deployment, weight_bytes),
        *_model(spec),
        *_adapters(spec),
    ]
    if spec.chat_template is not None:
        given = spec.chat_template.config_map
        config_map = set_name if given is None else given.name
        items = [{"key": TEMPLATE_KEY if given is None else given.key, "path": TEMPLATE_KEY}]
        source = {"configMap": {"name": config_map, "items": items}}
        found.append(_mounted("files", source, TEMPLATE_FILE, subPath=TEMPLATE_KEY, readOnly=True))
    if spec.networking.tls_secret is not None:
        # A folder and no single file: only then a renewed certificate reaches a running engine.
        secret = {"secret": {"secretName": spec.networking.tls_secret, "defaultMode": 0o440}}
        found.append(_mounted("tls", secret, TLS_FOLDER, readOnly=True))
    if network.ca_bundle is not None:
        found.append(_mounted("ca", {"configMap": {"name": network.ca_bundle}}, CA_FOLDER, readOnly=True))
    return tuple(found)


def shared_claims(
    spec: LLMDeploymentSpec, deployment: str, weight_bytes: int
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Claims of which a deployment has one for all its pods, by name; others are made and ended with each pod."""
    asked = (
        ("weights", spec.storage.weights, _weights_size(weight_bytes)),
        ("cache", spec.storage.cache, COMPILED_BYTES),
    )
    return tuple(
        (names.child_name(deployment, suffix), _claim(volume.claim_template, size))
        for suffix, volume, size in asked
        if volume is not None
        and volume.claim_template is not None
        and volume.claim_template.access_mode == SHARED
    )


def _kept(spec: LLMDeploymentSpec, chosen: PlanSet, deployment: str, weight_bytes: int) -> Iterator[Mounted]:
    """Weights and caches. Caches lie beside the weights unless that place is read-only or another one was named."""
    weights, cache = spec.storage.weights, spec.storage.cache
    scratch = {"emptyDir": {"sizeLimit": format_quantity(chosen.resources.disk_bytes or COMPILED_BYTES)}}
    fixed = weights is not None and (weights.image is not None or _is_read_only(weights))
    if weights is not None and weights.image is not None:
        reference = {"reference": weights.image.reference}
        if weights.image.pull_policy is not None:
            reference["pullPolicy"] = weights.image.pull_policy
        yield _mounted("weights", {"image": reference}, MODEL_FOLDER, readOnly=True)
    elif weights is not None:
        source = _source(weights, "weights", deployment, _weights_size(weight_bytes), scratch)
        together = cache is None and not fixed
        yield _mounted("weights", source, CACHE if together else MODELS, **_part(weights))
        if together:
            return
    if cache is not None:
        source = _source(cache, "cache", deployment, COMPILED_BYTES, {"emptyDir": {}})
        at = CACHES if weights is not None and weights.image is None else CACHE
        if weights is None:
            yield _mounted("weights", scratch, MODELS)
            at = CACHES
        yield _mounted("cache", source, at, **_part(cache))
    else:
        yield _mounted("cache", scratch, CACHES if weights is not None and weights.image is None else CACHE)


def _source(volume: Volume, what: str, deployment: str, size: int, scratch: dict[str, Any]) -> dict[str, Any]:
    if volume.claim is not None:
        claim = {"claimName": volume.claim.name}
        return {"persistentVolumeClaim": claim | ({"readOnly": True} if volume.claim.read_only else {})}
    if volume.claim_template is not None:
        if volume.claim_template.access_mode == SHARED:
            return {"persistentVolumeClaim": {"claimName": names.child_name(deployment, what)}}
        return {"ephemeral": {"volumeClaimTemplate": {"spec": _claim(volume.claim_template, size)}}}
    if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
        return {"emptyDir": {"sizeLimit": volume.empty_dir.size_limit}}
    return scratch


def _claim(template: ClaimTemplate, computed: int) -> dict[str, Any]:
    size = parse_bytes(template.size) if template.size is not None else computed
    claim: dict[str, Any] = {
        "accessModes": [template.access_mode],
        "resources": {"requests": {"storage": format_quantity(size)}},
    }
    if template.storage_class is not None:
        claim["storageClassName"] = template.storage_class
    return claim


def _weights_size(weight_bytes: int) -> int:
    """Room for one model, a download that was broken off, and caches; in whole GiB, so that little changes nothing."""
    return -(-(weight_bytes * 6 // 5 + COMPILED_BYTES) // 2**30) * 2**30


def _is_read_only(volume: Volume) -> bool:
    return volume.claim is not None and bool(volume.claim.read_only)


def _part(volume: Volume) -> dict[str, Any]:
    """The folder inside a claim, and whether it may be written."""
    if volume.claim is None:
        return {}
    part: dict[str, Any] = {"readOnly": True} if volume.claim.read_only else {}
    return part | ({"subPath": volume.claim.sub_path} if volume.claim.sub_path is not None else {})


def _model(spec: LLMDeploymentSpec) -> Iterator[Mounted]:
    """A model that lies in a claim or an image."""
    if spec.model.scheme == "pvc":
        claim = {"claimName": spec.model.location.partition("/")[0], "readOnly": True}
        yield _mounted("model", {"persistentVolumeClaim": claim}, MODEL_FOLDER, readOnly=True)
    elif spec.model.scheme == "oci":
        yield _mounted("model", {"image": {"reference": spec.model.location}}, MODEL_FOLDER, readOnly=True)


def _adapters(spec: LLMDeploymentSpec) -> Iterator[Mounted]:
    """Adapters that lie in a claim or an image; those of a hub the engine fetches itself."""
    adapters = spec.adapters
    if adapters is None or adapters.runtime_loading:
        return
    for number, item in enumerate(adapters.items):
        scheme, _, location = item.source.partition("://")
        folder = f"{ADAPTER_FOLDER}/{item.name}"
        if scheme == "pvc":
            name, _, path = location.partition("/")
            claim = {"persistentVolumeClaim": {"claimName": name, "readOnly": True}}
            part = {"subPath": path.strip("/")} if path.strip("/") else {}
            yield _mounted(f"adapter-{number}", claim, folder, readOnly=True, **part)
        elif scheme == "oci":
            yield _mounted(f"adapter-{number}", {"image": {"reference": location}}, folder, readOnly=True)


def _scratch(name: str, path: str, empty: dict[str, Any]) -> Mounted:
    return _mounted(name, {"emptyDir": empty}, path)


def _mounted(name: str, source: dict[str, Any], path: str, **how: Any) -> Mounted:
    return Mounted(volume={"name": name, **source}, mounts=({"name": name, "mountPath": path, **how},))
