"""A pod whose engine runs under our supervisor: put around the pod as its owner has patched it, so that no patch meets it.

What is wrapped is whatever the engine's container would have started. An image's own entry point is known to nobody here, so a
container that a patch has left without a command starts as it is.
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
"""Of the volume and of the init container."""
TARGET: Final = "/shared"
"""Where the init container finds the volume: its own folder of that name holds the file."""
_MODEL: Final = re.compile(r"[A-Za-z]*\d+[A-Za-z]*")
"""H100 in H100-SXM-80GB, 4090 in RTX-4090: the first word of a product that has a number."""
COPIES: Final = ("cp", f"{RUNTIME_FOLDER}/{RUNTIME_FILE}", f"{TARGET}/")
"""What the image of the supervisor does in an engine's pod before the engine starts."""


def wrapped(
    pod: dict[str, Any], image: str | None, drain_seconds: int, more: tuple[str, ...] = ()
) -> dict[str, Any]:
    """`image` brings the supervisor; none where the engine's has it, at the same place. `more` are words for it. The pod is the
    caller's own and is changed. Raises SpecError where its patches took our place."""
    spec = pod["spec"]
    engine = next(one for one in spec["containers"] if one["name"] == ENGINE)
    if not engine.get("command"):
        return pod
    mounts, ports = _entries(engine, "volumeMounts"), _entries(engine, "ports")
    _free("mountPath", RUNTIME_FOLDER, [one.get("mountPath") for one in mounts])
    theirs = Start(command=_words(engine, "command"), args=_words(engine, "args"))
    start = supervised(theirs, drain_seconds, more)
    engine |= {"command": list(start.command), "args": list(start.args)}
    # Else a patch says where reports are had.
    if not any(one.get("name") == RUNTIME_PORT_NAME for one in ports):
        port = {"name": RUNTIME_PORT_NAME, "containerPort": RUNTIME_PORT, "protocol": "TCP"}
        engine["ports"] = [*ports, port]
    if image is not None:
        _bring(spec, engine, image)
    return pod


def is_supervised(template: Mapping[str, Any]) -> bool:
    """Whether pods of a template that is made run their engine so."""
    engine = next(one for one in template["spec"]["containers"] if one["name"] == ENGINE)
    return tuple(engine.get("command", ())) == SUPERVISOR


def _bring(spec: dict[str, Any], engine: dict[str, Any], image: str) -> None:
    mounts, volumes = _entries(engine, "volumeMounts"), _entries(spec, "volumes")
    before = _entries(spec, "initContainers")
    _free("volume", NAME, [one.get("name") for one in volumes])
    _free("initContainer", NAME, [one.get("name") for one in before])
    engine["volumeMounts"] = [*mounts, {"name": NAME, "mountPath": RUNTIME_FOLDER, "readOnly": True}]
    spec["volumes"] = [*volumes, {"name": NAME, "emptyDir": {"sizeLimit": "16Mi"}}]
    brings = fill("supervisor", image=image, copies=COPIES, mounts=[{"name": NAME, "mountPath": TARGET}])
    spec["initContainers"] = [brings, *before]


def member_words(member: Member | None) -> tuple[str, ...]:
    """For a supervisor that cannot read from its engine's words which pod of a replica it is in."""
    if member is None:
        return ()
    return "--member", member.rank, str(member.pods), member.leader


def plan_words(
    chosen: PlanSet, pod: dict[str, Any], config: OperatorConfig, start_seconds: int
) -> tuple[str, ...]:
    """What the plan counts on, for a supervisor that looks before anything is loaded. Only what is certain on every machine: a
    product by its model alone, as drivers and clouds write the rest of its name in their own ways, and no memory of a part of a
    device, which drivers round in theirs. Kernels are compiled on every GPU, so their cache has to be written, unless whoever
    brought it says that it is read-only. No room on disks: a volume that has the model already, or a part of it, needs less than
    an empty one, and whoever fetches knows how much. How long a start may take, images and all, is for pods that wait for another of theirs."""
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
        # Of generations that share their number, as RTX 6000 Ada and RTX PRO 6000 do.
        if compute := [gpu.compute for gpu in all_gpus() if gpu.name in (hardware.gpu, hardware.card)]:
            told["capability"] = compute[0]
    if hardware.partition is None and hardware.sharing == 1:
        told["gpuBytes"] = hardware.memory_bytes
    if _is_writable(CACHES, pod):
        told["writable"] = [CACHES]
    return told


def _counts_on_nvlink(chosen: PlanSet, config: OperatorConfig) -> bool:
    """Ranks that share every layer, on no more GPUs than NVLink joins of that product. Of which nodes an admin says that theirs are not
    joined so, is not known of a pod, so then nothing is claimed."""
    hardware, devices = chosen.hardware, chosen.resources.devices
    if min(chosen.layout.tensor, devices) < 2 or hardware.partition is not None or hardware.sharing > 1:
        return False
    if any(one.interconnect == "pcie" for one in config.node_classes):
        return False
    links = [gpu.link for gpu in all_gpus() if gpu.name == hardware.gpu]
    return any(link.kind is LinkKind.NVLINK and devices <= link.domain for link in links)


def _is_writable(folder: str, pod: dict[str, Any]) -> bool:
    """As the pod says: by the nearest of the mounts that hold the folder."""
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


def _free(what: str, ours: str, taken: list[object]) -> None:
    if ours in taken:
        message = f"is the {what} by which the supervisor comes into the pod; choose another"
        raise SpecError(Problem("spec.podPatches", ours, message))
