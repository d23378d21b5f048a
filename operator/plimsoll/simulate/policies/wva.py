"""The workload variant autoscaler's two analyzers: spare capacity with steps of one (`wva1`), and counted tokens (`wva2`).

Both hold while replicas are on their way. The second sizes its step from the tokens that are missing. Both look first when
they have run for one interval, as they would with an interval of metrics from before they began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from plimsoll.facts.pod_sample import PodSample
from plimsoll.planning.ask.values import counted
from plimsoll.simulate.policies.base import View, Wish

EVERY_S: Final = 60.0
PEAK_S: Final = 60.0
QUEUE_FULL: Final = 5.0
SPARE_KV: Final = 0.10
SPARE_QUEUE: Final = 3.0
GAP: Final = 0.15
"""Between the share at which replicas are added and the one below which they go."""


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

    def __init__(self, kv_full: float = 0.80, queue_full: float = QUEUE_FULL) -> None:
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


class Wva2:
    name = "wva2"
    histograms = False

    def __init__(self, up: float = 0.85, gap: float = GAP) -> None:
        self.up = up
        self.down = up - gap
        self.settings: Mapping[str, float] = {"up": up, "gap": gap, "down": self.down, "every_s": EVERY_S}
        self._next = EVERY_S

    def decide(self, view: View) -> Wish | None:
        if view.now < self._next:
            return None
        samples = [one for one in view.samples() if one.kv_tokens and one.kv_fraction is not None]
        if not samples:
            return None
        self._next = view.now + EVERY_S
        each = sum(one.kv_tokens or 0 for one in samples) / len(samples)
        used = sum((one.kv_fraction or 0.0) * (one.kv_tokens or 0) for one in samples)
        running = sum(one.running or 0.0 for one in samples)
        waiting = sum(one.waiting or 0.0 for one in samples)
        # A waiting request is taken to want what a running one holds.
        demand = (used + waiting * (used / running if running else 0.0)) * len(view.ready) / len(samples)
        supply = view.present * each
        if demand > self.up * supply and not view.pending:
            return Wish(
                min(ceil(demand / (self.up * each)), view.most),
                "TokensShort",
                f"{demand:,.0f} tokens wanted of {supply:,.0f}, above {self.up:.0%}",
            )
        fewer = max(view.least, ceil(demand / (self.down * each)) if demand else view.least)
        if demand < self.down * supply and fewer < view.told and not view.pending:
            return Wish(
                view.told - 1,
                "TokensSpare",
                f"{demand:,.0f} tokens wanted of {supply:,.0f}, below {self.down:.0%}",
            )
        return None
