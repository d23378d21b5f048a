"""Which autoscalers of others target a deployment: HorizontalPodAutoscalers, and KEDA's ScaledObjects where they are served.

They write `spec.replicas` through /scale; whether that is as it should be is told by `status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plimsoll import names
from plimsoll.kube.children import Wake
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import KubeError
from plimsoll.kube.kinds import AUTOSCALER, SCALED_OBJECT, Kind
from plimsoll.kube.pace import Pace
from plimsoll.kube.watchers import Watchers
from plimsoll.kube.watching import key_of


class Scalers:
    def __init__(
        self, door: Door, wake: Wake, *, pace: Pace | None = None, namespaces: Iterable[str] = ()
    ) -> None:
        self._wake = wake
        self._watchers = Watchers(door, pace or Pace(), namespaces)
        self._of: dict[str, set[str]] = {}

    def start(self, served: Iterable[Kind] = ()) -> None:
        for kind in (AUTOSCALER, *(one for one in served if one is SCALED_OBJECT)):
            for source in self._watchers.sources(kind):
                self._watchers.start(source, _Scalers(self, kind.name))

    async def synced(self) -> None:
        await self._watchers.synced()

    async def stop(self) -> None:
        await self._watchers.stop()

    def alive_at(self) -> float:
        return self._watchers.alive_at()

    @property
    def problems(self) -> Mapping[str, KubeError]:
        return self._watchers.problems

    def of(self, owner: str) -> tuple[str, ...]:
        """As "Kind name", those of a deployment (namespace/name)."""
        return tuple(sorted(self._of.get(owner, ())))

    def enter(self, owner: str, scaler: str) -> None:
        known = self._of.setdefault(owner, set())
        if scaler not in known:
            known.add(scaler)
            self._wake(owner)

    def leave(self, owner: str, scaler: str) -> None:
        known = self._of.get(owner, set())
        known.discard(scaler)
        if not known:
            self._of.pop(owner, None)
        self._wake(owner)


class _Scalers:
    """The sink of one watcher."""

    def __init__(self, scalers: Scalers, kind: str) -> None:
        self._scalers = scalers
        self._kind = kind
        self._targets: dict[str, str] = {}
        """The deployment of ours that one (namespace/name) targets."""

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002 - a target is a target however it is told
        key, owner = key_of(item), _target(item)
        before = self._targets.get(key)
        if before == owner:
            return
        if before is not None:
            self._forget(key)
        if owner is not None:
            self._targets[key] = owner
            self._scalers.enter(owner, self._said(key))

    def remove(self, item: Object) -> None:
        self._forget(key_of(item))

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        for key in sorted(self._targets.keys() - keys):
            self._forget(key)

    def _forget(self, key: str) -> None:
        owner = self._targets.pop(key, None)
        if owner is not None:
            self._scalers.leave(owner, self._said(key))

    def _said(self, key: str) -> str:
        return f"{self._kind} {key.partition('/')[2]}"


def _target(item: Object) -> str | None:
    target = (item.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(target.get("apiVersion") or "").partition("/")[0]
    if target.get("kind") != names.KIND or group != names.GROUP:
        return None
    return f"{item['metadata']['namespace']}/{target.get('name')}"
