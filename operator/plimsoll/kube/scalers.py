"""Which autoscalers that are not Plimsoll's target a deployment: HorizontalPodAutoscalers, and KEDA's ScaledObjects where they are served.

They write `spec.replicas` through /scale. Whether that is a problem is decided in `status`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from plimsoll.facts.scaler_aims import Aim, aim_of
from plimsoll.kube.children import Wake
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import AUTOSCALER, SCALED_OBJECT, Kind
from plimsoll.kube.pace import Pace
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import key_of


class Scalers(Watched):
    def __init__(
        self, door: Door, wake: Wake, *, pace: Pace | None = None, namespaces: Iterable[str] = ()
    ) -> None:
        self._wake = wake
        super().__init__(door, pace, namespaces)
        self._of: dict[str, set[Aim]] = {}

    def start(self, served: Iterable[Kind] = ()) -> None:
        for kind in (AUTOSCALER, *(one for one in served if one is SCALED_OBJECT)):
            for source in self._watchers.sources(kind):
                self._watchers.start(source, _ScalersSink(self, kind.name))

    def of(self, owner: str) -> tuple[str, ...]:
        """Kind and name of the autoscalers that scale a deployment (namespace/name) itself."""
        return tuple(sorted(aim.said for aim in self._of.get(owner, ()) if not aim.child))

    def on_children(self, owner: str, children: Collection[str]) -> tuple[str, ...]:
        """Kind and name of the autoscalers that scale one of these children of a deployment."""
        return tuple(sorted(aim.said for aim in self._of.get(owner, ()) if aim.child in children))

    def enter(self, aim: Aim) -> None:
        known = self._of.setdefault(aim.owner, set())
        if aim not in known:
            known.add(aim)
            self._wake(aim.owner)

    def leave(self, aim: Aim) -> None:
        known = self._of.get(aim.owner, set())
        known.discard(aim)
        if not known:
            self._of.pop(aim.owner, None)
        self._wake(aim.owner)


class _ScalersSink:
    """The sink of one watcher."""

    def __init__(self, scalers: Scalers, kind: str) -> None:
        self._scalers = scalers
        self._kind = kind
        self._aims: dict[str, Aim] = {}
        """What of ours each autoscaler scales, by the autoscaler's namespace/name."""

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002 - a target is a target however it is told
        key, aim = key_of(item), aim_of(self._kind, item)
        before = self._aims.get(key)
        if before == aim:
            return
        if before is not None:
            self._forget(key)
        if aim is not None:
            self._aims[key] = aim
            self._scalers.enter(aim)

    def remove(self, item: Object) -> None:
        self._forget(key_of(item))

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        for key in sorted(self._aims.keys() - keys):
            self._forget(key)

    def _forget(self, key: str) -> None:
        aim = self._aims.pop(key, None)
        if aim is not None:
            self._scalers.leave(aim)
