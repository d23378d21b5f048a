"""What is wrong, and whether a setting is to blame: the first row that fits, since the worse come first.

Each symptom must last before anything is done about it. Where more replicas cure the same, they come first, and a setting
is touched only if the symptom is still there when they serve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from plimsoll.control.law import LAW
from plimsoll.control.retune.scene import Scene
from plimsoll.control.signals import RATE_S, ReplicaSignals

ACT: Final = 0.05
"""Preemptions for each finished request, as the next three: from so many on a setting is to blame."""
STORM: Final = 0.20
CALM: Final = LAW.healthy_preempted
RELEASED: Final = 0.005
"""Below so many an earlier change may go back."""
STORM_S: Final = RATE_S + 60.0
"""How long a storm lasts: rates look back two minutes, so what is preempted in one moment is seen for as long; a minute more of it is a
storm."""
FULL: Final = LAW.alert_kv
"""Share of the pool in use from which it is crowded: the alert fires at it, and it holds a step down back."""
ROOMY: Final = 0.70
"""Share of the pool in use below which it is not what makes requests late."""
CAPPED_KV: Final = 0.6
"""Share of the pool in use below which more requests could run than the cap allows."""
NEAR: Final = 0.9
"""Share of a limit from which it counts as reached: of the cap on running requests, and of the promised gap."""
EMPTY: Final = 0.5
"""Share of the pool in use below which an earlier change may be no longer needed."""
QUICK: Final = 0.5
"""Share of the promised gap within which half of all gaps lie, where only some of them are too long."""
AFTER_SCALING_S: Final = 300.0
"""How long replicas that were just added have, once they serve, to cure a symptom before a setting is touched."""
FEW: Final = 4
"""Requests that fill a pool, of which each is huge."""


class Symptom(StrEnum):
    STORM = "preemption storm"
    PREEMPTION = "preemptions"
    SLOW_TOKENS = "slow tokens"
    CUT_IN = "prompts cut in"
    """Most gaps between tokens are short, and those with a prompt in them too long."""
    CAPPED = "capped"
    """Requests wait though the pool has room: fewer run than could."""
    LATE_FIRST = "first tokens late"
    """They wait though pool and cap have room: steps take in fewer prompts than come."""
    RELAXED = "relaxed"
    """An earlier change is no longer needed."""


def cause(symptom: str) -> str:
    """A storm is a heavy case of preemption: how long it has been so, and what did not help, is one and the same."""
    return "preemptions" if "preemption" in symptom else symptom


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSymptom:
    symptom: Symptom
    lasts_s: float
    """How long it must last."""
    why: str


def symptom_of(scene: Scene, *, changed_before: bool) -> SeenSymptom | None:
    """The worst symptom that is there now, if any. How long it has been there, the memory knows."""
    signals, half = scene.signals, scene.restarts.canary_seconds / 2
    preempted, kv = signals.preempted_share, signals.mean("kv_fraction")
    if preempted is not None and preempted >= ACT:
        said = f"{preempted:.0%} of requests are preempted" + (
            "" if kv is None else f" at {kv:.0%} of the pool"
        )
        if preempted >= STORM:
            return SeenSymptom(symptom=Symptom.STORM, lasts_s=min(STORM_S, half), why=said)
        return SeenSymptom(symptom=Symptom.PREEMPTION, lasts_s=half, why=said)
    if late := _late_tokens(scene, preempted, kv):
        return replace(late, lasts_s=half)
    if capped := _capped(scene, kv):
        return SeenSymptom(symptom=Symptom.CAPPED, lasts_s=half, why=capped)
    if late_first := _late_first(scene, preempted, kv):
        return SeenSymptom(symptom=Symptom.LATE_FIRST, lasts_s=half, why=late_first)
    if changed_before and (relaxed := _relaxed(scene, preempted, kv)):
        return SeenSymptom(
            symptom=Symptom.RELAXED, lasts_s=float(scene.restarts.release_after_seconds), why=relaxed
        )
    return None


def scaling_first(scene: Scene, symptom: Symptom) -> str | None:
    """Why to wait for more replicas, which would cure it too; None where only a setting would."""
    if symptom in {Symptom.STORM, Symptom.PREEMPTION}:
        # A few huge requests fill a replica: beside more replicas each of them would be as crowded.
        kv = scene.signals.mean("kv_fraction")
        if (kv is not None and kv < FULL) or few_fill_it(scene):
            return None
    elif symptom is not Symptom.LATE_FIRST:
        return None
    if scene.wants_more and scene.more_replicas:
        return "more replicas are wanted and can be had, and cure it without a restart"
    if scene.scaled_at is not None and scene.now - scene.scaled_at < scene.start_s + AFTER_SCALING_S:
        return "replicas were added just now"
    return None


def few_fill_it(scene: Scene) -> bool:
    """Whether so few requests fill the pool that each of them is huge.

    Told by the share of the pool that one request holds: how many run at this moment says nothing of the minutes in which some
    were preempted.
    """
    running, kv = scene.signals.mean("running"), scene.signals.mean("kv_fraction")
    return bool(running and kv is not None and kv * FEW * scene.knobs.ranks >= FULL * running)


def _late_tokens(scene: Scene, preempted: float | None, kv: float | None) -> SeenSymptom | None:
    itl, limit = scene.signals.latencies.itl, scene.slo.itl_p99_s
    if itl is None or limit is None or not _is_late(scene):
        return None
    if (preempted or 0.0) >= CALM or kv is None or kv >= ROOMY:
        return None
    said = f"p99 between tokens is {itl.p99 * 1000:.0f} ms of {limit * 1000:.0f}"
    if itl.p50 <= QUICK * limit:
        # The number of running requests is not to blame: most of their gaps are short.
        why = f"{said}, and the median {itl.p50 * 1000:.0f}: prompts cut in"
        return SeenSymptom(symptom=Symptom.CUT_IN, lasts_s=0.0, why=why)
    if _near_cap(scene):
        why = f"{said} with about {scene.knobs.most_running} requests running"
        return SeenSymptom(symptom=Symptom.SLOW_TOKENS, lasts_s=0.0, why=why)
    return None


def _is_late(scene: Scene) -> bool:
    itl, limit = scene.signals.latencies.itl, scene.slo.itl_p99_s
    return itl is not None and itl.trusted and limit is not None and itl.p99 > limit


def _tells_gaps(scene: Scene) -> bool:
    """Whether it is known if gaps are late: nobody promises anything of them, they were measured, or there were none."""
    itl = scene.signals.latencies.itl
    if scene.slo.itl_p99_s is None or (itl is not None and itl.trusted):
        return True
    return scene.signals.sum("running") == 0 and scene.signals.rate("finished") == 0


def _is_easy(scene: Scene, kv: float | None) -> bool:
    return kv is not None and kv < EMPTY and not _is_late(scene)


def _little_preempted(scene: Scene, preempted: float | None) -> float | None:
    """The share of preempted requests where it is small enough to take a change back; else None."""
    # Where nothing finishes there is no share, and none is preempted; where nobody counts them nothing is known.
    share = 0.0 if preempted is None and scene.signals.sum("preemptions") == 0 else preempted
    return None if share is None or share >= RELEASED else share


def _relaxed(scene: Scene, preempted: float | None, kv: float | None) -> str | None:
    share = _little_preempted(scene, preempted)
    if share is None or not _is_easy(scene, kv) or not _tells_gaps(scene):
        return None
    return f"an earlier change is not needed now: {share:.1%} of requests are preempted, and {kv:.0%} of the pool is in use"


def as_calm(scene: Scene) -> bool:
    """Whether all that is known is as calm as for RELAXED, while preemptions or gaps are not known: an engine that has just started is
    seen once, and a count needs two looks."""
    signals = scene.signals
    uncounted = signals.sum("preemptions") is None
    if not (uncounted or _little_preempted(scene, signals.preempted_share) is not None):
        return False
    return (uncounted or not _tells_gaps(scene)) and _is_easy(scene, signals.mean("kv_fraction"))


def _capped(scene: Scene, kv: float | None) -> str | None:
    waiting = scene.signals.sum("waiting")
    if not waiting or kv is None or kv >= CAPPED_KV or not _near_cap(scene):
        return None
    itl, limit = scene.signals.latencies.itl, scene.slo.itl_p99_s
    if limit is not None and (itl is None or not itl.trusted or itl.p99 > NEAR * limit):
        return None
    return f"{waiting:.0f} requests wait at {kv:.0%} of the pool, as only {scene.knobs.most_running} may run"


def _late_first(scene: Scene, preempted: float | None, kv: float | None) -> str | None:
    ttft, limit, waiting = scene.signals.latencies.ttft, scene.slo.ttft_p99_s, scene.signals.sum("waiting")
    if ttft is None or limit is None or not ttft.trusted or ttft.p99 <= limit or not waiting:
        return None
    if kv is None or kv >= ROOMY or preempted is None or preempted >= CALM or _near_cap(scene):
        return None
    return f"p99 of the first token is {ttft.p99:.1f} s of {limit:.1f}, and {waiting:.0f} requests wait at {kv:.0%} of the pool"


def _near_cap(scene: Scene) -> bool:
    def near(each: ReplicaSignals) -> bool:
        return each.running is not None and each.running >= NEAR * scene.knobs.most_running

    crowded = sum(1 for each in scene.signals.replicas if near(each))
    return crowded > 0 and 2 * crowded >= len(scene.signals.replicas)
