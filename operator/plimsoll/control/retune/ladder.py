"""Which setting, and to what: the cheapest and safest rung that the user allows and that would really help.

Every rung answers with a change, or with why not, and the refusals travel with the choice. Sizes come from `sizing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from plimsoll.control.prompts import fresh_share
from plimsoll.control.retune import sizing
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.symptoms import CALM, SeenSymptom, Symptom, few_fill_it

AIM = 0.2
"""Share of the preemptions that may be left: a rung that would leave more is not worth a restart."""
TAKEN_BACK = ("maxSequences", "watermark")
"""Settings that go back to the plan's values after a day of calm. maxBatchedTokens is not among them: it was made smaller so that
prompts do not cut in, and those do so however calm the pool is."""
BLOCK = 16
"""Tokens of a block where the engine does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    setting: str
    before: str
    after: str
    why: str
    """The figures that made the size."""


LARGER_POOL = Change(
    setting="memory",
    before="as planned",
    after="another plan",
    why="a few requests fill the pool, and neither replicas nor rungs make it larger: spec.memory.kvCacheDtype fp8 or more "
    "GPUs a replica (spec.topology) would, and a shorter spec.workload.contextTokens refuses the longest requests",
)
MORE_POOL = replace(
    LARGER_POOL,
    why="more requests run than the pool holds, and no setting that may be retuned cures it. More replicas would (scaling.max or "
    "replicas, with GPUs for them), or a larger pool: spec.memory.kvCacheDtype fp8 where the cache is not of 8 bits yet, more GPUs a "
    "replica (spec.topology), or a larger spec.memory.utilizationPercent where that was set below what plimsoll explain shows as proven",
)
"""Both for a person to make. They are about one thing, so that one of them is told in a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    change: Change | None
    refused: tuple[str, ...] = ()
    """Rungs above it that were passed over, each with its reason."""
    unsure: bool = False
    """One of those passed over may still help: something that it goes by is not known yet."""
    advice: Change | None = None
    """What a person may do where no rung helps, which is told once that is sure."""


@dataclass(frozen=True, slots=True)
class No:
    """Why a rung is passed over."""

    why: str
    unsure: bool = False
    """It cannot be said yet whether the rung would help: something that it goes by is not known."""


UNKNOWN = No("pool or lengths are not known yet", unsure=True)
Rung = Callable[[], Change | No]
"""Asked only when those above it do not help: sizes are dear, and a fleet is large."""


def choose(scene: Scene, seen: SeenSymptom, *, barred: dict[str, str]) -> Choice:
    """`barred` are settings that may not be touched now, with the reason."""
    refused, unsure = [], False
    consent, relaxed = scene.consent, seen.symptom is Symptom.RELAXED
    for setting, rung in _rungs(scene, seen):
        if setting not in consent.allowed:
            refused.append(f"{setting}: spec.tuning.allow does not name it")
        elif consent.mode == "auto" and (why := consent.set_by_hand(setting, goes_back=relaxed)):
            refused.append(f"{setting}: {why}")
        elif setting in barred:
            refused.append(f"{setting}: {barred[setting]}")
        elif isinstance(found := rung(), No):
            refused.append(f"{setting}: {found.why}")
            unsure = unsure or found.unsure
        else:
            return Choice(change=found, refused=tuple(refused))
    advice = None if unsure else _advice(scene, seen)
    return Choice(change=None, refused=tuple(refused), unsure=unsure, advice=advice)


def _advice(scene: Scene, seen: SeenSymptom) -> Change | None:
    """What a person may do about a pool that is too small, of which no setting makes enough."""
    if seen.symptom not in {Symptom.STORM, Symptom.PREEMPTION}:
        return None
    return LARGER_POOL if few_fill_it(scene) else MORE_POOL


def _rungs(scene: Scene, seen: SeenSymptom) -> list[tuple[str, Rung]]:
    match seen.symptom:
        case Symptom.SLOW_TOKENS:
            return [("maxSequences", lambda: _fewer_for_latency(scene))]
        case Symptom.CUT_IN:
            return [("maxBatchedTokens", lambda: _smaller_steps(scene))]
        case Symptom.CAPPED:
            return [("maxSequences", lambda: _more(scene))]
        case Symptom.LATE_FIRST:
            return [("maxBatchedTokens", lambda: _larger_steps(scene))]
        case Symptom.RELAXED:
            return [(setting, partial(_release, scene, setting)) for setting in TAKEN_BACK]
    return [("watermark", lambda: _watermark(scene)), ("maxSequences", lambda: _fewer_for_pool(scene))]


def _watermark(scene: Scene) -> Change | No:
    if not scene.has_watermark:
        return No("this engine version has none")
    pool, live, preempted = _pool(scene), sizing.live_of(scene.signals), scene.signals.preempted_share
    if pool is None or live is None or preempted is None:
        return UNKNOWN
    block, now = _block(scene), scene.knobs.watermark_permille
    aim = max(CALM, AIM / 2 * preempted)
    value = sizing.watermark(pool, block, live, preempted=preempted, aim=aim, now_permille=now)
    left = aim / preempted
    if value > (most := sizing.MOST_WATERMARK):
        left = sizing.preemptions_left(pool, block, live, most - now)
        if left > AIM:
            return No(f"{value} of 1,000 blocks would have to stay free, more than {most}")
        value = most
    if value <= now:
        return No("no more blocks would help")
    why = (
        f"running requests grow by {live.output / block:.1f} blocks before one of them ends; {value} of 1,000 blocks kept "
        f"free leave {left:.0%} of the preemptions"
    )
    return _change(scene, "watermark", str(value), why)


def _fewer_for_pool(scene: Scene) -> Change | No:
    pool, live = _pool(scene), sizing.live_of(scene.signals)
    if pool is None or live is None:
        return UNKNOWN
    holds = sizing.sequences(pool, _block(scene), live, spreads=sizing.FEW_PREEMPTED)
    why = (
        f"a running request holds {live.mean:,.0f} tokens, give or take {live.deviation:,.0f}, and the pool "
        f"{pool:,.0f}: it holds {holds} of them"
    )
    return _fewer(scene, holds, why, _running(scene))


def _fewer_for_latency(scene: Scene) -> Change | No:
    itl, limit = scene.signals.latencies.itl, scene.slo.itl_p99_s
    if itl is None or limit is None:
        return No("no latency between tokens is known", unsure=True)
    now = scene.knobs.max_sequences
    return _fewer(
        scene, int(0.95 * now * limit / itl.p99), "the gap between tokens grows with those running", now
    )


def _fewer(scene: Scene, value: int, why: str, running: float) -> Change | No:
    now, floor = scene.knobs.max_sequences, scene.consent.least_sequences
    # Half of what is allowed now, or of what really runs where that is less: a further step can follow.
    least = max(floor, int(min(now, max(running, 1.0)) / 2))
    if floor > value:
        why += f"; the floor is {floor}"
    value = max(value, least)
    if value >= now or value >= running:
        return No(f"{value} would be no fewer than run now ({running:.0f})")
    return _change(scene, "maxSequences", str(value), why)


def _more(scene: Scene) -> Change | No:
    pool, live, now = _pool(scene), sizing.live_of(scene.signals), scene.knobs.max_sequences
    if pool is None or live is None:
        return UNKNOWN
    holds = sizing.sequences(pool, _block(scene), live, spreads=sizing.NONE_PREEMPTED)
    value = min(holds, max(now + 1, int(1.5 * now)), scene.knobs.held)
    if value <= now:
        return No(f"pool and steps hold {value} requests, no more than may run")
    return _change(scene, "maxSequences", str(value), f"the pool holds {holds} requests")


def _smaller_steps(scene: Scene) -> Change | No:
    """Fewer prompt tokens a step: whoever is answered waits for all of them between two tokens."""
    itl, limit, prompt = scene.signals.latencies.itl, scene.slo.itl_p99_s, scene.signals.latencies.prompt
    arriving = [
        each.prompt_tokens / each.span_s
        for each in scene.signals.replicas
        if each.prompt_tokens is not None and each.span_s > 0
    ]
    if itl is None or limit is None or prompt is None or not prompt.trusted or not arriving:
        return No("latency between tokens or prompts are not known yet", unsure=True)
    now = scene.knobs.batched_tokens
    # Engines count prompts whole, and a step takes only what the prefix cache has not got.
    fresh = fresh_share(scene.signals)
    # What a step takes of prompts at its fullest, where they seldom come together; where they do, this step is a short one.
    full = min(float(now), fresh * prompt.p99)
    wanted = sizing.step_tokens(full, itl.p50, itl.p99, limit)
    if wanted is None:
        return No(f"a step without prompts takes {1000 * itl.p50:.0f} ms already")
    # Steps that are no longer than promised still have to take in all prompts as they come to the busiest replica.
    needed = _running(scene) + fresh * max(arriving) / scene.knobs.ranks * limit
    floors = {
        "half of what a step takes now": full / 2,
        "what prompts need": needed,
        "requests that may run": scene.knobs.max_sequences * scene.knobs.tokens_each,
        # Models with a state of fixed size have large blocks, and their engine refuses a step that does not hold one.
        "a block of the cache": scene.signals.most("block_size") or BLOCK,
        "the floor": scene.consent.least_batched,
    }
    highest = max(floors, key=lambda name: floors[name])
    value = math.ceil(max(wanted, floors[highest]))
    if value >= full:
        return No(
            f"a step takes {full:,.0f} prompt tokens at most, and no fewer than {value:,} may be ({highest})"
        )
    why = (
        f"a gap without prompts lasts {1000 * itl.p50:.0f} ms, and one with {full:,.0f} prompt tokens "
        f"{1000 * itl.p99:.0f}: {wanted:,.0f} keep it within {1000 * limit:.0f}"
    )
    return _change(
        scene,
        "maxBatchedTokens",
        str(value),
        why if value <= wanted + 1 else f"{why}; no fewer than {value:,}: {highest}",
    )


def _larger_steps(scene: Scene) -> Change | No:
    """Back towards the plan's own value, where an earlier retune made steps smaller. Never beyond it: that would need memory
    that the plan has not shown to be there."""
    itl, limit = scene.signals.latencies.itl, scene.slo.itl_p99_s
    now, planned = scene.knobs.batched_tokens, int(scene.planned.get("maxBatchedTokens", 0))
    if planned <= now:
        return No(
            f"a step takes the {now:,} tokens that memory was planned for; a larger engine.maxBatchedTokens makes another plan"
        )
    value, why = planned, "it is set back to the plan's own value"
    if limit is not None:
        if itl is None or not itl.trusted:
            return No("nobody says how long gaps between tokens are", unsure=True)
        room = int(sizing.longest_step(now, itl.p50, itl.p99, limit))
        if room <= now:
            return No(
                f"gaps between tokens of {1000 * itl.p99:.0f} ms leave no room for longer steps within {1000 * limit:.0f}"
            )
        if room < planned:
            value, why = room, f"steps of {room:,} tokens keep gaps within {1000 * limit:.0f} ms"
    return _change(scene, "maxBatchedTokens", str(value), why)


def planned_before(scene: Scene, setting: str) -> str | None:
    """What was planned of a setting that an earlier retune has changed; None where it stands as planned."""
    before = scene.planned.get(setting)
    return None if before == scene.knobs.text(setting) else before


def _release(scene: Scene, setting: str) -> Change | No:
    before = planned_before(scene, setting)
    if before is None:
        return No("it stands as planned")
    if setting == "maxSequences" and int(before) > scene.knobs.held:
        return No(f"the engine refuses {before} while a step takes {scene.knobs.batched_tokens} tokens")
    return _change(scene, setting, before, "it is set back to the plan's own value")


def _change(scene: Scene, setting: str, after: str, why: str) -> Change:
    return Change(setting=setting, before=scene.knobs.text(setting), after=after, why=why)


def _block(scene: Scene) -> int:
    return int(scene.signals.mean("block_size") or BLOCK)


def _pool(scene: Scene) -> float | None:
    """Tokens of one rank's pool, as the engines report."""
    tokens = scene.signals.mean("kv_tokens") or float(scene.serving.capacity.kv_tokens)
    return tokens / scene.knobs.ranks or None


def _running(scene: Scene) -> float:
    """Requests that run in each rank of the replica that has most."""
    return (scene.signals.most("running") or 0.0) / scene.knobs.ranks
