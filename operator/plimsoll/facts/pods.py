"""What a pod takes of its node: the few numbers of it that planning reads.

They follow the scheduler's own rule: the requests of containers are added up; an ordinary init container counts where it alone asks for
more; sidecars (init containers that stay) are added to both; overhead is added at the end. A pod that has ended or has no node takes
nothing. Devices that pods get by claims are counted by `usage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.facts.amounts import millicores, whole
from plimsoll.names import LABEL_DEPLOYMENT

DISK = "ephemeral-storage"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodUse:
    """What one pod has requested on its node."""

    key: str
    """namespace/name."""
    node: str
    devices: tuple[tuple[str, int], ...]
    """Extended resources, sorted by name."""
    cpu_millis: int
    memory_bytes: int
    disk_bytes: int = 0
    deployment: str | None = None
    """namespace/name of the deployment of ours that the pod belongs to."""


def parse_pod(pod: Mapping[str, Any]) -> PodUse | None:
    """The pod's use of its node; None where it uses none."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    node = spec.get("nodeName")
    if not node or (pod.get("status") or {}).get("phase") in _ENDED:
        return None
    total = _requests(spec)
    namespace = metadata.get("namespace", "default")
    owner = (metadata.get("labels") or {}).get(LABEL_DEPLOYMENT)
    return PodUse(
        key=f"{namespace}/{metadata.get('name', '')}",
        node=node,
        devices=tuple(sorted((name, count) for name, count in total.items() if "/" in name and count)),
        cpu_millis=total.get("cpu", 0),
        memory_bytes=total.get("memory", 0),
        disk_bytes=total.get(DISK, 0),
        deployment=f"{namespace}/{owner}" if owner else None,
    )


def _requests(spec: Mapping[str, Any]) -> dict[str, int]:
    running: dict[str, int] = {}
    for container in spec.get("containers") or ():
        _add(running, _of(container))
    starting: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        asked = _of(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = {}
        at_once = dict(sidecars)
        _add(at_once, asked)
        for name, amount in at_once.items():
            starting[name] = max(starting.get(name, 0), amount)
    _add(running, sidecars)
    for name, amount in starting.items():
        running[name] = max(running.get(name, 0), amount)
    _add(running, {name: _amount(name, value) for name, value in (spec.get("overhead") or {}).items()})
    return running


def _of(container: Mapping[str, Any]) -> dict[str, int]:
    """A container's requests; for extended resources a limit alone is a request too."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: _amount(name, value) for name, value in asked.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _amount(name: str, value: str | int) -> int:
    return millicores(value) if name == "cpu" else whole(value)
