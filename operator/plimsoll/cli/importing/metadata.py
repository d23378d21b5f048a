"""Names, labels and annotations of objects: those that have a place in the resource, and those that have none."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll import names
from plimsoll.cli.importing.draft import Draft
from plimsoll.cli.importing.reader import Reader

# What kubectl and the workloads' controllers write for themselves is nobody's word.
_THEIR_OWN = ("kubectl.kubernetes.io/", "deployment.kubernetes.io/")


def write_metadata(draft: Draft, metadata: Reader) -> None:
    """Name and namespace of an object."""
    name, namespace = metadata.text("name"), metadata.text("namespace")
    if name:
        draft.name(name)
    if namespace:
        draft.metadata["namespace"] = namespace


def write_pod_labels(draft: Draft, metadata: Reader) -> None:
    """Labels and annotations of a pod template, without those that Plimsoll sets."""

    def is_set(name: str) -> bool:
        return name.startswith(names.OWNED_PREFIXES) or name == "pod-template-hash"

    _write_each(draft, metadata.below("labels"), "podLabels", is_set)
    _write_each(draft, metadata.below("annotations"), "podAnnotations", is_set)
    metadata.leave("it is of the pods, and Plimsoll writes the pod by itself")


def write_service_labels(draft: Draft, metadata: Reader) -> None:
    """Labels and annotations of a Service. Many an annotation says who may reach it, so all go with it that are not kubectl's."""
    annotations = metadata.below("annotations")
    _skip_their_own(annotations)
    _write_each(
        draft,
        metadata.below("labels"),
        "networking.service.labels",
        lambda name: name.startswith(names.OWNED_PREFIXES),
    )
    _write_each(
        draft,
        annotations,
        "networking.service.annotations",
        lambda name: name.startswith(f"{names.GROUP}/"),
    )


def _write_each(draft: Draft, told: Reader, path: str, is_set: Callable[[str], bool]) -> None:
    for name in sorted(told.names()):
        value = told.text(name) or ""
        what = f"{told.at(name)}: {value}"
        if is_set(name):
            draft.lose(what, "Plimsoll sets it")
        else:
            draft.put_group(path, {name: value}, what)


def _skip_their_own(told: Reader) -> None:
    for name in told.names():
        if name.startswith(_THEIR_OWN):
            told.take(name)
