"""The deployments that there are, as the API server told them last: packed, since ten thousand of them are kept.

A resource is read again from its bytes when a turn needs it, which is rare; unpacked it would take ten times the room.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.kube.times import seconds
from plimsoll.objects import Bearer

UNREAD: Final = ("managedFields", "selfLink")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class _Packed(NamedTuple):
    bearer: Bearer
    version: int
    mark: int
    """Hash of everything but the status, which we write ourselves."""
    body: bytes
    told: int = 0
    """The version in which our own last status stands. What is told of an older one has a status from before."""


class Resources:
    def __init__(self) -> None:
        self._packed: dict[str, _Packed] = {}

    def put(self, key: str, body: Mapping[str, Any]) -> bool:
        """Keep a resource; returns whether anything but its status is new. Nothing is, where a list tells again what is known, as each list
        does of nearly all; nor where something is told late of an earlier resource of the same name."""
        known, version = self._packed.get(key), int(body["metadata"]["resourceVersion"])
        if known is not None and (known.bearer.uid, known.version) == (body["metadata"]["uid"], version):
            return False
        metadata = {name: value for name, value in body["metadata"].items() if name not in UNREAD}
        annotations = metadata.get("annotations")
        if annotations and LAST_APPLIED in annotations:
            metadata["annotations"] = {k: v for k, v in annotations.items() if k != LAST_APPLIED}
        kept = {**body, "metadata": metadata}
        about = {name: value for name, value in metadata.items() if name != "resourceVersion"}
        mark = hash(json.dumps([about, body.get("spec")], sort_keys=True))
        bearer = Bearer(metadata["uid"], seconds(metadata.get("creationTimestamp")))
        if known is not None and known.bearer.uid != bearer.uid and known.version > version:
            return False
        told = known.told if known is not None and known.bearer.uid == bearer.uid else 0
        if version < told:
            kept["status"] = (self.get(key) or {}).get("status") or {}
        self._packed[key] = _Packed(bearer, version, mark, _pack(kept), told)
        return known is None or known.mark != mark or known.bearer.uid != bearer.uid

    def put_status(self, key: str, status: Mapping[str, Any], *, uid: str | None, version: int) -> None:
        """Keep a status that we have just written to the resource of this uid, which has it in this version, before the watch tells of it.
        Another resource that has the name by now has a status of its own."""
        known, body = self._packed.get(key), self.get(key)
        if known is not None and body is not None and known.bearer.uid == uid:
            told = max(known.told, version)
            self._packed[key] = known._replace(body=_pack({**body, "status": status}), told=told)

    def remove(self, key: str, *, uid: str | None) -> None:
        """Forget the resource with this uid; another one that has its name by now stays."""
        known = self._packed.get(key)
        if known is not None and known.bearer.uid == uid:
            del self._packed[key]

    def restored(self, key: str, version: int) -> None:
        """Versions have gone back, as after the server's data were restored: now it has this one, 0 where it is gone. Whatever is told of it
        from now on is newer than what is known, unless that has been told already."""
        known, body = self._packed.get(key), self.get(key)
        if known is not None and body is not None:
            body["metadata"]["resourceVersion"] = "0"
            version = version if known.version == version else 0
            self._packed[key] = known._replace(version=version, body=_pack(body), told=0)

    def bearer(self, key: str) -> Bearer | None:
        packed = self._packed.get(key)
        return None if packed is None else packed.bearer

    def mark(self, key: str) -> int | None:
        """Changes when anything but the status changes."""
        packed = self._packed.get(key)
        return None if packed is None else packed.mark

    def version(self, key: str) -> int | None:
        """The newest that was told."""
        packed = self._packed.get(key)
        return None if packed is None else packed.version

    def versions(self) -> list[tuple[str, str, int]]:
        """Key, uid and version of each."""
        return [(key, one.bearer.uid, one.version) for key, one in self._packed.items()]

    def get(self, key: str) -> dict[str, Any] | None:
        packed = self._packed.get(key)
        if packed is None:
            return None
        body: dict[str, Any] = json.loads(zlib.decompress(packed.body))
        return body

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._packed))

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __len__(self) -> int:
        return len(self._packed)


def _pack(body: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 1)
