"""What is mounted in the engine's container, and what KServe downloads to it before the engine starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.cli.importing.command import Command
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.environment import said_of
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.sources import Mount

SHARED: Final = "Plimsoll sizes shared memory by the layout"
BEFORE: Final = "only the engine's container is read; spec.storage says where weights come from"
_STORAGE = "spec.storage says where weights and caches live"
_FILES = "mount files by podPatches"
_UNSEEN = "the engine's container does not mount it"
_READ: Mapping[str, str] = {"persistentVolumeClaim": "claimName", "configMap": "name", "image": "reference"}
"""Kinds of volumes that something can be read from, with the key that names what it is read from."""

_PLACE: Final = "/mnt/models"
"""Where KServe puts a model, and what it tells the engine."""
_URI: Final = "STORAGE_URI"
"""The variable by which a container of one's own asks KServe for a model."""
_ANNOTATION: Final = "internal.serving.kserve.io/storage-initializer-sourceuri"
"""On pods that KServe makes: the model that it downloads once there is such a pod."""
_INITIALIZER = "storage-initializer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volumes:
    """The volumes of a pod and their mounts in the engine's container."""

    mounts: tuple[Mount, ...]
    """With those to which something is downloaded."""
    placed: tuple[tuple[str, Reader, Mount], ...]
    """The mounts that the container lists, by the names of their volumes."""
    volumes: Mapping[str, Reader]

    def leave(self, draft: Draft) -> None:
        """Once the command is read: say that a volume which nothing was read from is lost, and of the others what has no field."""
        for name, told, mount in self.placed:
            volume = self.volumes.get(name)
            kind, why = _kind(volume), _why(volume, mount.path)
            if not mount.used:
                where = f"{mount.path}, subPath {mount.sub_path}" if mount.sub_path else mount.path
                draft.lose(f"{volume.path if volume else told.path} {name} ({kind} at {where})", why)
            told.leave("Plimsoll mounts volumes by itself" if mount.used else why)
        for name, volume in self.volumes.items():
            places = [mount for of, _, mount in self.placed if of == name]
            if not places:
                draft.lose(f"{volume.path} {name} ({_kind(volume)})", _UNSEEN)
            why = _why(volume, places[0].path) if places else _UNSEEN
            self._leave_inside(volume, why, used=any(mount.used for mount in places))

    @staticmethod
    def _leave_inside(volume: Reader, why: str, *, used: bool) -> None:
        for kind in volume.names():
            if volume.peek(kind) == {}:
                volume.take(kind)
            elif used and kind in _READ:
                inside = volume.below(kind)
                inside.take(_READ[kind])
                inside.leave(why)
        volume.leave(why)


def read_volumes(draft: Draft, pod: Reader, container: Reader) -> Volumes:
    """The volumes of a pod, and where the container has them."""
    volumes = {str(volume.take("name")): volume for volume in pod.each("volumes")}
    downloaded = tuple(_initialized(draft, pod))
    placed = []
    for mount in container.each("volumeMounts"):
        name = str(mount.take("name"))
        volume = volumes.get(name)
        placed.append(
            (
                name,
                mount,
                Mount(
                    path=mount.text("mountPath") or "/",
                    sub_path=mount.text("subPath"),
                    claim=_said(volume, "persistentVolumeClaim"),
                    config_map=_said(volume, "configMap"),
                    image=_said(volume, "image"),
                    scratch=volume is not None and ("emptyDir" in volume or "ephemeral" in volume),
                ),
            )
        )
    return Volumes(
        mounts=(*downloaded, *(mount for _, _, mount in placed)), placed=tuple(placed), volumes=volumes
    )


def _said(volume: Reader | None, kind: str) -> str | None:
    """What a volume of this kind names, which is left there: a volume may be mounted at several places."""
    if volume is None or kind not in volume:
        return None
    return Reader(volume.peek(kind), volume.at(kind), volume.draft).text(_READ[kind])


def _kind(volume: Reader | None) -> str:
    names = volume.names() if volume is not None else ()
    return names[0] if names else "volume"


def _why(volume: Reader | None, path: str) -> str:
    if path.endswith("/shm"):
        return SHARED
    return _FILES if _kind(volume) in ("secret", "configMap", "projected", "downwardAPI") else _STORAGE


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


def kserve_places(holder: Reader) -> dict[str, Mount]:
    """All that KServe is to download, each to a place of its own, as storageUris lists it; by how messages show it."""
    found = {}
    for told in holder.each("storageUris"):
        uri, path = told.text("uri"), told.text("mountPath") or _PLACE
        if uri is None:
            raise ImportProblem(f"{told.at('uri')}: is missing; it says what is downloaded to {path}")
        told.leave("KServe reads it alone")
        found[f"{told.path}: {uri} at {path}"] = Mount(path=path, source=uri, scratch=True)
    return found


def leave_places(draft: Draft, places: Mapping[str, Mount]) -> None:
    """Once the command is read: say what was read of what KServe downloads."""
    for what, place in places.items():
        if place.used:
            draft.drop(what, "the sources of what lies there")
        else:
            draft.lose(what, "the engine is told of nothing that lies there")


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
