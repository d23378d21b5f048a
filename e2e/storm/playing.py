"""A story played: each burst of steps, rest, judgement; and the shortest story of those that break in the same way."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cluster import Cluster
from rights import beyond
from storm.ground import ground
from storm.judging import gone, healed, judged, rendered, rests
from storm.steps import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    story: Story
    faults: tuple[str, ...]
    burst: int
    """After which one it was found; as many as there are: once all was put in order again."""
    seconds: float
    log: str = ""
    """Of the operators; only of a story that broke."""


def play(cluster: Cluster, story: Story) -> Outcome:
    began, since = time.monotonic(), cluster.audit.mark()
    with tempfile.TemporaryDirectory(prefix="storm-") as name, ground(cluster, Path(name), story) as place:
        folder, faults, at = Path(name), list[str](), 0
        for at, burst in enumerate((*story.bursts, ())):
            for step in burst:
                place.perform(step)
            place.calm()
            last = at == len(story.bursts)
            if last:
                place.heal()
            faults = rests(place) or judged(place)
            if last and not faults:
                faults = [*healed(place, tight=story.tight), *rendered(place, folder)] or gone(place)
            faults += [f"the operator has no right to {right}" for right in beyond(cluster, since)]
            if faults:
                break
        log = place.log() if faults else ""
    return Outcome(story=story, faults=tuple(faults), burst=at, seconds=time.monotonic() - began, log=log)


def shrunk(cluster: Cluster, broken: Outcome, *, most: int = 40) -> Outcome:
    """Steps are left out while it still breaks: halves first, then smaller parts."""
    bursts = broken.story.bursts[: broken.burst + 1]
    best = replace(broken, story=replace(broken.story, bursts=bursts))
    tried, size = 0, max(1, best.story.steps // 2)
    while tried < most:
        shorter = None
        for story in _without(best.story, size):
            tried += 1
            found = play(cluster, story)
            if found.faults:
                shorter = found
                break
            if tried >= most:
                break
        if shorter is not None:
            best = shorter
        elif size == 1:
            break
        size = max(1, min(size, best.story.steps) // (1 if shorter is not None else 2))
    return best


def _without(story: Story, size: int) -> Iterator[Story]:
    """The story without each so many steps that stand together."""
    for first in range(0, story.steps, size):
        number, bursts = 0, []
        for burst in story.bursts:
            kept = tuple(
                step for place, step in enumerate(burst, number) if not first <= place < first + size
            )
            number += len(burst)
            if kept:
                bursts.append(kept)
        yield replace(story, bursts=tuple(bursts))
