"""Names, labels and annotations of objects: those that have a place in the resource, and those that have none."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll import names
from plimsoll.cli.importing.draft import Draft
from plimsoll.cli.importing.reader import Reader

_SET = "Plimsoll sets it"
_KSERVE = ("serving.kserve.io/", "internal.serving.kserve.io/")
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

    def why_not(name: str) -> str:
        if name.startswith(_KSERVE):
            return "KServe would take the pod for one of its own"
        return _SET if name.startswith(names.OWNED_PREFIXES) or name == "pod-template-hash" else ""

    _write_each(draft, metadata.below("labels"), "podLabels", why_not)
    _write_each(draft, metadata.below("annotations"), "podAnnotations", why_not)
    metadata.leave("it is of the pods, and Plimsoll writes the pod by itself")


def write_service_labels(draft: Draft, metadata: Reader) -> None:
    """Labels and annotations of a Service. Many an annotation says who may reach it, so all go with it that are not kubectl's."""
    annotations = metadata.below("annotations")
    _skip_their_own(annotations)
    _write_each(
        draft,
        metadata.below("labels"),
        "networking.service.labels",
        lambda name: _SET if name.startswith(names.OWNED_PREFIXES) else "",
    )
    _write_each(
        draft,
        annotations,
        "networking.service.annotations",
        lambda name: _SET if name.startswith(f"{names.GROUP}/") else "",
    )


def _write_each(draft: Draft, told: Reader, path: str, why_not: Callable[[str], str]) -> None:
    for name in sorted(told.names()):
        value = told.text(name) or ""
        what = f"{told.at(name)}: {value}"
        if why := why_not(name):
            draft.lose(what, why)
        else:
            draft.put_group(path, {name: value}, what)


def _skip_their_own(told: Reader) -> None:
    for name in told.names():
        if name.startswith(_THEIR_OWN):
            told.take(name)
