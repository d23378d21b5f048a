"""Knative's rule as engines' stacks use it (`kpa`): requests in flight over a long and a short window, and panic between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil, floor
from typing import Final

from plimsoll.simulate.policies.base import View, Wish

STABLE_S: Final = 180.0
PANIC_S: Final = 60.0
PANIC_AT: Final = 2.0
MOST_DOWN: Final = 2.0
"""Replicas are at most halved at once."""


class Kpa:
    name = "kpa"
    histograms = False

    def __init__(self, max_num_seqs: int, share: float = 0.7, stable_s: float = STABLE_S) -> None:
        """`share` of the requests that a replica runs at once is aimed at, on average over `stable_s`."""
        self.stable_s = stable_s
        self.target = max(1.0, share * max_num_seqs)
        self.settings: Mapping[str, float] = {
            "target_share": share,
            "target_in_flight": self.target,
            "stable_s": stable_s,
            "panic_s": PANIC_S,
            "panic_at": PANIC_AT,
        }
        self._seen: deque[tuple[float, float]] = deque()
        self._panic_until: float | None = None
        self._panic_most = 0

    def decide(self, view: View) -> Wish | None:
        samples, now = view.samples(), view.now
        if self._panic_until is None:
            # As it begins beside several replicas that run: in panic, so that none goes before a whole window is seen.
            self._panic_until = now + self.stable_s if len(view.ready) > 1 else now
        if not samples:
            return None
        flying = sum((sample.running or 0.0) + (sample.waiting or 0.0) for sample in samples)
        # A replica that does not answer carries what the others do.
        self._seen.append((now, flying * len(view.ready) / len(samples)))
        while self._seen[0][0] <= now - self.stable_s:
            self._seen.popleft()
        ready = max(1, len(view.ready))
        stable = self._wanted(now - self.stable_s)
        panic = self._wanted(now - PANIC_S)
        stable = max(stable, floor(ready / MOST_DOWN))
        if panic >= PANIC_AT * ready:
            if now >= self._panic_until:
                self._panic_most = 0
            self._panic_until = now + self.stable_s
        panicking = now < self._panic_until
        if panicking:
            self._panic_most = max(self._panic_most, panic, view.told)
        desired = self._panic_most if panicking else stable
        reason = "Panic" if panicking else "Stable"
        return Wish(
            max(view.least, min(desired, view.most)),
            reason,
            f"{flying:.0f} in flight, {self.target:.0f} a replica are aimed at",
        )

    def _wanted(self, since: float) -> int:
        seen = [flying for at, flying in self._seen if at > since]
        return ceil(sum(seen) / len(seen) / self.target)
