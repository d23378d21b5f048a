"""Kubernetes' own autoscaler, on cache use (`hpa`) and, as KEDA sets it up, on waiting requests (`keda`).

The algorithm is the controller's: a ratio with a tolerance, pods without metrics counted against the move, the largest wish
of the last five minutes (its stabilization window, which users set) going down, twice or four more going up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Final

from plimsoll.simulate.policies.base import View, Wish

TOLERANCE: Final = 0.10
DOWN_WINDOW_S: Final = 300.0


class Behaviour:
    """Rate of change: what Kubernetes does unless told otherwise."""

    def __init__(self, down_window_s: float) -> None:
        self._down_window_s = down_window_s
        self._wishes: deque[tuple[float, int]] = deque()

    def bounded(self, desired: int, view: View) -> int:
        now, told = view.now, view.told
        if not self._wishes:
            # The controller's own beginning: what runs is the first wish, so that nothing goes before a whole window is seen.
            self._wishes.append((now, told))
        self._wishes.append((now, desired))
        while self._wishes[0][0] < now - self._down_window_s:
            self._wishes.popleft()
        if desired < told:
            desired = min(told, max(wish for _, wish in self._wishes))
        return min(desired, max(2 * told, told + 4))


class Hpa:
    name = "hpa"
    histograms = False

    def __init__(self, target: float = 0.7, down_window_s: float = DOWN_WINDOW_S) -> None:
        self.target = target
        self.settings: Mapping[str, float] = {
            "target_kv": target,
            "down_window_s": down_window_s,
            "tolerance": TOLERANCE,
        }
        self._behaviour = Behaviour(down_window_s)

    def decide(self, view: View) -> Wish | None:
        samples = view.samples()
        if not samples or not view.told:
            return None
        used = [sample.kv_fraction or 0.0 for sample in samples]
        ratio = sum(used) / len(used) / self.target
        if abs(ratio - 1) <= TOLERANCE:
            desired = view.told
        else:
            # Pods without metrics count as full when going down and as idle when going up.
            missing = view.present - len(used)
            filled = sum(used) + (self.target * missing if ratio < 1 else 0.0)
            mended = filled / (len(used) + missing) / self.target
            flips = (mended < 1) != (ratio < 1)
            still = flips or abs(mended - 1) <= TOLERANCE
            desired = view.told if still else ceil((len(used) + missing) * mended)
        replicas = self._behaviour.bounded(max(view.least, min(desired, view.most)), view)
        mean = sum(used) / len(used)
        return Wish(replicas, "KvTarget", f"KV {mean:.0%} on average, target {self.target:.0%}")


class Keda:
    """A trigger on the sum of waiting requests; an empty answer reads as 0, as it does unless told otherwise."""

    name = "keda"
    histograms = False

    def __init__(self, threshold: float = 5.0, down_window_s: float = DOWN_WINDOW_S) -> None:
        self.threshold = threshold
        self.settings: Mapping[str, float] = {
            "waiting_per_replica": threshold,
            "down_window_s": down_window_s,
            "tolerance": TOLERANCE,
        }
        self._behaviour = Behaviour(down_window_s)

    def decide(self, view: View) -> Wish | None:
        if not view.told:
            return None
        waiting = sum(sample.waiting or 0.0 for sample in view.samples())
        ratio = waiting / (self.threshold * view.told)
        desired = view.told if abs(ratio - 1) <= TOLERANCE else ceil(waiting / self.threshold)
        replicas = self._behaviour.bounded(max(view.least, min(desired, view.most)), view)
        return Wish(replicas, "Waiting", f"{waiting:.0f} waiting, {self.threshold:g} a replica are aimed at")
