"""What a retune looks at: the replicas before and with the change, the settings, and who allows what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals
from plimsoll.control.situation import NO_LIMITS, ReplicaState, ServingSet, Slo
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import PlanSet
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.settle.changed import changed_set

DEFAULT_ALLOWED: Final = ("watermark", "maxSequences")
LEAST_SEQUENCES: Final = 8
LEAST_BATCHED: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """The settings that may be retuned, as they are now: of each data-parallel rank, which is an engine of its own."""

    max_sequences: int
    watermark_permille: int = 0
    batched_tokens: int = 2048
    tokens_each: int = 1
    """Tokens of a step that the engine must have for each request that may run."""
    ranks: int = 1
    """Of a replica. What is heard of one are sums over all of them."""

    @property
    def held(self) -> int:
        """Most requests that may run with steps of so many tokens."""
        return self.batched_tokens // self.tokens_each

    @property
    def most_running(self) -> int:
        """Requests that may run in a whole replica."""
        return self.max_sequences * self.ranks

    def text(self, setting: str) -> str:
        return str(getattr(self, KNOBS[setting]))


KNOBS: Final[Mapping[str, str]] = {
    "watermark": "watermark_permille",
    "maxSequences": "max_sequences",
    "maxBatchedTokens": "batched_tokens",
}
"""Settings as spec.tuning.allow spells them."""
SETTINGS: Final[Mapping[str, str]] = {
    "watermark": "watermark_permille",
    "maxSequences": "max_num_seqs",
    "maxBatchedTokens": "max_num_batched_tokens",
}
"""The same, as EngineSettings spells them. Settings that would need another memory ledger are not retuned."""
FIELDS: Final[Mapping[str, str]] = {
    "watermark": "engine.watermarkPermille",
    "maxSequences": "engine.maxSequences",
    "maxBatchedTokens": "engine.maxBatchedTokens",
}
"""The same, as a person sets them in the spec."""


def fixed_settings(binds: Callable[[str], bool]) -> tuple[str, ...]:
    """The settings whose field a person has set, as `binds` says of a field."""
    return tuple(setting for setting, field in FIELDS.items() if binds(field))


def knobs_of(settings: EngineSettings, layout: Layout) -> Knobs:
    knobs = {KNOBS[setting]: getattr(settings, field) for setting, field in SETTINGS.items()}
    return Knobs(**knobs, tokens_each=settings.tokens_each, ranks=layout.data)


def applied(settings: EngineSettings, setting: str, value: str) -> EngineSettings:
    """A set's settings with one change."""
    if setting not in SETTINGS:
        raise ValueError(f"{setting!r} is no setting that is retuned; those are {', '.join(SETTINGS)}")
    return replace(settings, **{SETTINGS[setting]: int(value)})  # type: ignore[arg-type]


def changed(
    chosen: PlanSet, setting: str, value: str, *, engine: str, version: str, why: str = ""
) -> PlanSet:
    """A planned set with one change."""
    return changed_set(
        chosen,
        applied(chosen.settings, setting, value),
        field=SETTINGS[setting],
        value=value,
        why=why,
        engine=engine,
        version=version,
    )


def named(about: str, said: str) -> str:
    """A sentence with the set that it is about, where the plan has several. The set comes first, as long sentences are cut at their end."""
    return f"{about}: {said}" if about else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What the user allows."""

    mode: Literal["auto", "dryRun", "off"] = "auto"
    allowed: tuple[str, ...] = DEFAULT_ALLOWED
    least_sequences: int = LEAST_SEQUENCES
    least_batched: int = LEAST_BATCHED
    disruption: bool = False
    fixed: tuple[str, ...] = ()
    """Settings that a person has set in the spec and not named as what may be retuned. They are only spoken of, in a dry run."""

    @classmethod
    def of(cls, tuning: Tuning, *, fixed: tuple[str, ...] = ()) -> Consent:
        floors = tuning.floors
        named = tuning.allows_by_name
        return cls(
            mode=tuning.mode or "auto",
            allowed=tuning.allow if named else DEFAULT_ALLOWED,
            fixed=() if named else fixed,
            least_sequences=(floors.max_sequences if floors else None) or LEAST_SEQUENCES,
            least_batched=(floors.batched_tokens if floors else None) or LEAST_BATCHED,
            disruption=tuning.allow_disruption is True,
        )

    def set_by_hand(self, setting: str, *, goes_back: bool) -> str | None:
        """That a setting is to stay as a person has set it; None where nobody has, or it `goes_back` to just that."""
        if setting not in self.fixed or goes_back:
            return None
        return f"spec.{FIELDS[setting]} sets it, and spec.tuning.allow does not name it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    now: float
    jumped_s: float = 0.0
    """Seconds by which the clock jumped since the last look; negative where it was put back."""
    name: str
    """namespace/name."""
    about: str = ""
    """The set that it is about, in words; empty where the plan has one."""
    kind: str = ""
    """The kind of that set, by layout, hardware and what runs there: what a retune shows says nothing of another kind. A retune that stays
    changes the digest of the set's entry in the plan, and not this."""
    knobs: Knobs
    """Of the set that serves, before the change."""
    planned: Mapping[str, str] = field(default_factory=dict)
    """Settings that earlier retunes changed, as the plan had them."""
    serving: ServingSet
    signals: Signals
    """Of the replicas without the change, or of all where there is no change."""
    changed: ServingSet | None = None
    """The set with the change, once it exists."""
    changed_signals: Signals | None = None
    window: Window = field(default_factory=Window)
    """The samples behind both."""
    slo: Slo = NO_LIMITS
    consent: Consent = Consent()
    has_watermark: bool = False
    """The engine's version has the flag."""
    restarts: Restarts = field(default_factory=Restarts)
    spec: str = ""
    """Digest of what planning reads of it."""
    serves: str = ""
    """Name of the set that serves. It changes with anything in its pods, so it tells an edit of those too."""
    wants_more: bool = False
    """The load asks for more replicas now."""
    wanted: float | None = None
    """How many the load asks for, in replicas of this set; None where that is not counted, as where a person fixed their number."""
    beside: float = 0.0
    """What the plan's other sets carry, in replicas of this one."""
    more_replicas: bool = False
    """There is room for more, within scaling.max and the fleet."""
    free_replicas: int = 0
    """Further replicas of the set that would find GPUs now."""
    start_s: float = 180.0
    """How long a replica takes to start."""
    data: bool = True
    """Whether metrics are good enough to decide by."""
    busy: str | None = None
    """Something else moves replicas: a rollout."""
    scaled_at: float | None = None
    """When replicas were last added."""
    scaled: bool = False
    """Their number, or how many of them each set has, is changed at this very tick."""
    fleet_gpus: float = 0.0
    fleet_retuning: float = 0.0
    """GPUs of the fleet whose sets are in a retune now, this one's aside."""
    cleared_at: float | None = None
    """When a person last cleared the pause."""

    @property
    def ready(self) -> int:
        return self.serving.ready

    @property
    def unchanged(self) -> int:
        """Replicas without the change that are heard, or will be: they have a node."""
        nowhere = (ReplicaState.UNSCHEDULABLE, ReplicaState.QUEUED, ReplicaState.NODE_COMING)
        return self.serving.present - self.serving.count(*nowhere)

    def named(self, said: str) -> str:
        return named(self.about, said)

    @property
    def gpus(self) -> float:
        return self.serving.gpus * max(1, self.serving.present)
