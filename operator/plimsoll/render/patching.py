"""Applies the user's JSON patches (RFC 6902) to a rendered pod, and checks that they leave alone what they may not change.

Whether the admin allows a patch at all was checked before (`api.trust`). A patch that does not fit the pod is a problem of the spec,
which names the patch by its place in the list.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import Problem, SpecError, show
from plimsoll.api.trust import GUARDED_FIELDS
from plimsoll.api.v1alpha1.pods import PodPatch
from plimsoll.names import (
    LABEL_COMPONENT,
    LABEL_DEPLOYMENT,
    LABEL_GROUP,
    LABEL_INSTANCE,
    LABEL_LEADER,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_ROLE,
    LABEL_SET,
)
from plimsoll.render.templating import images_of

OUR_LABELS: Final = (
    LABEL_COMPONENT, LABEL_DEPLOYMENT, LABEL_GROUP, LABEL_INSTANCE, LABEL_LEADER, LABEL_MANAGED_BY, LABEL_NAME, LABEL_ROLE,
    LABEL_SET,
)  # fmt: skip
ENGINE: Final = "engine"


class _Misfit(ValueError):
    """Why one patch does not fit."""


def patched(pod: dict[str, Any], patches: tuple[PodPatch, ...], config: OperatorConfig) -> dict[str, Any]:
    """The pod with all patches applied in order, in which each container has a name. Raises SpecError with the first that does not fit or goes
    too far."""
    current: Any = copy.deepcopy(pod) if patches else pod
    for number, patch in enumerate(patches):
        try:
            current = _apply(current, patch)
            _check(pod, current, config)
        except _Misfit as misfit:
            raise SpecError(Problem(f"spec.podPatches[{number}]", show(patch.path), str(misfit))) from None
    # Not before the last one, as a later patch may bring the name.
    for number, container in enumerate(current["spec"]["containers"]):
        if not isinstance(container.get("name"), str):
            why = f"leave container {number} without a name; each needs one, as name: sidecar"
            raise SpecError(Problem("spec.podPatches", show(container), why))
    return dict(current)


def _check(before: dict[str, Any], after: Any, config: OperatorConfig) -> None:
    labels = (after.get("metadata") or {}).get("labels")
    spec = after.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if (
        not isinstance(labels, dict)
        or not isinstance(containers, list)
        or not all(isinstance(c, dict) for c in containers)
    ):
        raise _Misfit(
            "leaves no pod: spec.containers and metadata.labels must stay a list and a map of objects"
        )
    for key in OUR_LABELS:
        if labels.get(key) != before["metadata"]["labels"].get(key):
            raise _Misfit(f"changes label {key}, by which Plimsoll knows its pods")
    if [one.get("name") for one in containers].count(ENGINE) != 1:
        raise _Misfit(f"leaves no container {ENGINE}, or two")
    engine = next(one for one in containers if one.get("name") == ENGINE)
    if engine.get("image") != before["spec"]["containers"][0]["image"]:
        raise _Misfit("changes the engine's image; use spec.engine.image, or the admin's engines.versions")
    known = set(images_of(before))
    for image in sorted(set(images_of(after)) - known):
        if not any(fnmatchcase(image, pattern) for pattern in config.trust.images):
            raise _Misfit(f"brings image {image}, which the admin's trust.images does not allow")
    _check_guards(before["spec"]["containers"][0], engine, config)


def _check_guards(before: dict[str, Any], after: dict[str, Any], config: OperatorConfig) -> None:
    """A patch that replaces the parent of a protected field changes the field without naming it, so the fields are compared."""
    allow = config.trust.pod_patches.allow if config.trust.pod_patches is not None else ()
    for field in sorted(GUARDED_FIELDS):
        if before.get(field) != after.get(field) and not any(field in pattern for pattern in allow):
            raise _Misfit(f"changes {field}, which the admin's trust.podPatches must name to allow it")


def _apply(document: Any, patch: PodPatch) -> Any:
    path = list(_steps(patch.path))
    value = None if patch.value is None else json.loads(patch.value)
    *above, last = path
    parent = document
    for step in above:
        parent = _into(parent, step)
    match patch.op:
        case "test":
            if _into(parent, last) != value:
                raise _Misfit(f"finds {show(_into(parent, last))} there instead of {show(value)}")
        case "add":
            _add(parent, last, value)
        case "replace":
            parent[_key(parent, last)] = value
        case "remove":
            del parent[_key(parent, last)]
    return document


def _steps(pointer: str) -> Iterator[str]:
    for part in pointer.split("/")[1:]:
        yield part.replace("~1", "/").replace("~0", "~")


def _into(value: Any, step: str) -> Any:
    return value[_key(value, step)]


def _key(value: Any, step: str) -> Any:
    """The key or index that a step names in something that is there. Raises _Misfit where it names nothing."""
    if isinstance(value, dict):
        if step in value:
            return step
        raise _Misfit(f"finds no {show(step)}; there are {', '.join(sorted(value)) or 'none'}")
    if isinstance(value, list):
        index = _index(step)
        if index < len(value):
            return index
        raise _Misfit(f"finds no entry {step}; the list has {len(value)}")
    raise _Misfit(f"finds a plain value where {show(step)} should be inside")


def _index(step: str) -> int:
    if not step.isascii() or not step.isdigit() or (step[0] == "0" and step != "0"):
        raise _Misfit(f"has {show(step)} where the number of a list's entry must stand")
    return int(step)


def _add(parent: Any, last: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        index = len(parent) if last == "-" else _index(last)
        if index > len(parent):
            raise _Misfit(f"adds entry {index}, but the list has {len(parent)}; - stands for its end")
        parent.insert(index, value)
    else:
        raise _Misfit("finds a plain value where something should be added inside")
