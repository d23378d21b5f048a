"""A short memory of scrapes, whose counters never fall.

An engine that restarts begins to count at zero again; the window carries on from what it had counted before, so that any
two samples of a counter can be subtracted. Which replicas are alive, and what the samples of many of them amount to, is
`signals`' work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from operator import attrgetter
from typing import Final

from plimsoll.control.copying import replace
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import COUNTERS, HISTOGRAMS, PodSample
from plimsoll.values import light

KEPT_S: Final = 330.0
"""How long samples are kept: five minutes, which latencies look back, and two scrapes more, so that samples span them."""
BEGUN_SHARE: Final = 0.5
"""A counter that falls below this share of itself has begun anew, as its engine has."""
OLDER_S: Final = 60.0
"""How far one Prometheus of a pair is behind the other at most: a counter that is lower for longer has begun anew."""
AT: Final = attrgetter("at")
COUNTS: Final = attrgetter(*COUNTERS)
_SHAPES: Final = attrgetter(*HISTOGRAMS)
_NO_SHAPES: Final = (None,) * len(HISTOGRAMS)
Peak = tuple[float, float]
"""When, and how many were in flight."""


@light
@dataclass(frozen=True, slots=True)
class Track:
    """One pod's samples, oldest first, with counters that never fall."""

    samples: tuple[PodSample, ...]
    last: PodSample
    """The newest sample as scraped; a counter that it does not hold is filled in from the one before."""
    carried: PodSample | None = None
    """What was counted before the last restart of the engine, which is added to what it counts since."""
    peaks: tuple[Peak, ...] = ()
    """Samples that no later one has reached in requests in flight. So the most since any moment is the first of these after it."""
    ends: tuple[PodSample, ...] = ()
    """The last sample of each engine that was followed by another one: what was in flight then was lost."""

    @classmethod
    def begun(cls, sample: PodSample) -> Track:
        return cls((sample,), sample, peaks=_higher((), sample))

    def add(self, sample: PodSample) -> Track:
        if sample.at <= self.last.at:
            return self
        fallen = _fallen(self.last, sample)
        if fallen is Fallen.A_LITTLE and sample.at - self.last.at < OLDER_S:
            return self
        restarted = fallen is not Fallen.NOT
        carried, ends = self.carried, self.ends
        if restarted:
            carried = _last_said(self.samples)
            ended = _last_counted(self.samples)
            ends = *[end for end in ends if sample.at - KEPT_S < end.at < ended.at], ended
        last = sample if restarted or None not in COUNTS(sample) else _filled(sample, self.last)
        mended = sample if carried is None else _on_top(sample, carried)
        kept = self.samples
        if len(kept) > 1 and kept[1].at <= sample.at - KEPT_S:
            # The newest of those that are older stays, so that samples span five minutes however far they are apart.
            kept = kept[bisect_right(kept, sample.at - KEPT_S, key=AT) - 1 :]
        return Track((*kept, mended), last, carried, _higher(self.peaks, sample), ends)


@dataclass(frozen=True, slots=True)
class Window:
    """The last minutes of every pod that was seen in them."""

    tracks: Mapping[str, Track] = field(default_factory=dict)
    scraped: frozenset[str] = frozenset()
    """Pods of which the last scrape had a sample, of whatever time."""

    def add(self, now: float, samples: Iterable[PodSample]) -> Window:
        """The window with one more scrape. Pods that have not been seen for a whole window are forgotten, and so is what was noted with a time
        that is still to come, as a clock was put back since."""
        tracks = {pod: track for pod, track in self.tracks.items() if abs(now - track.last.at) < KEPT_S}
        scraped = set()
        for sample in samples:
            scraped.add(sample.pod)
            known = tracks.get(sample.pod)
            tracks[sample.pod] = known.add(sample) if known is not None else Track.begun(sample)
        return Window(tracks, frozenset(scraped))


def _higher(peaks: tuple[Peak, ...], sample: PodSample) -> tuple[Peak, ...]:
    """The peaks with one more sample, where that says how many are in flight. An unknown queue is not an empty one."""
    if sample.running is None or sample.waiting is None:
        return peaks
    held = sample.running + sample.waiting
    until = len(peaks)
    while until and peaks[until - 1][1] <= held:
        until -= 1
    return *[peak for peak in peaks[:until] if peak[0] > sample.at - KEPT_S], (sample.at, held)


class Fallen(Enum):
    NOT = 0
    A_LITTLE = 1
    """The answer may be an older one, of the other Prometheus of a pair; or the engine restarted when it had counted hardly anything."""
    TO_THE_BEGINNING = 2
    """The engine has restarted, which sets all counters back. It is told by the largest: one that has just begun to count falls by more than
    half in an answer that is a few seconds older."""


def _fallen(before: PodSample, after: PodSample) -> Fallen:
    fallen, largest, begun = Fallen.NOT, 0.0, False
    counts: Iterator[tuple[float | None, float | None]] = zip(COUNTS(before), COUNTS(after), strict=True)
    if (shapes := _SHAPES(after)) != _NO_SHAPES:
        counts = chain(counts, zip(map(_count, _SHAPES(before)), map(_count, shapes), strict=True))
    for old, new in counts:
        if old is None or new is None:
            continue
        if new < old:
            fallen = Fallen.A_LITTLE
        if old > largest:
            largest, begun = old, new < BEGUN_SHARE * old
    return Fallen.TO_THE_BEGINNING if begun else fallen


def _count(shape: Histogram | None) -> float | None:
    return None if shape is None else shape.count


def _filled(sample: PodSample, before: PodSample) -> PodSample:
    """The sample with counters that it does not hold taken from the one before."""
    missing = {
        name: old
        for name in COUNTERS
        if getattr(sample, name) is None and (old := getattr(before, name)) is not None
    }
    return replace(sample, **missing) if missing else sample


def _last_said(samples: Sequence[PodSample]) -> PodSample:
    """The last sample, with each counter at its last known value."""
    said = samples[-1]
    for before in reversed(samples[:-1]):
        if None not in COUNTS(said):
            break
        said = _filled(said, before)
    return said


def _last_counted(samples: Sequence[PodSample]) -> PodSample:
    """The last sample that counts what has finished: one without it may be of the next engine, where nothing has finished yet."""
    return next((sample for sample in reversed(samples) if sample.finished is not None), samples[-1])


def _on_top(sample: PodSample, carried: PodSample) -> PodSample:
    """The sample with what was counted before the restart added to each of its counters and histograms."""
    changed: dict[str, float | Histogram] = {}
    for name in COUNTERS:
        new, old = getattr(sample, name), getattr(carried, name)
        if new is not None and old is not None:
            changed[name] = new + old
    for name in HISTOGRAMS:
        new, old = getattr(sample, name), getattr(carried, name)
        if new is not None and old is not None:
            changed[name] = new.plus(old)
    return replace(sample, **changed)  # type: ignore[arg-type]
