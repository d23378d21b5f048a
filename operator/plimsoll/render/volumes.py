"""A pod's volumes: weights and caches where the user wants them, everything else that it writes on volumes that end with the pod.

The root file system is read-only, so every folder that anything writes into is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names
from plimsoll.api.config import Network
from plimsoll.api.quantity import format_quantity, parse_bytes
from plimsoll.api.v1alpha1.model import ClaimTemplate, ImageVolume, Volume
from plimsoll.api.v1alpha1.source import HUBS, claim_of, location_of, scheme_of
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.adapters import LIST_FOLDER, adapter_claims, claim_folder
from plimsoll.engines.command import TEMPLATE_FILE, TLS_FOLDER
from plimsoll.engines.sources import MODEL_FOLDER, Named, sources
from plimsoll.planning.plan import PlanSet

CACHE: Final = "/cache"
MODELS: Final = f"{CACHE}/models"
"""Folder of what is fetched from hubs."""
CACHES: Final = f"{CACHE}/engine"
"""Folder of compiled kernels and graphs."""
ADAPTERS: Final = f"{CACHES}/adapters"
"""Folder of adapters that the supervisor fetches while the engine runs. It is apart from weights, which may be read-only."""
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
    """A volume and its mounts."""

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
    adapter_list: str | None = None,
) -> tuple[Mounted, ...]:
    shm = format_quantity(chosen.resources.shm_bytes)
    found = [
        _scratch("shm", SHARED_MEMORY, {"medium": "Memory", "sizeLimit": shm}),
        _scratch("tmp", TEMPORARY, {}),
        _scratch("home", HOME, {}),
        *_kept(spec, chosen, deployment, weight_bytes),
        *_named(spec),
    ]
    if adapter_list is not None:
        # Mounted as a folder, so that a changed list reaches pods that run. It is optional: the supervisor waits for the list.
        source = {"configMap": {"name": adapter_list, "optional": True}}
        found.append(_mounted("adapters", source, LIST_FOLDER, readOnly=True))
    if spec.chat_template is not None:
        given = spec.chat_template.config_map
        config_map = set_name if given is None else given.name
        items = [{"key": TEMPLATE_KEY if given is None else given.key, "path": TEMPLATE_KEY}]
        source = {"configMap": {"name": config_map, "items": items}}
        found.append(_mounted("files", source, TEMPLATE_FILE, subPath=TEMPLATE_KEY, readOnly=True))
    if spec.networking.tls_secret is not None:
        # Mounted as a folder: a renewed certificate would not reach a running engine through a mount of a single file.
        secret = {"secret": {"secretName": spec.networking.tls_secret, "defaultMode": 0o440}}
        found.append(_mounted("tls", secret, TLS_FOLDER, readOnly=True))
    if network.ca_bundle is not None:
        found.append(_mounted("ca", {"configMap": {"name": network.ca_bundle}}, CA_FOLDER, readOnly=True))
    return tuple(found)


def shared_claims(
    spec: LLMDeploymentSpec, deployment: str, weight_bytes: int
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Names and specs of the claims that all pods of a deployment share; other claims are made and deleted with each pod."""
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
    """The volumes of weights and caches. Caches are on the weights' volume unless that is read-only or another one is named for them."""
    weights, cache = spec.storage.weights, spec.storage.cache
    scratch = {"emptyDir": {"sizeLimit": format_quantity(chosen.resources.disk_bytes or COMPILED_BYTES)}}
    size = _weights_size(weight_bytes)
    if weights is not None and weights.image is not None:
        if spec.model.scheme in HUBS:
            yield _mounted("weights", _image(weights.image), MODEL_FOLDER, readOnly=True)
        source = (
            scratch if cache is None else _volume_source(cache, "cache", deployment, COMPILED_BYTES, scratch)
        )
        yield _mounted("cache", source, CACHE, **_part(cache))
    elif cache is None and not (weights is not None and weights.is_read_only):
        source = scratch if weights is None else _volume_source(weights, "weights", deployment, size, scratch)
        yield _mounted("weights", source, CACHE, **_part(weights))
    else:
        source = scratch if weights is None else _volume_source(weights, "weights", deployment, size, scratch)
        yield _mounted("weights", source, MODELS, **_part(weights))
        source = (
            scratch if cache is None else _volume_source(cache, "cache", deployment, COMPILED_BYTES, scratch)
        )
        yield _mounted("cache", source, CACHES, **_part(cache))


def _image(volume: ImageVolume) -> dict[str, Any]:
    policy = {} if volume.pull_policy is None else {"pullPolicy": volume.pull_policy}
    return {"image": {"reference": volume.reference, **policy}}


def _volume_source(
    volume: Volume, what: str, deployment: str, size: int, scratch: dict[str, Any]
) -> dict[str, Any]:
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
    """Bytes for a model, a part of it that was left by a broken download, and caches, in whole GiB, so that a slightly different size
    changes nothing."""
    return -(-(weight_bytes * 6 // 5 + COMPILED_BYTES) // 2**30) * 2**30


def _part(volume: Volume | None) -> dict[str, Any]:
    """The fields of a mount for the folder inside the claim, and for whether it is read-only."""
    if volume is None or volume.claim is None:
        return {}
    part: dict[str, Any] = {"readOnly": True} if volume.claim.read_only else {}
    return part | ({"subPath": volume.claim.sub_path} if volume.claim.sub_path is not None else {})


def _named(spec: LLMDeploymentSpec) -> Iterator[Mounted]:
    """Volumes of what the spec says lies in a claim or an image: the model, a tokenizer, a draft, adapters."""
    for one in sources(spec):
        if (found := mounted_source(one)) is not None:
            yield found
    for number, name in enumerate(adapter_claims(spec)):
        yield _mounted(f"adapters-{number}", read_only(name), claim_folder(name), readOnly=True)


def mounted_source(named: Named) -> Mounted | None:
    """The volume of a source; None where the source is fetched, or lies in the engine's image."""
    match scheme_of(named.source):
        case "pvc":
            volume = read_only(claim_of(named.source)[0])
        case "oci":
            volume = {"image": {"reference": location_of(named.source)}}
        case _:
            return None
    return _mounted(named.name, volume, named.folder, readOnly=True)


def read_only(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}


def _scratch(name: str, path: str, empty: dict[str, Any]) -> Mounted:
    return _mounted(name, {"emptyDir": empty}, path)


def _mounted(name: str, source: dict[str, Any], path: str, **how: Any) -> Mounted:
    return Mounted(volume={"name": name, **source}, mounts=({"name": name, "mountPath": path, **how},))
