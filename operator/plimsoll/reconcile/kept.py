"""The pinned plan as it is kept in the cluster: whole, in one ConfigMap that the resource owns.

Beside it stand the plan that it replaced, so that a change of mind on the way finds the sets that still serve, what
a person asked for last, and what control remembers. A ConfigMap that cannot be read counts as lost: the plan is rebuilt from the sets' revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll import names
from plimsoll.api.plainjson import parsed
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.control.record import Record
from plimsoll.planning import codec
from plimsoll.planning.codec import CodecError
from plimsoll.planning.pinning import digest_before, spec_digest
from plimsoll.planning.plan import Plan

PREVIOUS_KEY: Final = "previous.json"
ASKED_KEY: Final = "replan"
CONTROL_KEY: Final = "control.json"
RETRY_KEY: Final = "retry.json"
SERVED_KEY: Final = "served"
MODELS_KEY: Final = "models.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """That a set is tried a second time with less, since its start failed for memory."""

    spec: str
    """Digest of the spec whose start failed."""
    set: str
    """The set that failed."""
    word: str
    """How it failed, as one of the supervisor's words."""
    field: str
    """The field of the spec that counts as if it were `after`."""
    before: str
    after: str

    @property
    def sentence(self) -> str:
        return f"{self.set} failed to start ({self.word}); since then spec.{self.field} counts as {self.after} instead of {self.before}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptModel:
    """What a pod in the owner's namespace has told of a model. It is kept there and nowhere else."""

    asked: str
    """Digest of what was asked."""
    source: str
    revision: str | None
    text: str
    ticket: str = ""
    """Names the reading that this is the answer of. Where a person has asked again since, another reading has another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    plan: Plan | None = None
    previous: Plan | None = None
    """The last plan of another spec, as long as any of its sets is there."""
    asked: str = ""
    """The value of the annotation that asked for a new plan, when it was last answered."""
    control: Record | None = None
    """What control decided and remembers; None: nothing yet."""
    retry: Retry | None = None
    served: tuple[str, ...] = ()
    """Sets that are there and had a ready pod at any time."""
    models: tuple[KeptModel, ...] = ()
    """Those in use first."""

    def beside(self) -> dict[str, str]:
        """What stands beside the plan in the ConfigMap's data."""
        data = {ASKED_KEY: self.asked} if self.asked else {}
        if self.previous is not None:
            data[PREVIOUS_KEY] = self.previous.to_bytes().decode()
        if self.control is not None:
            data[CONTROL_KEY] = codec.canonical(self.control).decode()
        if self.retry is not None:
            data[RETRY_KEY] = codec.canonical(self.retry).decode()
        if self.served:
            data[SERVED_KEY] = " ".join(self.served)
        if self.models:
            data[MODELS_KEY] = codec.canonical(self.models).decode()
        return data

    def of(self, spec: LLMDeploymentSpec) -> Kept:
        """With the digests by which an older release named this very spec replaced by today's: an upgrade is no edit."""
        before, now = digest_before(spec), spec_digest(spec)
        if before == now:
            return self
        found = self
        if self.plan is not None and self.plan.spec_digest == before:
            found = replace(found, plan=replace(self.plan, spec_digest=now))
        if self.previous is not None and self.previous.spec_digest == before:
            found = replace(found, previous=replace(self.previous, spec_digest=now))
        if self.retry is not None and self.retry.spec == before:
            found = replace(found, retry=replace(self.retry, spec=now))
        if self.control is not None:
            found = replace(found, control=_of(self.control, before, now))
        return found

    def numbered(self, made: Plan) -> Kept:
        """With the replicas that the sets of the kept plan have in `made`: a restart goes by them, and so does what a budget has left."""
        plan = self.plan
        if plan is None or [one.digest for one in plan.sets] != [one.digest for one in made.sets]:
            return self
        plan = replace(plan, sets=made.sets, replicas_wanted=made.replicas_wanted, cost=made.cost)
        return replace(self, plan=plan)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Kept:
        return cls(
            plan=_plan(data.get(names.PLAN_KEY)),
            previous=_plan(data.get(PREVIOUS_KEY)),
            asked=str(data.get(ASKED_KEY) or ""),
            control=_record(data.get(CONTROL_KEY)),
            retry=_retry(data.get(RETRY_KEY)),
            served=tuple(str(data.get(SERVED_KEY) or "").split()),
            models=_models(data.get(MODELS_KEY)),
        )


def _plan(text: object) -> Plan | None:
    """None where there is none, or one that this release cannot read."""
    if not isinstance(text, str):
        return None
    try:
        return Plan.from_data(parsed(text))
    except (CodecError, ValueError):
        return None


def _of(record: Record, before: str, now: str) -> Record:
    step, stays = record.retune.step, record.retune.kept
    if step is not None and step.spec == before:
        step = replace(step, spec=now)
    if stays is not None and stays.spec == before:
        stays = replace(stays, spec=now)
    return replace(record, retune=replace(record.retune, step=step, kept=stays))


def _record(text: object) -> Record | None:
    """Of a record that a newer release wrote, as much as can be read. An empty memory would be safe, but the number of replicas and what was
    done today are not to be lost for one unknown field."""
    if not isinstance(text, str):
        return None
    try:
        data = parsed(text)
    except ValueError:
        return None
    try:
        return codec.decode(Record, data)
    except CodecError:
        return codec.salvaged(Record, data) if isinstance(data, dict) else None


def _retry(text: object) -> Retry | None:
    """One that cannot be read counts as none: then the start may fail, and be tried with less, once more."""
    if not isinstance(text, str):
        return None
    try:
        return codec.decode(Retry, parsed(text))
    except (CodecError, ValueError):
        return None


def _models(text: object) -> tuple[KeptModel, ...]:
    """Answers that cannot be read count as none: pods read those models again."""
    if not isinstance(text, str):
        return ()
    try:
        return codec.decode(tuple[KeptModel, ...], parsed(text))
    except (CodecError, ValueError):
        return ()
