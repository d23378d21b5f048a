"""Which events tell of which objects, and when they last did. The API server keeps them for an hour, and names come again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from plimsoll.facts.examined import Examined, Object
from plimsoll.kube.times import seconds
from plimsoll.status.doctor.found import key_of, metadata


def events_of(
    examined: Examined, items: Iterable[Object], reasons: Collection[str]
) -> Iterator[tuple[Object, Object]]:
    """Each object with each event about it that has one of these reasons. One about an earlier object of the same name is none about it."""
    told: dict[tuple[str, str], list[Object]] = {}
    for event in examined.events:
        one = event.get("involvedObject") or {}
        if event.get("reason") in reasons:
            told.setdefault((str(one.get("kind")), f"{one.get('namespace')}/{one.get('name')}"), []).append(
                event
            )
    for item in items:
        mine = metadata(item).get("uid")
        for event in told.get((str(item.get("kind")), key_of(item)), ()):
            theirs = event["involvedObject"].get("uid")
            if not mine or not theirs or mine == theirs:
                yield item, event


def last_told(event: Object) -> float:
    """When it was last so; an event that repeats is kept once, with the time of the last."""
    series = event.get("series") or {}
    times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"))
    return max(map(seconds, times))
