"""The workload variant autoscaler's two analyzers: spare capacity with steps of one (`wva1`), and counted tokens (`wva2`).

The first holds while replicas are on their way. The second counts those as if they served, and sizes its steps, up and down, from
the tokens that are missing or spare. Both look first when they have run for one interval, as they would with an interval of
metrics from before they began. What the llm-d scheduler holds back is not among what the second counts, nor is it there.

Both only say a number, which an HPA follows (`Followed`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, inf
from statistics import mean, median
from typing import Final

from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.planning.ask.values import counted
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.policies.kubernetes import TOLERANCE, Behaviour
from plimsoll.simulate.steps import Limits

EVERY_S: Final = 60.0
PEAK_S: Final = 60.0
LENGTHS_S: Final = 300.0
KV_FULL: Final = 0.80
QUEUE_FULL: Final = 5.0
SPARE_KV: Final = 0.10
SPARE_QUEUE: Final = 3.0
GAP: Final = 0.15
"""Between the share at which replicas are added and the one below which they go."""
WINDOW_S: Final = 240.0
"""The HPA's, before it lets replicas go."""
HELD: Final = 10
"""Queues of which it is remembered how many tokens were in use meanwhile."""


class Peaks:
    """The highest of the last minute, by replica."""

    def __init__(self) -> None:
        self._seen: deque[PodSample] = deque()

    def of(self, view: View) -> dict[str, tuple[float, float]]:
        self._seen.extend(view.arrived)
        while self._seen and self._seen[0].at < view.now - PEAK_S - 20:
            self._seen.popleft()
        live = {one.id for one in view.ready}
        found: dict[str, tuple[float, float]] = {}
        for sample in self._seen:
            if sample.pod in live:
                kv, waiting = found.get(sample.pod, (0.0, 0.0))
                found[sample.pod] = max(kv, sample.kv_fraction or 0.0), max(waiting, sample.waiting or 0.0)
        return found


class Wva1:
    name = "wva1"
    histograms = False

    def __init__(self, kv_full: float = KV_FULL, queue_full: float = QUEUE_FULL) -> None:
        self.kv_full, self.queue_full = kv_full, queue_full
        self.settings: Mapping[str, float] = {
            "kv_full": kv_full,
            "queue_full": queue_full,
            "spare_kv": SPARE_KV,
            "spare_queue": SPARE_QUEUE,
            "every_s": EVERY_S,
        }
        self._peaks = Peaks()
        self._next = EVERY_S

    def decide(self, view: View) -> Wish | None:
        peaks = list(self._peaks.of(view).values())
        if view.now < self._next or not peaks:
            return None
        self._next = view.now + EVERY_S
        return self._looked(view, peaks) or _enough(view)

    def _looked(self, view: View, peaks: Sequence[tuple[float, float]]) -> Wish | None:
        free = [(kv, waiting) for kv, waiting in peaks if kv < self.kv_full and waiting < self.queue_full]
        spare_kv, spare_queue = self._spare(free)
        if not free or spare_kv < SPARE_KV or spare_queue < SPARE_QUEUE:
            if view.pending:
                return None
            return Wish(
                min(view.told + 1, view.most),
                "Saturated",
                f"not full: {len(free)} of {len(peaks)}; spare KV {spare_kv:.2f}, queue {spare_queue:.1f}",
            )
        count = len(peaks)
        if count < 2 or view.told <= view.least or view.pending:
            return None
        spread = [(kv * count / (count - 1), waiting * count / (count - 1)) for kv, waiting in peaks]
        left_kv, left_queue = self._spare(spread)
        if left_kv < SPARE_KV or left_queue < SPARE_QUEUE:
            return None
        return Wish(
            view.told - 1,
            "Spare",
            f"over {counted(count - 1, 'replica')} {left_kv:.2f} of the cache would be spare",
        )

    def _spare(self, peaks: Sequence[tuple[float, float]]) -> tuple[float, float]:
        if not peaks:
            return 0.0, 0.0
        kv = sum(self.kv_full - each for each, _ in peaks) / len(peaks)
        return kv, sum(self.queue_full - each for _, each in peaks) / len(peaks)


def _enough(view: View) -> Wish:
    return Wish(view.told, "Enough", "neither more nor fewer are wanted")


class Lengths:
    """Mean prompt and answer of the requests that each replica ended in the last five minutes."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[PodSample]] = {}

    def hear(self, view: View) -> None:
        for sample in view.arrived:
            seen = self._seen.setdefault(sample.pod, deque())
            if seen and (sample.finished or 0.0) < (seen[-1].finished or 0.0):
                seen.clear()  # it began anew
            seen.append(sample)
            while seen[0].at < view.now - LENGTHS_S:
                seen.popleft()

    def of(self, pod: str) -> tuple[float, float]:
        new, old = self._seen[pod][-1], self._seen[pod][0]
        return _mean(new.prompt_lengths, old.prompt_lengths), _mean(new.output_lengths, old.output_lengths)


def _mean(new: Histogram | None, old: Histogram | None) -> float:
    return (new.minus(old).mean or 0.0) if new is not None and old is not None else 0.0


class Wva2:
    name = "wva2"
    histograms = True

    def __init__(self, limits: Limits, up: float = 0.85, gap: float = GAP) -> None:
        self.limits = limits
        self.up = up
        self.down = up - gap
        self.settings: Mapping[str, float] = {
            "up": up,
            "gap": gap,
            "down": self.down,
            "kv_full": KV_FULL,
            "queue_full": QUEUE_FULL,
            "every_s": EVERY_S,
        }
        self._next = EVERY_S
        self._peaks, self._lengths = Peaks(), Lengths()
        self._held: deque[float] = deque(maxlen=HELD)

    def decide(self, view: View) -> Wish | None:
        peaks = self._peaks.of(view)
        self._lengths.hear(view)
        if view.now < self._next:
            return None
        samples = [one for one in view.samples() if one.kv_tokens and one.pod in peaks]
        if not samples:
            return None
        self._next = view.now + EVERY_S
        return self._looked(view, samples, peaks) or _enough(view)

    def _looked(
        self, view: View, samples: Sequence[PodSample], peaks: Mapping[str, tuple[float, float]]
    ) -> Wish | None:
        demand, holds = 0.0, []
        for sample in samples:
            kv, waiting = peaks[sample.pod]
            tokens = sample.kv_tokens or 0
            given, asked = self._lengths.of(sample.pod)
            demand += kv * tokens + waiting * given
            holds.append(min(KV_FULL * tokens, self._computes(kv * tokens, waiting, given, asked)))
        each = median(holds)
        short = demand / self.up - view.present * each
        spare = len(view.ready) * each - demand / self.down
        if short > 0:
            return Wish(
                min(view.present + ceil(short / each), view.most),
                "TokensShort",
                f"{demand:,.0f} tokens wanted of {view.present * each:,.0f}, above {self.up:.0%}",
            )
        if spare >= each:
            return Wish(
                max(view.present - floor(spare / each), view.least, 1),
                "TokensSpare",
                f"{demand:,.0f} tokens wanted of {len(view.ready) * each:,.0f}, below {self.down:.0%}",
            )
        return None

    def _computes(self, used: float, waiting: float, given: float, asked: float) -> float:
        """Tokens that a replica is taken to have the speed for: as many as it holds while a queue says that it has no more, else as many as
        there were then, else as follows from its settings and the lengths."""
        if waiting >= QUEUE_FULL and used > 0:
            self._held.append(used)
            return used
        if self._held:
            return mean(self._held)
        if asked <= 0:
            return inf
        limits = self.limits
        at_once = min(limits.max_num_batched_tokens * asked / (given + asked), limits.max_num_seqs)
        return at_once * (given + asked / 2)


class Followed:
    """A number that was said, and the HPA behind it. It adds at once, as in WVA's samples, which keeps most; it lets go what the largest
    number of the last four minutes does not ask for, as in WVA's chart. That waits as long before it adds, too."""

    def __init__(self, rule: Wva1 | Wva2) -> None:
        self.name, self.histograms = rule.name, rule.histograms
        self.settings: Mapping[str, float] = {**rule.settings, "window_s": WINDOW_S}
        self._rule, self._behaviour = rule, Behaviour(WINDOW_S)
        self._said: Wish | None = None

    def decide(self, view: View) -> Wish | None:
        self._said = self._rule.decide(view) or self._said
        if self._said is None or not view.told:
            return None
        wanted = self._said.replicas
        if abs(wanted / view.told - 1) <= TOLERANCE:
            wanted = view.told
        return replace(self._said, replicas=self._behaviour.bounded(wanted, view))
