"""Why pods of StatefulSets are refused. Their controller says so only in events, where a Deployment has a condition.

Only events of failed creations are watched, of which there are none where all is well. What they said is known for as long as the
cluster keeps them, which is an hour.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from plimsoll.facts.scaler_aims import deployment_of_child
from plimsoll.kube.children import Wake
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import EVENT, STATEFUL_SET
from plimsoll.kube.pace import Pace
from plimsoll.kube.refused import refusal_text
from plimsoll.kube.times import seconds
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import key_of

FIELDS: Final = f"reason=FailedCreate,regarding.kind={STATEFUL_SET.name}"


class _Said(NamedTuple):
    about: str
    """namespace/name of the StatefulSet."""
    text: str
    at: float


class Refusals(Watched):
    def __init__(
        self, door: Door, wake: Wake, *, pace: Pace | None = None, namespaces: Iterable[str] = ()
    ) -> None:
        self._wake = wake
        super().__init__(door, pace, namespaces)
        self._events: dict[str, _Said] = {}
        """What events said, by the event's namespace/name."""
        self._of: dict[str, set[str]] = {}
        """The events of each StatefulSet, both by namespace/name."""

    def start(self) -> None:
        for source in self._watchers.sources(EVENT, fields=FIELDS):
            self._watchers.start(source, _RefusalsSink(self, source.namespace))

    def of(self, about: str, since: float) -> str:
        """What the newest event of a StatefulSet (namespace/name) said since then; empty where there is none."""
        said = [self._events[key] for key in self._of.get(about, ())]
        return max(((one.at, one.text) for one in said if one.at >= since), default=(0.0, ""))[1]

    def put(self, item: Object) -> None:
        key, said = key_of(item), _read_event(item)
        before = self._events.get(key)
        owner = deployment_of_child(said.about.partition("/")[2])
        if owner is None:
            return
        self._events[key] = said
        self._of.setdefault(said.about, set()).add(key)
        if before is None or before.text != said.text:
            self._wake(f"{said.about.partition('/')[0]}/{owner}")

    def forget(self, key: str) -> None:
        """Forgets an event that the cluster has forgotten. That wakes nobody, as it does not mean that pods can be made now."""
        said = self._events.pop(key, None)
        if said is not None:
            self._of[said.about].discard(key)
            if not self._of[said.about]:
                del self._of[said.about]

    def known(self) -> tuple[str, ...]:
        return tuple(self._events)


class _RefusalsSink:
    """The sink of one watcher."""

    def __init__(self, refusals: Refusals, namespace: str) -> None:
        self._refusals = refusals
        self._namespace = namespace

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002 - words are words however they are told
        self._refusals.put(item)

    def remove(self, item: Object) -> None:
        self._refusals.forget(key_of(item))

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        for key in self._refusals.known():
            if self._namespace in ("", key.partition("/")[0]) and key not in keys:
                self._refusals.forget(key)


def _read_event(item: Object) -> _Said:
    about = item.get("regarding") or {}
    times = (
        (item.get("series") or {}).get("lastObservedTime"),
        item.get("deprecatedLastTimestamp"),
        item.get("eventTime"),
        item["metadata"].get("creationTimestamp"),
    )
    return _Said(
        f"{about.get('namespace', '')}/{about.get('name', '')}",
        refusal_text(str(item.get("note") or "")),
        seconds(next(filter(None, times), None)),
    )
