"""Which deployment or object of ours an autoscaler of somebody else targets, read from the autoscaler's object alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names

_CHILD: Final = re.compile(
    rf"(.+)-[0-9a-f]{{{names.SET_HASH_LENGTH}}}(?:-[0-9]{{1,{names.REPLICA_DIGITS}}}(?:-w)?)?"
)
_MAKES_PODS: Final = frozenset({"Deployment", "StatefulSet", "LeaderWorkerSet"})


@dataclass(frozen=True, slots=True)
class Aim:
    """What an autoscaler targets."""

    owner: str
    """namespace/name of the deployment. Where one of its objects is targeted, it is taken from the object's name, and may not exist."""
    said: str
    """The autoscaler as "Kind name", with its target where that is not the deployment itself."""
    child: str = ""
    """Name of the object that is targeted in place of the deployment; empty where it is the deployment."""


def aim_of(kind: str, item: Mapping[str, Any]) -> Aim | None:
    """What an autoscaler targets; None where it is nothing of ours, and for an autoscaler that another one made for itself, as KEDA does."""
    metadata = item["metadata"]
    if any(one.get("kind") == "ScaledObject" for one in metadata.get("ownerReferences") or ()):
        return None
    target = (item.get("spec") or {}).get("scaleTargetRef") or {}
    name, aimed = str(target.get("name") or ""), target.get("kind") or "Deployment"
    said, namespace = f"{kind} {metadata['name']}", metadata.get("namespace", "")
    if aimed == names.KIND and str(target.get("apiVersion") or "").partition("/")[0] == names.GROUP:
        return Aim(f"{namespace}/{name}", said)
    owner = deployment_of_child(name) if aimed in _MAKES_PODS else None
    return None if owner is None else Aim(f"{namespace}/{owner}", f"{said} on {aimed} {name}", name)


def deployment_of_child(name: str) -> str | None:
    """The deployment that an object of this name would belong to. Others may have given one of theirs such a name too."""
    child = _CHILD.fullmatch(name)
    return None if child is None else child[1]
