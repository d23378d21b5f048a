"""Samples by a pod's name to samples of the replicas that live: a name can come again, a UID never does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from plimsoll.control.copying import replace
from plimsoll.control.samples import Window
from plimsoll.facts.histograms import total
from plimsoll.facts.pod_sample import COUNTERS, HISTOGRAMS, PodKey, PodSample

COUNTED: Final = ("running", "waiting", "kv_tokens", *COUNTERS)


def joined(samples: Mapping[PodKey, PodSample], live: Mapping[PodKey, str]) -> tuple[PodSample, ...]:
    """Of the leaders that live, by UID. A sample that names another UID is an earlier pod's of the same name."""
    found = []
    for key in sorted(live):
        sample, uid = samples.get(key), live[key]
        if sample is not None and sample.pod in {uid, key[1]}:
            found.append(sample if sample.pod == uid else replace(sample, pod=uid))
    return tuple(found)


class Wholes:
    """Replicas of several pods that each take requests, from what these say. Of each pod what it, or the one before in its place, counted before
    its engine started anew is carried on, as in the sum of all of them that would not be told from a count of all that the others ever did."""

    def __init__(self) -> None:
        self._places = Window()

    def of(
        self, now: float, samples: tuple[PodSample, ...], several: Sequence[Sequence[str]]
    ) -> tuple[PodSample, ...]:
        """One sample of each replica, by the UID of its first pod. `several` are the UIDs of the pods of each such replica: where one of them is
        silent nothing is known of the replica, as a part of its load is not all of it."""
        placed = {uid: _place(pods[0], rank) for pods in several for rank, uid in enumerate(pods)}
        parts = [replace(each, pod=placed[each.pod]) for each in samples if each.pod in placed]
        self._places = self._places.add(now, parts)
        if not placed:
            return samples
        tracks, heard = self._places.tracks, self._places.scraped
        together = [
            replace(_as_one([tracks[place].samples[-1] for place in places]), pod=pods[0])
            for pods in several
            if heard.issuperset(places := [placed[uid] for uid in pods])
        ]
        return (*(each for each in samples if each.pod not in placed), *together)


def _place(first: str, rank: int) -> str:
    """Names a pod of a replica by the replica's first, so that another one that comes in its place has the same name."""
    return f"{first}/{rank}"


def _as_one(parts: Sequence[PodSample]) -> PodSample:
    """As of one engine with all ranks: counts add up, shares are averaged, and it is as old as the oldest."""
    found: dict[str, Any] = {name: _of(parts, name, sum) for name in COUNTED}
    found |= {name: _of(parts, name, total) for name in HISTOGRAMS}
    share = _of(parts, "kv_fraction", lambda said: sum(said) / len(said))
    return replace(parts[0], at=min(each.at for each in parts), kv_fraction=share, **found)


def _of(parts: Sequence[PodSample], name: str, join: Callable[[list[Any]], Any]) -> Any:
    """One figure of them together; None where one of them does not say it, as missing is not zero."""
    said = [value for each in parts if (value := getattr(each, name)) is not None]
    return join(said) if len(said) == len(parts) else None
