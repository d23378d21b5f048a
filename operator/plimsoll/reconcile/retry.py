"""One automatic second try, with less, where a start failed because the engine asked more of the memory than there is.

What is lowered is one setting that nobody has fixed. It stands beside the pinned plan, so that a restart of the operator tries no
third time, until the spec is edited or a person asks for a new plan. When the second try fails as well, a person has to act.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from plimsoll.api.defaults import Effective, effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.gpus import GIB
from plimsoll.facts.serving import SetSeen, Stage
from plimsoll.planning.pinning import Event, Wish, spec_digest
from plimsoll.planning.plan import Origin, Plan, PlanSet, Severity
from plimsoll.planning.settle.changed import planned_value
from plimsoll.reconcile.kept import Retry
from plimsoll.reconcile.seen import Seen

LEAST_UTILIZATION: Final = 50
LEAST_CONTEXT: Final = 2048
LEAST_BATCHED: Final = 1024


Lower = Callable[[PlanSet], tuple[int, int] | None]
"""How a setting of a set is lowered: what it is now and what it should be, or None where less makes no sense."""


def _sequences(chosen: PlanSet) -> tuple[int, int] | None:
    now = chosen.settings.max_num_seqs
    return (now, now // 2) if now > 1 else None


def _batched(chosen: PlanSet) -> tuple[int, int] | None:
    now = chosen.settings.max_num_batched_tokens
    less = max(now // 2, LEAST_BATCHED, chosen.settings.max_num_seqs * chosen.settings.tokens_each)
    return (now, less) if less < now else None


def _utilization(chosen: PlanSet) -> tuple[int, int] | None:
    now = round(100 * chosen.settings.utilization)
    fixed = chosen.settings.kv_cache_bytes is not None
    return (now, now - 5) if not fixed and now - 5 >= LEAST_UTILIZATION else None


def _context(chosen: PlanSet) -> tuple[int, int] | None:
    now = chosen.settings.max_model_len
    return (now, now // 2) if now // 2 >= LEAST_CONTEXT else None


def _cpu_cache(chosen: PlanSet) -> tuple[int, int] | None:
    now = (chosen.settings.kv_cache_bytes or 0) // GIB
    return (now, now // 2) if chosen.hardware.vendor == "cpu" and now > 1 else None


@dataclass(frozen=True, slots=True)
class Lowering:
    """A field of the spec that can be set to less."""

    setting: str
    """The engine setting that the field decides."""
    less: Lower
    unit: str = ""
    others: tuple[str, ...] = ()
    """Other fields that decide the same."""

    def is_fixed(self, field: str, merged: Effective) -> bool:
        """Whether a person has set it, by this field or by another one, so that it must not be lowered."""
        return any(merged.binds(one) for one in (field, *self.others))


FIELDS: Final[Mapping[str, Lowering]] = {
    "engine.maxSequences": Lowering("max_num_seqs", _sequences),
    "engine.maxBatchedTokens": Lowering("max_num_batched_tokens", _batched),
    "memory.utilizationPercent": Lowering("utilization", _utilization),
    "workload.contextTokens": Lowering("max_model_len", _context),
    "topology.cpu.kvCacheSize": Lowering("kv_cache_bytes", _cpu_cache, "Gi", ("memory.kvCacheSize",)),
}
RUNGS: Final[Mapping[str, tuple[str, ...]]] = {
    "GraphCapture": ("memory.utilizationPercent", "engine.maxSequences"),
    "HostOutOfMemory": ("topology.cpu.kvCacheSize",),
    "NoKvRoom": ("topology.cpu.kvCacheSize", "engine.maxSequences", "engine.maxBatchedTokens"),
    "ProfileOutOfMemory": ("engine.maxBatchedTokens", "engine.maxSequences"),
    "RequestLongerThanPool": ("workload.contextTokens", "engine.maxSequences", "engine.maxBatchedTokens"),
    "TooManySequences": ("engine.maxSequences",),
}
"""By the supervisor's word for a failure, what to lower: the first of these fields that nobody has fixed.

GpuMemoryTaken is not among them: others will not hold that memory for ever, the preflight waits for it, and a lowered plan would
stay lowered. Nor is WeightsDoNotFit: no setting that could be lowered makes weights smaller. HostOutOfMemory has a cure only on
CPUs, where a setting says how much of the host's memory the cache takes."""


def planned(
    seen: Seen, spec: LLMDeploymentSpec | None, pinned: Plan | None, event: Event | None, wish: Wish | None
) -> tuple[Plan, Seen]:
    """The plan of this turn, and what is seen and kept with it.

    Where a start failed for memory, or did so earlier, the plan is the second try, with less than the spec says.
    """
    seen = _noted(seen)
    digest = "" if spec is None else spec_digest(spec)
    known = seen.kept.retry
    stands = known is not None and known.spec == digest and event is not Event.REQUESTED
    retry = known if stands else None if event is Event.REQUESTED else _due(seen, spec, pinned, digest)
    asked = None if retry is None else lowered(seen.deployment, retry)
    if retry is not None and asked is not None:
        try:
            less = spec_digest(effective(asked.spec, asked.namespace, seen.config).spec)
        except SpecError:
            less = ""
        before = pinned and replace(pinned, spec_digest=less)
        after = event or (None if stands else Event.SET_FAILED)
        made = seen.plan(asked, pinned=before, event=after, wish=wish)
        fits = made.sets and not any(found.severity is Severity.ERROR for found in made.findings)
        if stands or fits:  # a try that stands outlives an error that passes
            made = replace(made, spec_digest=digest, sets=tuple(_explained(one, retry) for one in made.sets))
            return made, _given_up(seen, retry)
    made = seen.plan(seen.deployment, pinned=pinned, event=event, wish=wish)
    # Of a spec whose preset is gone nobody can say whether it is another one.
    return made, replace(seen, kept=replace(seen.kept, retry=known if spec is None else None))


def lowered(deployment: LLMDeployment, retry: Retry) -> LLMDeployment | None:
    """The deployment as if its owner had asked for less; None where that contradicts something else that they ask for."""
    data = deployment.spec.to_dict()
    inner: dict[str, Any] = data
    *above, last = retry.field.split(".")
    for part in above:
        inner = inner.setdefault(part, {})
    inner[last] = int(retry.after) if retry.after.isdecimal() else retry.after
    try:
        return deployment.model_copy(update={"spec": LLMDeploymentSpec.model_validate(data)})
    except ValidationError:
        return None


def _due(seen: Seen, spec: LLMDeploymentSpec | None, pinned: Plan | None, digest: str) -> Retry | None:
    """A second try for the first set of the pinned plan whose engines failed for memory before any of them has served; None where there is
    none, or nothing that could be lowered."""
    if pinned is None or spec is None or pinned.spec_digest != digest or seen.deployment.spec.paused is True:
        return None
    merged = effective(seen.deployment.spec, seen.deployment.namespace, seen.config)
    entries = {revision.entry.digest: name for name, revision in seen.revisions.items()}
    for chosen in pinned.sets:
        name = entries.get(chosen.digest, "")
        there = seen.serving.set_named(name)
        word = "" if there is None or there.failed or name in seen.kept.served else _word(there)
        for field in RUNGS.get(word, ()):
            how = FIELDS[field]
            less = None if how.is_fixed(field, merged) else how.less(chosen)
            if less is None:
                continue
            before, after = (f"{value}{how.unit}" for value in less)
            retry = Retry(spec=digest, set=name, word=word, field=field, before=before, after=after)
            if lowered(seen.deployment, retry) is not None:
                return retry
    return None


def _noted(seen: Seen) -> Seen:
    """With the sets that have served at any time noted, for later turns and for the rollout."""
    served = _served(seen)
    sets = tuple(replace(one, never_served=one.name not in served) for one in seen.serving.sets)
    return replace(seen, kept=replace(seen.kept, served=served), serving=replace(seen.serving, sets=sets))


def _served(seen: Seen) -> tuple[str, ...]:
    """Sets that have served at any time. Their memory was enough to start: where one fails to start again, something else takes memory."""
    ready = (one.name for one in seen.serving.sets if any(pod.stage is Stage.READY for pod in one.pods))
    # Told by revisions, which a snapshot holds too, so that `plimsoll render` comes to the same.
    return tuple(sorted({*ready, *(name for name in seen.kept.served if name in seen.revisions)}))


def _word(there: SetSeen) -> str:
    """How its engines fail for memory, in the supervisor's word; empty where none does now. One that is loading again may yet serve."""
    failed = (pod for pod in there.pods if pod.stage is Stage.FAILED and pod.beside is None)
    words = (pod.failure.word for pod in failed if pod.failure is not None)
    # The other pods of a group only tell that the group has ended.
    return next((word for word in words if word in RUNGS), "")


def _explained(chosen: PlanSet, retry: Retry) -> PlanSet:
    """With the lowered setting's origin: a failed start, and not something that a person wrote. What a retune has made of it since is its own."""
    name = FIELDS[retry.field].setting
    values = tuple(
        replace(
            one,
            origin=Origin.LEARNED,
            source=f"a start that failed: {retry.word}",
            formula=f"less than {retry.before}",
        )
        if one.name == name and planned_value(one) is None
        else one
        for one in chosen.values
    )
    return replace(chosen, values=values)


def _given_up(seen: Seen, retry: Retry) -> Seen:
    """With the set that failed marked as given up, so that no rollout goes back to it."""
    sets = tuple(
        replace(one, failed=f"a start failed for memory: {retry.word}")
        if one.name == retry.set and not one.failed
        else one
        for one in seen.serving.sets
    )
    return replace(seen, serving=replace(seen.serving, sets=sets), kept=replace(seen.kept, retry=retry))
