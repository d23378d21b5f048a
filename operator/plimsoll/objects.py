"""A Kubernetes object as data: what identifies it, and its body. What it means is left to those who make and read it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """The identity of an object. It is the same object in every version of its API group."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Bearer(NamedTuple):
    """The resource that has a name now. After a deletion another one may take the name, but a uid is never used twice."""

    uid: str
    born: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The deployment that objects belong to."""

    namespace: str
    name: str
    uid: str = ""
    """Empty where the deployment is in no cluster; its objects then have no owner reference."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object as it should be: every field that we own, and no other field."""

    ref: Ref
    body: Body

    @property
    def digest(self) -> str:
        """Digest of the whole body. Keys are sorted, since the API server returns them sorted, in whatever order they were written."""
        return hashlib.sha256(canonical(self.body).encode()).hexdigest()[:16]


def manifest(body: Body) -> Manifest:
    """A body with its identity read from it."""
    metadata = body["metadata"]
    ref = Ref(body["apiVersion"], body["kind"], metadata.get("namespace", ""), metadata["name"])
    return Manifest(ref, body)


def canonical(body: Body) -> str:
    """The body as text, the same text for equal bodies."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
