"""A finding, and small functions for reading raw objects that all checks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll import names
from plimsoll.facts.examined import Examined, Object

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    severity: Severity
    """An error keeps something from serving; a warning may."""
    about: str
    """Kind and name of the object, with its namespace where it has one."""
    reason: str
    """A stable word."""
    message: str
    """What is wrong, with what was seen."""
    remedy: str
    """The command or field that cures it; empty where the message says so."""

    def to_dict(self) -> dict[str, str]:
        return {
            "severity": self.severity,
            "about": self.about,
            "reason": self.reason,
            "message": self.message,
            "remedy": self.remedy,
        }


def metadata(item: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = item.get("metadata") or {}
    return found


def labels(item: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = metadata(item).get("labels") or {}
    return found


def name_of(item: Object) -> str:
    return str(metadata(item).get("name", ""))


def key_of(item: Object) -> str:
    """namespace/name."""
    return f"{metadata(item).get('namespace', '')}/{name_of(item)}"


def owner_key(item: Object) -> str:
    """namespace/name of the LLMDeployment that the object belongs to, by its label."""
    return f"{metadata(item).get('namespace', '')}/{labels(item).get(names.LABEL_DEPLOYMENT, '')}"


def about(kind: str, item: Object) -> str:
    return f"{kind} {key_of(item)}" if metadata(item).get("namespace") else f"{kind} {name_of(item)}"


def in_scope(examined: Examined, items: tuple[Object, ...]) -> Iterator[Object]:
    """The objects that belong to a deployment that is asked about."""
    wanted = {key_of(one) for one in examined.deployments}
    return (item for item in items if owner_key(item) in wanted)


def spaces(examined: Examined) -> set[str]:
    """Namespaces of the deployments that are asked about."""
    return {str(metadata(one).get("namespace", "")) for one in examined.deployments}


def conditions(item: Object) -> dict[str, Mapping[str, Any]]:
    found = (item.get("status") or {}).get("conditions") or ()
    return {str(one.get("type")): one for one in found}
