"""A ramp that somebody handed in, judged once: what it teaches, or why nothing can be learned from it.

Which record was judged stands in the status, so that neither a restart nor another turn judges it again; one that teaches stands
there once its lesson is kept, so that no crash loses it. It speaks of one set that serves alone as it was planned; whatever else
answered would be believed for everybody who has that model on such devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll import names
from plimsoll.api.defaults import effective
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.status import RampStatus
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.learned import Learned, paced
from plimsoll.facts.learned_speed import MOST_FACTOR, Speed
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.ramp_record import RampRecord, RecordError, read_record, record_digest
from plimsoll.facts.spans import minute
from plimsoll.planning.ask.quantize import as_served
from plimsoll.planning.choice.candidate import cache_of
from plimsoll.planning.memory.learned_key import speed_key
from plimsoll.planning.plan import PlanSet
from plimsoll.planning.speed.learning import speed_of
from plimsoll.planning.speed.performance import Replica
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.lessons.as_planned import NotAsPlanned, Runs, runs
from plimsoll.reconcile.lessons.measured import Measured, planned_sets
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from plimsoll.status.live import timestamp
from plimsoll.status.summary import cut

AHEAD_SECONDS: Final = 600
"""By which somebody's clock may be ahead: a record from further on would keep all later ones out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRamp:
    record: str
    """Its digest."""
    speed: Speed | None
    """What it teaches; None where it was refused."""
    message: str


def ramp_told(what: JudgedRamp | None, now: float) -> RampStatus | None:
    """The verdict as the status has it."""
    if what is None:
        return None
    message = cut(what.message)
    return RampStatus(record=what.record, taken=what.speed is not None, message=message, at=timestamp(now))


@dataclass(slots=True)
class Ramps:
    """Verdicts that the status does not tell yet.

    One that teaches has to wait until what it taught is kept. It is remembered meanwhile, since what serves by then is not what was
    measured, and would give another verdict.
    """

    _judged: dict[str, JudgedRamp] = field(default_factory=dict)
    """By deployment."""

    def look(self, key: str, seen: Seen, decision: Decision, measured: Measured) -> JudgedRamp | None:
        """The verdict that may be told now; None where there is none, or where what it taught is not kept yet."""
        record = ramp_untold(seen.deployment)
        found = self._judged.get(key)
        if found is None or found.record != record:
            found = judge_ramp(seen, decision, measured.own)
        if found is None:
            self.forget(key)
            return None
        self._judged[key] = found
        return found if found.speed is None or measured.take(found.speed) else None

    def waits(self, key: str) -> bool:
        """Whether a verdict is still to be told."""
        return key in self._judged

    def forget(self, key: str) -> None:
        self._judged.pop(key, None)


def ramp_untold(deployment: LLMDeployment) -> str:
    """Digest of a handed-in record whose verdict the status does not tell yet; empty where there is none."""
    text = deployment.metadata.annotations.get(names.ANNOTATION_RAMP)
    told = deployment.status.ramp
    if not text or (told is not None and told.record == record_digest(text)):
        return ""
    return record_digest(text)


def judge_ramp(seen: Seen, decision: Decision, own: Learned) -> JudgedRamp | None:
    """None where nothing new was handed in. `own` is what this cluster has taught, without what an admin brought."""
    digest = ramp_untold(seen.deployment)
    if not digest:
        return None
    text = seen.deployment.metadata.annotations[names.ANNOTATION_RAMP]
    try:
        speed = _speed(read_record(text), seen, decision, own)
    except (RecordError, NotAsPlanned) as why:
        return JudgedRamp(record=digest, speed=None, message=f"the ramp was refused: {why}")
    return JudgedRamp(record=digest, speed=speed, message=_said(speed))


def _speed(record: RampRecord, seen: Seen, decision: Decision, own: Learned) -> Speed:
    if record.at > seen.now + AHEAD_SECONDS:
        raise RecordError(
            f"it is of {minute(record.at)}, which is still to come; mind the clock it was made by"
        )
    serves = _serving(record, seen, planned_sets(decision))
    there, entry = runs(seen, decision, serves), serves.entry
    if entry.hardware.sharing > 1:
        raise RecordError("the set shares its devices, so neighbours were measured too")
    model, engine = _in_memory(there, seen), there.engine
    key = speed_key(model, there.gpu, entry.layout, engine, entry.settings)
    known = own.speed(key)
    if known is not None and known.at > record.at:
        raise RecordError(f"a newer ramp of the same model and layout is known, of {minute(known.at)}")
    speed = speed_of(record, _replica(entry, model, engine), key, name=model.source)
    if speed is None:
        raise RecordError(
            "all its loads were more than the plan's cache and steps carry; start with a lower one"
        )
    if paced(own, speed).speed(key) != speed:
        raise RecordError("as many newer ramps are known as are kept")
    return speed


def _serving(record: RampRecord, seen: Seen, planned: Mapping[str, Revision]) -> Revision:
    """The set that was measured, which serves alone and as it was planned."""
    ready = {one.name: one.ready for one in seen.serving.sets if one.ready}
    if record.set not in ready:
        raise RecordError(f"it is of the set {record.set[:63]!a}, which does not serve")
    if len(ready) > 1:
        raise RecordError(f"{len(ready)} sets serve, and nobody knows which of them answered")
    if record.replicas > ready[record.set]:
        raise RecordError(f"it is of {record.replicas} replicas, and {ready[record.set]} serve")
    if seen.deployment.spec.paused is True:
        raise RecordError("the deployment is paused, so that what serves may not be what is planned")
    if record.set not in planned:
        raise RecordError("the set that serves is not what is planned now, or nothing can be planned now")
    return planned[record.set]


def _in_memory(there: Runs, seen: Seen) -> ModelFacts:
    deployment = seen.deployment
    spec = effective(deployment.spec, deployment.namespace, seen.config).spec
    return as_served(there.model, spec.quantization.method, there.engine)[0]


def _replica(entry: PlanSet, model: ModelFacts, engine: EngineFacts) -> Replica:
    """By the model alone, without what ramps before have taught."""
    capacity = cache_of(entry.ledger)
    return Replica.of(
        model=model,
        gpu=gpu_named(entry.hardware.gpu),
        layout=entry.layout,
        engine=engine,
        settings=entry.settings,
        kv_tokens=None if capacity is None else capacity.tokens.mid,
    )


def _said(speed: Speed) -> str:
    at_bound = any(one in (MOST_FACTOR, 1 / MOST_FACTOR) for one in (speed.ttft, speed.tpot))
    bound = f"; no prediction is moved by more than {MOST_FACTOR:g} times" if at_bound else ""
    return (
        f"from the ramp of {minute(speed.at)}, {speed.loads}: first tokens take {speed.ttft:.2f} times, "
        f"further ones {speed.tpot:.2f} times as long as the model says ({speed.key.flags} on {speed.key.gpu}){bound}"
    )
