"""Which setting, and to what: the cheapest and safest rung that the user allows and that would really help.

Every rung answers with a change, or with why not, and the refusals travel with the choice. Sizes come from `sizing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.retune import sizing
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.symptoms import Seen, Symptom

AIM = 0.2
"""Share of the preemptions that may be left: a rung that would leave more is not worth a restart."""
CALM = 0.01
BLOCK = 16
"""Tokens of a block where the engine does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    setting: str
    before: str
    after: str
    why: str
    """The figures that made the size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    change: Change | None
    refused: tuple[str, ...] = ()
    """Rungs above it that were passed over, each with its reason."""


def choose(scene: Scene, seen: Seen, *, barred: dict[str, str], planned: dict[str, str]) -> Choice:
    """`barred` are settings that may not be touched now, with the reason; `planned` are their values before any retune."""
    refused = []
    for setting, rung in _rungs(scene, seen, planned):
        if setting not in scene.consent.allowed:
            refused.append(f"{setting}: spec.tuning.allow does not name it")
        elif setting in barred:
            refused.append(f"{setting}: {barred[setting]}")
        elif isinstance(rung, str):
            refused.append(f"{setting}: {rung}")
        else:
            return Choice(change=rung, refused=tuple(refused))
    return Choice(change=None, refused=tuple(refused))


def _rungs(scene: Scene, seen: Seen, planned: dict[str, str]) -> list[tuple[str, Change | str]]:
    match seen.symptom:
        case Symptom.SLOW_TOKENS:
            return [("maxSequences", _fewer_for_latency(scene))]
        case Symptom.CAPPED:
            return [("maxSequences", _more(scene))]
        case Symptom.RELAXED:
            return [(setting, _release(scene, setting, planned)) for setting in ("maxSequences", "watermark")]
    cheap, dear = _watermark(scene, sizing.CHEAP_WATERMARK), _watermark(scene, sizing.MOST_WATERMARK)
    return [
        ("watermark", cheap),
        ("maxSequences", _fewer_for_pool(scene)),
        ("watermark", dear),
        ("utilization", _utilization(scene)),
        ("kvCacheDtype", _kv_dtype(scene)),
        ("tensor", _tensor(scene)),
        ("contextTokens", _context(scene)),
    ]


def _watermark(scene: Scene, most: int) -> Change | str:
    if not scene.offer.watermark:
        return "this engine version has none"
    pool, live, preempted = _pool(scene), sizing.live_of(scene.signals), scene.signals.preempted_share
    if pool is None or live is None or preempted is None:
        return "pool or lengths are not known yet"
    block, now = int(scene.signals.mean("block_size") or BLOCK), scene.knobs.watermark_permille
    aim = max(CALM, AIM / 2 * preempted)
    value = sizing.watermark(pool, block, live, preempted=preempted, aim=aim, now_permille=now)
    left = aim / preempted
    if value > most:
        left = sizing.left(pool, block, live, most - now)
        if left > AIM:
            return f"{value} of 1,000 blocks would have to stay free, more than {most}"
        value = most
    if value <= now:
        return "no more blocks would help"
    why = (
        f"running requests grow by {live.output / block:.1f} blocks before one of them ends; {value} of 1,000 blocks kept "
        f"free leave {left:.0%} of the preemptions"
    )
    return _change(scene, "watermark", str(value), why)


def _fewer_for_pool(scene: Scene) -> Change | str:
    pool, live = _pool(scene), sizing.live_of(scene.signals)
    if pool is None or live is None:
        return "pool or lengths are not known yet"
    holds = sizing.sequences(pool, live)
    running = max((each.running or 0.0 for each in scene.signals.replicas), default=0.0)
    why = (
        f"a running request holds {live.mean:,.0f} tokens, give or take {live.deviation:,.0f}, and the pool "
        f"{pool:,.0f}: it holds {holds} of them"
    )
    return _fewer(scene, holds, why, running)


def _fewer_for_latency(scene: Scene) -> Change | str:
    itl, limit = scene.signals.latencies.itl, scene.slo.itl_p99_s
    if itl is None or limit is None:
        return "no latency between tokens is known"
    now = scene.knobs.max_sequences
    return _fewer(
        scene, int(0.95 * now * limit / itl.p99), "the gap between tokens grows with those running", now
    )


def _fewer(scene: Scene, value: int, why: str, running: float) -> Change | str:
    now, floor = scene.knobs.max_sequences, scene.consent.least_sequences
    # Half of what is allowed now, or of what really runs where that is less: a further step can follow.
    least = max(floor, int(min(now, max(running, 1.0)) / 2))
    if floor > value:
        why += f"; the floor is {floor}"
    value = max(value, least)
    if value >= now or value >= running:
        return f"{value} would be no fewer than run now ({running:.0f})"
    return _change(scene, "maxSequences", str(value), why)


def _more(scene: Scene) -> Change | str:
    pool, live, now = _pool(scene), sizing.live_of(scene.signals), scene.knobs.max_sequences
    if pool is None or live is None:
        return "pool or lengths are not known yet"
    value = min(sizing.sequences(pool, live), int(1.5 * now))
    if value <= now:
        return f"the pool holds {value} requests, no more than may run"
    return _change(
        scene, "maxSequences", str(value), f"the pool holds {sizing.sequences(pool, live)} requests"
    )


def _utilization(scene: Scene) -> Change | str:
    most, now = scene.offer.utilization_percent, scene.knobs.utilization_percent
    if most is None or min(95, most) <= now:
        return f"no more than {now}% of the GPU is proven safe"
    return _change(scene, "utilization", str(min(95, most)), "the memory ledger proves it safe on this GPU")


def _kv_dtype(scene: Scene) -> Change | str:
    narrower = scene.offer.kv_dtype
    if narrower is None or narrower == scene.knobs.kv_dtype:
        return "hardware or model have no narrower cache"
    return _change(scene, "kvCacheDtype", narrower, "the pool then holds about twice the tokens")


def _tensor(scene: Scene) -> Change | str:
    wider = scene.offer.tensor
    if wider is None or wider <= scene.knobs.tensor:
        return "no wider layout inside a node is as good for each GPU"
    return _change(scene, "tensor", str(wider), "weights over more GPUs leave more of each to the pool")


def _context(scene: Scene) -> Change | str:
    seen, least = scene.offer.context_tokens, scene.consent.least_context
    if least is None or seen is None:
        return "spec.tuning.floors.contextTokens is absent, or too few lengths were seen"
    value = max(seen, least)
    if value >= scene.knobs.context_tokens:
        return "requests are as long as the context"
    return _change(scene, "contextTokens", str(value), "it refuses requests that would crowd out many others")


def _release(scene: Scene, setting: str, planned: dict[str, str]) -> Change | str:
    if setting not in planned or planned[setting] == scene.knobs.text(setting):
        return "it stands as planned"
    return _change(scene, setting, planned[setting], "it is set back to the plan's own value")


def _change(scene: Scene, setting: str, after: str, why: str) -> Change:
    return Change(setting=setting, before=scene.knobs.text(setting), after=after, why=why)


def _pool(scene: Scene) -> float | None:
    """Tokens of one replica's pool, as the engines report."""
    return scene.signals.mean("kv_tokens") or (float(scene.serving.capacity.kv_tokens) or None)
