"""A pod whose engine runs under our supervisor: put around the pod as its owner has patched it, so that no patch meets it.

What is wrapped is whatever the engine's container would have started. An image's own entry point is known to nobody here, so a
container that a patch has left without a command starts as it is.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll.api.problems import Problem, SpecError, show
from plimsoll.render.patching import ENGINE
from plimsoll.render.start import (
    RUNTIME_FILE,
    RUNTIME_FOLDER,
    RUNTIME_PORT,
    RUNTIME_PORT_NAME,
    Start,
    supervised,
)
from plimsoll.render.templating import fill

VOLUME: Final = "plimsoll"
TARGET: Final = "/shared"
"""Where the init container finds the volume: its own folder of that name holds the file."""
COPIES: Final = ("cp", f"{RUNTIME_FOLDER}/{RUNTIME_FILE}", f"{TARGET}/")
"""What the image of the supervisor does in an engine's pod before the engine starts."""


def wrapped(pod: dict[str, Any], image: str, drain_seconds: int) -> dict[str, Any]:
    """`image` brings the supervisor. The pod is the caller's own and is changed."""
    spec = pod["spec"]
    engine = next(one for one in spec["containers"] if one["name"] == ENGINE)
    if not engine.get("command"):
        return pod
    start = supervised(Start(command=_words(engine, "command"), args=_words(engine, "args")), drain_seconds)
    engine |= {"command": list(start.command), "args": list(start.args)}
    port = {"name": RUNTIME_PORT_NAME, "containerPort": RUNTIME_PORT, "protocol": "TCP"}
    mount = {"name": VOLUME, "mountPath": RUNTIME_FOLDER, "readOnly": True}
    engine["ports"] = [*(engine.get("ports") or ()), port]
    engine["volumeMounts"] = [*(engine.get("volumeMounts") or ()), mount]
    volume = {"name": VOLUME, "emptyDir": {"sizeLimit": "16Mi"}}
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]
    brings = fill("supervisor", image=image, copies=COPIES, mounts=[{"name": VOLUME, "mountPath": TARGET}])
    spec["initContainers"] = [brings, *(spec.get("initContainers") or ())]
    return pod


def _words(engine: dict[str, Any], field: str) -> tuple[str, ...]:
    words = engine.get(field) or []
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    raise SpecError(
        Problem("spec.podPatches", show(words), f"leaves no list of words as the engine's {field}")
    )
