"""What will arrive one start-up from now: level and trend, the same time on the days before, and how wrong that tends to be.

A replica asked for now serves one start-up later, so that is the time to look at. The error of past forecasts is kept as
the factor that one in ten arrivals passed: a steady deployment needs little margin, an erratic one gets more. The same is
kept for the most that was seen in hours: a load that leaps between two levels passes its forecast often, but never the upper one.
"""

from __future__ import annotations

import math
from typing import Any, Final

from plimsoll.control.copying import replace
from plimsoll.control.memory import LoadMemory
from plimsoll.control.signals import RATE_S, RECENT_S
from plimsoll.facts.spans import DAY_S

STEP_SIGMAS: Final = 3.0
"""Standard deviations by which the last half minute must pass the last two minutes to be a step of the load."""
BURSTS_S: Final = 1800.0
LEVEL_S: Final = 60.0
TREND_S: Final = 300.0
"""Over which burstiness, level and trend are smoothed."""
DAMPED_S: Final = 900.0
"""How far ahead a trend is believed, about."""
SLOT_S: Final = 900
SLOTS: Final = DAY_S // SLOT_S
DAYS_LEAST: Final = 1
"""Whole days behind the profile before it is asked."""
NEWER: Final = 0.5
"""Weight of the newest day in the profile."""
DAILY_MOST: Final = 3.0
EXPECTED_EVERY_S: Final = 60.0
"""At least between two forecasts that are judged."""
EXPECTED_KEPT: Final = 40
"""Forecasts that are not due yet: all of a start-up of 40 minutes. The memory has to stay small, so for a longer one they lie further apart."""
MOST_S: Final = 21_600.0
"""In which the most that was seen comes to count for a third."""
RECORD_LEAST: Final = 1.25
"""By so much the most that was seen may be passed, however long it has not been."""
SURPRISE_STEP: Final = 0.05
SURPRISE_SHARE: Final = 0.9
SURPRISE_MOST: Final = 2.0
SURPRISE_FIRST: Final = 1.2
"""Before any forecast has come due: an unknown deployment is taken for an erratic one, until a steady hour shows better."""


def observed(load: LoadMemory, now: float, steady: float, recent: float | None) -> LoadMemory:
    """The memory with one more look at arrivals: `steady` over two minutes, `recent` over the last half minute."""
    stepped_at, burstiness = _stepped(load, now, steady, recent)
    rate = recent if stepped_at is not None and recent is not None else steady
    passed = 0.0 if load.at is None else now - load.at
    if load.at is None or (stepped_at is not None and passed > 0):
        # A step is not a trend: the new level stands at once, and nothing is read into how it got there.
        level, trend = max(rate, load.level), 0.0
    elif passed > 0:
        predicted = max(0.0, load.level + load.trend * passed)
        level = predicted + (1 - math.exp(-passed / LEVEL_S)) * (rate - predicted)
        trend = load.trend + (1 - math.exp(-passed / TREND_S)) * ((level - load.level) / passed - load.trend)
    else:
        level, trend = load.level, load.trend
    if load.expected and load.expected[0][0] <= now:
        load = _judged(load, now, rate)
    fades = math.exp(-max(0.0, passed) / MOST_S)
    return replace(
        load,
        most=max(rate, load.most * fades),
        rush=max(rate, recent or 0.0, load.rush * fades),
        at=now if load.at is None or passed > 0 else load.at,
        level=level,
        trend=trend,
        stepped_at=stepped_at,
        burstiness=burstiness,
        **_slotted(load, now, rate),
    )


def forecast(load: LoadMemory, now: float, ahead: float) -> float | None:
    """Arrivals a second, `ahead` seconds from now, without any margin; None before anything was seen."""
    if load.at is None:
        return None
    reach = DAMPED_S * (1 - math.exp(-ahead / DAMPED_S))
    noise = math.sqrt(load.burstiness * max(load.level, 0.0) / RATE_S) / TREND_S
    straight = load.level + max(0.0, load.trend - noise) * reach
    return max(load.level, straight, load.level * _daily(load, now, ahead))


def expecting(load: LoadMemory, now: float, ahead: float, rate: float) -> LoadMemory:
    """Remember a forecast, to judge it when its time has come. They are so far apart that none has to be forgotten before."""
    due, apart = now + ahead, max(EXPECTED_EVERY_S, ahead / EXPECTED_KEPT)
    if load.expected and due - load.expected[-1][0] < apart:
        return load
    return replace(load, expected=(*load.expected, (due, rate, max(rate, load.most)))[-EXPECTED_KEPT:])


def sure(load: LoadMemory, coming: float, spent: float) -> float:
    """Arrivals a second that a forecast is seldom passed by. `spent`: how much of the room for surprises is kept."""
    passed, broken = (1 + (_factor(each) - 1) * spent for each in (load.surprise, load.record))
    return min(passed * coming, max(RECORD_LEAST, broken) * max(coming, load.most))


def _factor(learned: float | None) -> float:
    """The factor by which arrivals pass what was known before: nine in ten stay below it."""
    return SURPRISE_FIRST if learned is None else learned


def arrivals(load: LoadMemory, steady: float | None, recent: float | None) -> float | None:
    """Arrivals a second that count as the load now: those of the last half minute while the load is on a step."""
    return recent if load.stepped_at is not None and recent is not None else steady


def is_fresh_step(load: LoadMemory, now: float) -> bool:
    """The last half minute still holds some of the time before the step, so its size is not known yet."""
    return load.stepped_at is not None and now - load.stepped_at < RECENT_S / 2


def leaps(load: LoadMemory, steady: float | None, recent: float | None) -> bool:
    """Whether the last half minute has more arrivals than chance and burstiness explain, or fewer: the load leaps, up or down."""
    return steady is not None and recent is not None and abs(recent - steady) > _by_chance(load, steady)


def _by_chance(load: LoadMemory, steady: float) -> float:
    """How far the rate of half a minute is from that of two minutes by chance, at most."""
    return STEP_SIGMAS * math.sqrt(load.burstiness * _variance(steady))


def _variance(steady: float) -> float:
    """Of the rate of half a minute, if arrivals are independent."""
    return max(steady, 1 / RECENT_S) / RECENT_S


def _stepped(load: LoadMemory, now: float, steady: float, recent: float | None) -> tuple[float | None, float]:
    """Since when the load is on a step up, and how bursty it is. What comes after a burst tells of it; a step up may be more than one."""
    if recent is None:
        return None, load.burstiness
    if recent > steady and leaps(load, steady, recent):
        return now if load.stepped_at is None else load.stepped_at, load.burstiness
    if load.at is None or now <= load.at:
        return None, load.burstiness
    weight = 1 - math.exp(-(now - load.at) / BURSTS_S)
    shown = (recent - steady) ** 2 / _variance(steady)
    return None, max(1.0, load.burstiness + weight * (shown - load.burstiness))


def _judged(load: LoadMemory, now: float, rate: float) -> LoadMemory:
    surprise, record, judged = _factor(load.surprise), _factor(load.record), False
    waiting = []
    for due, expected, most in load.expected:
        if due > now:
            waiting.append((due, expected, most))
        elif expected > 0:
            surprise, record, judged = _moved(surprise, rate / expected), _moved(record, rate / most), True
    if not judged:
        return replace(load, expected=tuple(waiting))
    return replace(load, expected=tuple(waiting), surprise=surprise, record=record)


def _moved(factor: float, shown: float) -> float:
    """Up nine times as far as down: it rests where one in ten passes it."""
    moved = factor + SURPRISE_STEP * (SURPRISE_SHARE if shown > factor else SURPRISE_SHARE - 1)
    return min(SURPRISE_MOST, max(1.0, moved))


def _slotted(load: LoadMemory, now: float, rate: float) -> dict[str, Any]:
    """The fields that change with a look: those of the present part of the day, and the profile where a part has just ended."""
    slot = int(now // SLOT_S)
    if load.slot == slot:
        return {"slot_sum": load.slot_sum + rate, "slot_seen": load.slot_seen + 1}
    begun: dict[str, Any] = {"slot": slot, "slot_sum": rate, "slot_seen": 1}
    if load.slot is None or not load.slot_seen:
        return begun
    profile = list(load.profile or (None,) * SLOTS)
    place, mean = load.slot % SLOTS, load.slot_sum / load.slot_seen
    before = profile[place]
    profile[place] = mean if before is None else before + NEWER * (mean - before)
    return {**begun, "profile": tuple(profile), "parts_seen": min(load.parts_seen + 1, 7 * SLOTS)}


def _daily(load: LoadMemory, now: float, ahead: float) -> float:
    """By which factor arrivals grew from this time of day to that on the days before."""
    if load.parts_seen < DAYS_LEAST * SLOTS:
        return 1.0
    here, there = _at(load, now), _at(load, now + ahead)
    if not here or there is None:
        return 1.0
    return min(DAILY_MOST, there / here)


def _at(load: LoadMemory, time: float) -> float | None:
    """The profile at a time of day, between the middles of two slots."""
    place = time / SLOT_S - 0.5
    first = math.floor(place)
    before, after = load.profile[first % SLOTS], load.profile[(first + 1) % SLOTS]
    if before is None or after is None:
        return None
    return before + (after - before) * (place - first)
