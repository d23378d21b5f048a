"""What is mounted in the engine's container, and what KServe downloads to it before the engine starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from plimsoll.cli.importing.command import Command
from plimsoll.cli.importing.draft import Draft
from plimsoll.cli.importing.environment import said_of
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.sources import Mount

SHARED: Final = "Plimsoll sizes shared memory by the layout"
BEFORE: Final = "only the engine's container is read; spec.storage says where weights come from"
_STORAGE = "spec.storage says where weights and caches live"

_PLACE: Final = "/mnt/models"
"""Where KServe puts a model, and what it tells the engine."""
_URI: Final = "STORAGE_URI"
"""The variable by which a container of one's own asks KServe for a model."""
_ANNOTATION: Final = "internal.serving.kserve.io/storage-initializer-sourceuri"
"""On pods that KServe makes: the model that it downloads once there is such a pod."""
_INITIALIZER = "storage-initializer"


def read_mounts(draft: Draft, pod: Reader, container: Reader) -> tuple[Mount, ...]:
    """The mounts of a container of the pod, with what is downloaded to them."""
    volumes = {str(volume.take("name")): volume for volume in pod.each("volumes")}
    mounts = list(_initialized(draft, pod))
    for mount in container.each("volumeMounts"):
        name, path = str(mount.take("name")), mount.text("mountPath") or "/"
        volume = volumes.get(name)
        claim = volume.below("persistentVolumeClaim") if volume else None
        config = volume.below("configMap") if volume else None
        image = volume.below("image") if volume else None
        mounts.append(
            Mount(
                path=path,
                claim=claim.text("claimName") if claim else None,
                config_map=config.text("name") if config else None,
                image=image.text("reference") if image else None,
                sub_path=mount.text("subPath"),
                scratch=volume is not None and ("emptyDir" in volume or "ephemeral" in volume),
            )
        )
        if volume is not None:
            for kind in ("emptyDir", "hostPath", "nfs", "csi"):
                if kind in volume:
                    volume.take(kind)
                    why = SHARED if path.endswith("/shm") else _STORAGE
                    draft.lose(f"{volume.path} {name} ({kind} at {path})", why)
    return tuple(mounts)


def _initialized(draft: Draft, pod: Reader) -> Iterator[Mount]:
    """What KServe's init container downloads: its arguments are places and folders by turns. Others are not read."""
    for container in pod.each("initContainers"):
        name = container.text("name") or ""
        words = [str(word) for word in container.items("args")]
        if name != _INITIALIZER or len(words) < 2:
            draft.lose(f"{container.path} {name}".strip(), BEFORE)
            continue
        draft.drop(f"{container.path} {name}: {' '.join(words)}", "spec.model.source")
        for source, path in zip(words[::2], words[1::2], strict=False):
            if not source.startswith("/"):  # a claim of its own, which the engine does not see
                yield Mount(path=path, source=source)


def kserve_place(uri: str | None) -> tuple[Mount, ...]:
    """KServe's place for a model, with what it downloads there; empty where that is not told."""
    return (Mount(path=_PLACE, source=uri, scratch=True),)


def without_uri(draft: Draft, command: Command) -> Command:
    """The command without the variable that asks KServe for a model, which nothing else reads."""
    told = command.environment.get(_URI)
    if told is None or not any(mount.source for mount in command.mounts):
        return command
    draft.drop(said_of(_URI, told), "spec.model.source")
    rest = {name: value for name, value in command.environment.items() if name != _URI}
    return replace(command, environment=rest)


def told_by_kserve(metadata: Reader) -> tuple[Mount, ...]:
    """What KServe notes on pods of its own that it downloads to them."""
    annotations = metadata.peek("annotations")
    uri = annotations.get(_ANNOTATION) if isinstance(annotations, Mapping) else None
    return kserve_place(str(uri)) if uri else ()


def asked_of_kserve(containers: Any) -> str | None:
    """The model that one of several containers asks KServe for."""
    for container in containers if isinstance(containers, list) else ():
        variables = container.get("env") if isinstance(container, Mapping) else None
        for item in variables if isinstance(variables, list) else ():
            if isinstance(item, Mapping) and item.get("name") == _URI and item.get("value"):
                return str(item["value"])
    return None
