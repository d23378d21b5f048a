"""The ConfigMap in the operator's namespace that keeps what was learned, and one of an admin's beside it that is only read.

Of the operator's pods only the leading one writes it. A person may remove entries or all of it, which shows in its version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import NotFound
from plimsoll.kube.kinds import CONFIG_MAP

MANAGER: Final = names.MANAGER_CHILDREN


@dataclass(frozen=True, slots=True)
class Stored:
    text: str | None
    """None where there is no such object, or it has no text."""
    version: str = ""
    """Of which object, and which version of it. Without the former an apply would make again what a person has removed since."""


class LearnedStore:
    def __init__(self, door: Door, namespace: str) -> None:
        self._door = door
        self._namespace = namespace

    async def read(self) -> Stored:
        return await self._read(names.LEARNED)

    async def read_seed(self) -> Stored:
        return await self._read(names.LEARNED_SEED)

    async def write(self, text: str, version: str) -> str:
        """Writes the text and returns its new version. Raises Conflict where somebody else has written since `version`, which is empty where
        there was no object."""
        metadata: Object = {
            "name": names.LEARNED,
            "namespace": self._namespace,
            "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
        }
        body: Object = {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.name,
            "metadata": metadata,
            "data": {names.LEARNED_KEY: text},
        }
        if version:
            metadata["uid"], metadata["resourceVersion"] = version.split()
            path = CONFIG_MAP.path(self._namespace, names.LEARNED)
            written = await self._door.apply(path, body, manager=MANAGER)
        else:
            written = await self._door.create(CONFIG_MAP.collection(self._namespace), body, manager=MANAGER)
        return _version(written)

    async def _read(self, name: str) -> Stored:
        try:
            found = await self._door.get(CONFIG_MAP.path(self._namespace, name))
        except NotFound:
            return Stored(None)
        text = (found.get("data") or {}).get(names.LEARNED_KEY)
        return Stored(text if isinstance(text, str) else None, _version(found))


def _version(item: Object) -> str:
    return f"{item['metadata']['uid']} {item['metadata']['resourceVersion']}"
