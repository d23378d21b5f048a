"""What a request to the API server asks for, in the words of RBAC: verb, resource, namespace, name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_OF_NAMESPACES: Final = frozenset({"status", "finalize"})
"""Parts of a namespace itself; anything else behind its name is a resource in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. What is no resource, such as /readyz, has its path as resource and its method as verb."""

    verb: str
    resource: str
    """A part of it behind a slash: `deployments/status`."""
    group: str = ""
    namespace: str = ""
    name: str = ""
    manager: str = ""
    """The field manager that it names."""
    dry_run: bool = False

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.verb in WRITES and not self.dry_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which calls are meant; what is empty means any."""

    verbs: Collection[str] = ()
    resources: Collection[str] = ()
    namespace: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("verbs", "resources"):
            if isinstance(getattr(self, field), str):
                raise TypeError(f"{field} is one string; give several, such as {{{getattr(self, field)!r}}}")

    def matches(self, call: Call) -> bool:
        return (
            (not self.verbs or call.verb in self.verbs)
            and (not self.resources or call.resource in self.resources)
            and self.namespace in ("", call.namespace)
            and self.name in ("", call.name)
        )


def read_call(method: str, target: str) -> Call:
    """From the first line of a request."""
    path, _, query = target.partition("?")
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return Call(verb=method.lower(), resource=path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    name = unquote(rest[1]) if len(rest) > 1 else ""
    asked = parse_qs(query) if query else {}
    return Call(
        verb=_verb(method, bool(name), asked.get("watch", ["false"])[0] in ("true", "1")),
        resource="/".join([rest[0], *rest[2:]]),
        group=group,
        namespace=rest[1] if rest[0] == "namespaces" and len(rest) > 1 else namespace,
        name=name,
        manager=asked.get("fieldManager", [""])[0],
        dry_run="dryRun" in asked,
    )


def _verb(method: str, named: bool, watch: bool) -> str:
    if method in ("GET", "HEAD"):
        return "watch" if watch else "get" if named else "list"
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    return _VERBS.get(method, method.lower())
