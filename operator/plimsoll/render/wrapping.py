"""Puts the engine of a pod under our supervisor, after the user's patches, so that patches see a pod without it.

The supervisor runs whatever command the engine's container would have started. Where a patch has removed that command the image's own
entry point would start, which is not known here, so such a pod is left as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import Problem, SpecError, show
from plimsoll.engines.command import Member
from plimsoll.facts.gpus import LinkKind, Vendor, all_gpus
from plimsoll.planning.plan import PlanSet
from plimsoll.render.patching import ENGINE
from plimsoll.render.start import (
    RUNTIME_FILE,
    RUNTIME_FOLDER,
    RUNTIME_PORT,
    RUNTIME_PORT_NAME,
    SUPERVISOR,
    Start,
    supervised,
)
from plimsoll.render.templating import fill
from plimsoll.render.volumes import CACHES

NAME: Final = "plimsoll"
"""Name of the volume and of the init container."""
TARGET: Final = "/shared"
"""Where the init container mounts the volume. It cannot do so at RUNTIME_FOLDER, which holds the file in its own image."""
_MODEL: Final = re.compile(r"[A-Za-z]*\d+[A-Za-z]*")
"""The first word with a number in a product's name: H100 in H100-SXM-80GB, 4090 in RTX-4090."""
COPIES: Final = ("cp", f"{RUNTIME_FOLDER}/{RUNTIME_FILE}", f"{TARGET}/")
"""The init container's command, which copies the supervisor to the volume."""


def wrapped(
    pod: dict[str, Any], image: str | None, drain_seconds: int, more: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The pod with its engine under the supervisor. It is the given pod, changed. `image` brings the supervisor; None where the engine's
    image contains it, at the same path. `more` are further arguments of the supervisor. Raises SpecError where a patch has taken a name or
    a path that the supervisor needs."""
    spec = pod["spec"]
    engine = next(one for one in spec["containers"] if one["name"] == ENGINE)
    if not engine.get("command"):
        return pod
    mounts, ports = _entries(engine, "volumeMounts"), _entries(engine, "ports")
    _check_free("mountPath", RUNTIME_FOLDER, [one.get("mountPath") for one in mounts])
    theirs = Start(command=_words(engine, "command"), args=_words(engine, "args"))
    start = supervised(theirs, drain_seconds, more)
    engine |= {"command": list(start.command), "args": list(start.args)}
    # Unless a patch has put the supervisor's port elsewhere.
    if not any(one.get("name") == RUNTIME_PORT_NAME for one in ports):
        port = {"name": RUNTIME_PORT_NAME, "containerPort": RUNTIME_PORT, "protocol": "TCP"}
        engine["ports"] = [*ports, port]
    if image is not None:
        _bring(spec, engine, image)
    return pod


def is_supervised(template: Mapping[str, Any]) -> bool:
    """Whether a pod template runs its engine under the supervisor."""
    engine = next(one for one in template["spec"]["containers"] if one["name"] == ENGINE)
    return tuple(engine.get("command", ())) == SUPERVISOR


def _bring(spec: dict[str, Any], engine: dict[str, Any], image: str) -> None:
    mounts, volumes = _entries(engine, "volumeMounts"), _entries(spec, "volumes")
    before = _entries(spec, "initContainers")
    _check_free("volume", NAME, [one.get("name") for one in volumes])
    _check_free("initContainer", NAME, [one.get("name") for one in before])
    engine["volumeMounts"] = [*mounts, {"name": NAME, "mountPath": RUNTIME_FOLDER, "readOnly": True}]
    spec["volumes"] = [*volumes, {"name": NAME, "emptyDir": {"sizeLimit": "16Mi"}}]
    brings = fill("supervisor", image=image, copies=COPIES, mounts=[{"name": NAME, "mountPath": TARGET}])
    spec["initContainers"] = [brings, *before]


def member_words(member: Member | None) -> tuple[str, ...]:
    """Arguments that tell the supervisor which pod of a replica it is in, where the engine's arguments do not."""
    if member is None:
        return ()
    return "--member", member.rank, str(member.pods), member.leader


def plan_words(
    chosen: PlanSet, pod: dict[str, Any], config: OperatorConfig, start_seconds: int
) -> tuple[str, ...]:
    """Arguments that tell the supervisor what the plan counts on, which it checks before anything is loaded.

    Only what holds on every machine is told:
    - of a product its model alone, as drivers and clouds write the rest of the name each in their own way;
    - the memory of whole devices, as drivers round that of parts of a device differently;
    - that the cache of kernels can be written, unless its mount is read-only, as every GPU compiles its own;
    - to pods of a group, how long a start may take, images included, as they wait for one another.
    Room on disks is not told: how much is needed depends on what a volume already has, which only whoever fetches knows.
    """
    told: dict[str, Any] = {"startSeconds": start_seconds} if chosen.pods_per_replica > 1 else {}
    if chosen.hardware.vendor != Vendor.CPU:
        told |= _of_gpus(chosen, pod)
    if _counts_on_nvlink(chosen, config):
        told["nvlink"] = True
    return ("--plan", json.dumps(told)) if told else ()


def _of_gpus(chosen: PlanSet, pod: dict[str, Any]) -> dict[str, Any]:
    hardware = chosen.hardware
    told: dict[str, Any] = {"gpus": chosen.resources.devices}
    if hardware.vendor == Vendor.NVIDIA and (model := _MODEL.search(hardware.gpu)):
        told["product"] = model[0]
        # This tells apart generations that share a number, as RTX 6000 Ada and RTX PRO 6000.
        if compute := [gpu.compute for gpu in all_gpus() if gpu.name in (hardware.gpu, hardware.card)]:
            told["capability"] = compute[0]
    if hardware.partition is None and hardware.sharing == 1:
        told["gpuBytes"] = hardware.memory_bytes
    if _is_writable(CACHES, pod):
        told["writable"] = [CACHES]
    return told


def _counts_on_nvlink(chosen: PlanSet, config: OperatorConfig) -> bool:
    """Whether the plan counts on NVLink: its tensor parallel ranks share a node, with no more GPUs than NVLink joins on that product.
    Where an admin says that some nodes have none it is not claimed, as it is not known on which nodes the pod will run."""
    hardware, devices = chosen.hardware, chosen.resources.devices
    if min(chosen.layout.tensor, devices) < 2 or hardware.partition is not None or hardware.sharing > 1:
        return False
    if any(one.interconnect == "pcie" for one in config.node_classes):
        return False
    links = [gpu.link for gpu in all_gpus() if gpu.name == hardware.gpu]
    return any(link.kind is LinkKind.NVLINK and devices <= link.domain for link in links)


def _is_writable(folder: str, pod: dict[str, Any]) -> bool:
    """Whether the pod may write into a folder, by the innermost mount that contains it."""
    engine = next(one for one in pod["spec"]["containers"] if one["name"] == ENGINE)
    mounts = {str(one.get("mountPath")): one for one in _entries(engine, "volumeMounts")}
    holding = [path for path in mounts if f"{folder}/".startswith(f"{path}/")]
    return bool(holding) and not mounts[max(holding, key=len)].get("readOnly")


def _entries(parent: dict[str, Any], field: str) -> list[dict[str, Any]]:
    found = parent.get(field) or []
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        return found
    raise SpecError(Problem("spec.podPatches", show(found), f"leaves no list of objects as {field}"))


def _words(engine: dict[str, Any], field: str) -> tuple[str, ...]:
    words = engine.get(field) or []
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    raise SpecError(
        Problem("spec.podPatches", show(words), f"leaves no list of words as the engine's {field}")
    )


def _check_free(what: str, ours: str, taken: list[object]) -> None:
    """Raises SpecError where a patch has taken a name or path of ours."""
    if ours in taken:
        message = f"is the {what} by which the supervisor comes into the pod; choose another"
        raise SpecError(Problem("spec.podPatches", ours, message))
