"""Which objects of a deployment's own a set's frozen template names: pods of the set do not start without them, whatever the spec says now.

Secrets are left out, as none is ever made, and so is what each set has of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.objects import Ref

_BY_NAME: Final = {"serviceAccountName": "ServiceAccount", "claimName": "PersistentVolumeClaim"}
_BY_OBJECT: Final = frozenset({"configMap", "configMapRef", "configMapKeyRef"})
NAMED: Final = frozenset({*_BY_NAME.values(), "ConfigMap"})
"""Kinds that a pod's template names."""


def named(part: Any, namespace: str) -> Iterator[Ref]:
    """Those that any part of a template names, wherever: in a volume, in one that is put together of others, in an environment."""
    if isinstance(part, Mapping):
        for field, value in part.items():
            name = value.get("name") if field in _BY_OBJECT and isinstance(value, Mapping) else value
            kind = "ConfigMap" if field in _BY_OBJECT else _BY_NAME.get(field)
            if kind is not None and isinstance(name, str):
                yield Ref("v1", kind, namespace, name)
            else:
                yield from named(value, namespace)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from named(one, namespace)
