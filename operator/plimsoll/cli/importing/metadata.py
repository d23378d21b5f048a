"""Names, labels and annotations of objects: those that have a place in the resource, and those that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll import names
from plimsoll.cli.importing.draft import Draft
from plimsoll.cli.importing.reader import Reader

_SET = "Plimsoll sets it"
_KSERVE = ("serving.kserve.io/", "internal.serving.kserve.io/")
# What kubectl, the workloads' controllers and the API server write for themselves is nobody's word.
_THEIR_OWN = ("kubectl.kubernetes.io/", "deployment.kubernetes.io/")
_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


def opened(draft: Draft, document: dict[str, Any]) -> tuple[Reader, Reader]:
    """An object's metadata and spec. Its status is nobody's wish."""
    root = Reader(document, "", draft)
    for key in ("apiVersion", "kind", "status"):
        root.take(key)
    metadata, spec = root.below("metadata"), root.below("spec")
    root.leave("only metadata and spec are read")
    return metadata, spec


def write_metadata(draft: Draft, metadata: Reader) -> None:
    """Name, namespace and queue of an object; what else people wrote there is lost."""
    write_name(draft, metadata)
    labels = metadata.below("labels")
    labels.put(names.LABEL_QUEUE, "scheduling.queue")
    leave_metadata(metadata, labels, "it is of the object that was; the resource has metadata of its own")


def write_name(draft: Draft, metadata: Reader) -> None:
    """Name and namespace of an object."""
    name, namespace = metadata.text("name"), metadata.text("namespace")
    if name:
        draft.name(name)
    if namespace:
        draft.metadata["namespace"] = namespace


def write_pod_labels(draft: Draft, metadata: Reader) -> None:
    """Labels and annotations of a pod template, without those that Plimsoll sets."""

    def why_not(name: str) -> str:
        if name.startswith(_KSERVE):
            return "KServe would take the pod for one of its own"
        return _SET if name.startswith(names.OWNED_PREFIXES) or name == "pod-template-hash" else ""

    labels, annotations = metadata.below("labels"), metadata.below("annotations")
    labels.put(names.LABEL_QUEUE, "scheduling.queue")
    _write_each(draft, labels, "podLabels", why_not)
    _write_each(draft, annotations, "podAnnotations", why_not)
    leave_metadata(metadata, labels, "it is of the pods, and Plimsoll writes the pod by itself")


def write_service_labels(draft: Draft, metadata: Reader) -> None:
    """Labels and annotations of a Service. Many an annotation says who may reach it, so all go with it that are not kubectl's."""
    labels, annotations = metadata.below("labels"), metadata.below("annotations")
    _skip_their_own(annotations)
    _write_each(
        draft,
        labels,
        "networking.service.labels",
        lambda name: _SET if name.startswith(names.OWNED_PREFIXES) else "",
    )
    _write_each(
        draft,
        annotations,
        "networking.service.annotations",
        lambda name: _SET if name.startswith(f"{names.GROUP}/") else "",
    )
    leave_metadata(metadata, labels, "Plimsoll writes the Service by itself")


def leave_metadata(metadata: Reader, labels: Reader, why: str) -> None:
    """Say that what nobody took is lost, except for what nobody wrote."""
    annotations = metadata.below("annotations")
    _skip_their_own(annotations)
    for key in _SERVERS:
        metadata.take(key)
    for left in (labels, annotations, metadata):
        left.leave(why)


def _write_each(draft: Draft, told: Reader, path: str, why_not: Callable[[str], str]) -> None:
    for name in sorted(told.names()):
        value = told.text(name) or ""
        what = f"{told.at(name)}: {value}"
        if why := why_not(name):
            draft.lose(what, why)
        else:
            draft.put_group(path, {name: value}, what)


def _skip_their_own(annotations: Reader) -> None:
    for name in annotations.names():
        if name.startswith(_THEIR_OWN):
            annotations.take(name)
