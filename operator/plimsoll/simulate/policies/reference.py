"""The plain law that the product's own grew from (`reference`): sizes by tokens, latency and forecast, the largest counts.

It jumps up at once and goes down slowly, looks one start-up ahead, and counts what is on its way. What it leaves out is what
the product's law adds: queues as debt, the curve of latency over load, prompts that fill steps, bursts. Whatever that
adds is to be seen here: it is to be better than this on the same traces, or this is to be the law.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Final

from plimsoll.control.learning import ratio_of
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Capacity, ReplicaState, Slo
from plimsoll.facts.spans import DAY_S
from plimsoll.simulate.policies.base import View, Wish

TARGET: Final = 0.70
DOWN_GAP: Final = 0.15
COVERAGE_LEAST: Final = 0.5
SLOW_S: Final = 60.0
SLOW_MOST: Final = 2.0
BUSY_KV: Final = 0.5
DOWN_LATENCY: Final = 0.7
DOWN_STEP: Final = 0.10
DOWN_WINDOW_S: Final = 300.0
UPS_BEYOND: Final = 4
PANIC_KV: Final = 0.95
PANIC_WAITING: Final = 8.0
START_FIRST_S, START_LEAST_S, START_MOST_S = 180.0, 30.0, 1800.0
CREDIT_STARTS: Final = 3.0
LEVEL_WEIGHT, TREND_WEIGHT, LEARNT_WEIGHT = 0.2, 0.05, 0.1
"""Of the newest tick."""
SLOT_S, DAYS_LEAST = 900, 2
TICK_S: Final = 15.0


class Forecast:
    """Level and trend by Holt, and the same time of the day before once two days are known."""

    def __init__(self) -> None:
        self._level: float | None = None
        self._trend = 0.0
        self._last = 0.0
        self._slots: dict[int, float] = {}

    def add(self, now: float, rate: float) -> None:
        self._last = rate
        self._slots[int(now // SLOT_S)] = rate
        if self._level is None:
            self._level = rate
            return
        before = self._level
        self._level = (1 - LEVEL_WEIGHT) * (before + self._trend) + LEVEL_WEIGHT * rate
        self._trend += TREND_WEIGHT * (self._level - before - self._trend)

    def at(self, now: float, ahead: float) -> float:
        straight = (self._level or 0.0) + self._trend * ahead / TICK_S
        yesterday = 0.0
        if now >= DAYS_LEAST * DAY_S:
            yesterday = self._slots.get(int((now + ahead - DAY_S) // SLOT_S), 0.0)
        return max(self._last, straight, yesterday)


class Reference:
    name = "reference"
    histograms = True

    def __init__(self, *, capacity: Capacity, slo: Slo, target: float = TARGET) -> None:
        """`target`: how full the pool may be, and with it what share of its learned rate a replica is counted with."""
        self.capacity, self.slo, self.target = capacity, slo, target
        self.down_target = max(0.05, target - DOWN_GAP)
        self.settings: Mapping[str, float] = {
            "target": target,
            "down_target": self.down_target,
            "down_window_s": DOWN_WINDOW_S,
        }
        self._window = Window()
        self._forecast = Forecast()
        self._each = capacity.requests_per_second
        """Requests a second of one replica while the limits hold, as learned."""
        self._starts: dict[str, float] = {}
        self._wishes: deque[tuple[float, int]] = deque()
        self._short = 0
        """Ticks in a row that asked for more than there is."""
        self._slow_since: float | None = None
        self._moved_at = 0.0

    def decide(self, view: View) -> Wish | None:
        self._window = self._window.add(view.now, view.arrived)
        signals = signals_of(self._window, now=view.now, live=[one.id for one in view.ready])
        lead = self._lead_s(view)
        if not signals.replicas or signals.coverage < COVERAGE_LEAST:
            self._short = 0
            return None
        sizes = self._sizes(view.now, signals, len(view.ready), lead)
        name = max(sizes, key=lambda size: sizes[size])
        need = min(max(sizes[name], view.least), view.most)
        window = max(DOWN_WINDOW_S, 2 * lead)
        self._wishes.append((view.now, need))
        while self._wishes[0][0] < view.now - window:
            self._wishes.popleft()
        supply = len(view.ready) + sum(
            1
            for one in view.replicas
            if one.state not in (ReplicaState.READY, ReplicaState.LEAVING)
            and view.now - one.created < CREDIT_STARTS * lead
        )
        self._short = self._short + 1 if need > supply else 0
        if need > supply:
            return self._up(view, signals, need, supply, f"{name} asks for {need}")
        return self._down(view, signals, window)

    def _sizes(self, now: float, signals: Signals, ready: int, lead: float) -> dict[str, int]:
        used, pool = _tokens_used(signals, self.capacity)
        waiting = (signals.sum("waiting") or 0.0) * self._tokens_each(signals)
        sizes = {"tokens": ceil((used + waiting) / (self.target * pool)) if pool else 0}
        ratio = ratio_of(signals, self.slo)
        if ratio is None or ratio <= 1:
            self._slow_since = None
        elif self._slow_since is None:
            self._slow_since = now
        elif now - self._slow_since >= SLOW_S and _loaded(signals):
            sizes["latency"] = ceil(ready * min(SLOW_MOST, ratio))
        rate = signals.arrivals_per_s
        if rate is not None:
            self._forecast.add(now, rate)
            self._learn(rate / ready, ratio)
            if self._each:
                share = self.target / TARGET
                sizes["forecast"] = ceil(self._forecast.at(now, lead) / (share * self._each) - 1e-9)
        return sizes

    def _learn(self, each: float, ratio: float | None) -> None:
        """More is believed where the limits held at more, and less where they were missed at less."""
        if self._each is None or ratio is None:
            return
        if (ratio <= 1 and each > self._each) or (ratio > 1 and each < self._each):
            self._each += LEARNT_WEIGHT * (max(each, 1e-3) - self._each)

    def _tokens_each(self, signals: Signals) -> float:
        """What a waiting request will hold in the middle of its answer."""
        prompt, output = signals.latencies.prompt, signals.latencies.output
        given = prompt.mean if prompt is not None and prompt.trusted else None
        asked = output.mean if output is not None and output.trusted else None
        return (given or self.capacity.input_tokens) + (asked or self.capacity.output_tokens) / 2

    def _up(self, view: View, signals: Signals, need: int, supply: int, why: str) -> Wish | None:
        if self._short < 2 and not _panic(signals):
            return None
        more = min(need, max(2 * supply, supply + UPS_BEYOND)) - supply
        self._moved_at, self._short = view.now, 0
        return Wish(min(view.told + more, view.most), "Need", why)

    def _down(self, view: View, signals: Signals, window: float) -> Wish | None:
        ready = len(view.ready)
        least = max(view.least, *(need for _, need in self._wishes))
        after = max(least, ready - max(1, int(DOWN_STEP * ready)))
        if after >= ready or view.pending or view.now - self._moved_at < window:
            return None
        # Who does not speak counts as full.
        kv = (signals.sum("kv_fraction") or 0.0) + (signals.live - len(signals.replicas))
        if kv / after > self.down_target or (signals.sum("waiting") or 0.0) >= after:
            return None
        if (signals.sum("preemptions") or 0.0) > 0 or (ratio_of(signals, self.slo) or 0.0) > DOWN_LATENCY:
            return None
        self._moved_at = view.now
        return Wish(after, "Spare", f"no more than {least} were asked for in {window:.0f} s")

    def _lead_s(self, view: View) -> float:
        """Nine of ten of its own starts were faster."""
        for one in view.ready:
            if one.since > one.created:
                self._starts.setdefault(one.id, one.since - one.created)
        ordered = sorted(self._starts.values()) or [START_FIRST_S]
        return min(START_MOST_S, max(START_LEAST_S, ordered[ceil(0.9 * len(ordered)) - 1]))


def _tokens_used(signals: Signals, capacity: Capacity) -> tuple[float, float]:
    """In all pools, and what one replica's holds."""
    used = sum(
        (each.kv_fraction or 0.0) * (each.kv_tokens or capacity.kv_tokens) for each in signals.replicas
    )
    return used, signals.mean("kv_tokens") or float(capacity.kv_tokens)


def _loaded(signals: Signals) -> bool:
    """Whether more replicas can help: a slow engine with nothing to do is not cured by another one."""
    return (
        (signals.mean("kv_fraction") or 0.0) >= BUSY_KV
        or (signals.sum("waiting") or 0.0) > 0
        or (signals.sum("preemptions") or 0.0) > 0
    )


def _panic(signals: Signals) -> bool:
    crowded = sum(
        (each.kv_fraction or 0.0) >= PANIC_KV
        or (each.waiting or 0.0) > max(PANIC_WAITING, each.running or 0.0)
        for each in signals.replicas
    )
    return 2 * crowded >= signals.live
