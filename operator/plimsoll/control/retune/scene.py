"""What a retune looks at: the replicas before and with the change, the settings, and who allows what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals
from plimsoll.control.situation import NO_LIMITS, ServingSet, Slo
from plimsoll.facts.dtypes import Dtype
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import PlanSet
from plimsoll.planning.settings import EngineSettings

DEFAULT_ALLOWED: Final = ("watermark", "maxSequences")
LEAST_SEQUENCES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """The settings that may be retuned, as they are now."""

    max_sequences: int
    watermark_permille: int = 0
    utilization_percent: int = 90
    kv_dtype: str = "auto"
    tensor: int = 1
    context_tokens: int = 0

    def text(self, setting: str) -> str:
        return str(getattr(self, FIELDS[setting]))


FIELDS: Final[Mapping[str, str]] = {
    "watermark": "watermark_permille",
    "maxSequences": "max_sequences",
    "utilization": "utilization_percent",
    "kvCacheDtype": "kv_dtype",
    "tensor": "tensor",
    "contextTokens": "context_tokens",
}
"""Settings as spec.tuning.allow spells them."""


def knobs_of(chosen: PlanSet) -> Knobs:
    settings = chosen.settings
    return Knobs(
        max_sequences=settings.max_num_seqs,
        watermark_permille=settings.watermark_permille,
        utilization_percent=round(settings.utilization * 100),
        kv_dtype="auto" if settings.kv_dtype is None else settings.kv_dtype.value,
        tensor=chosen.layout.tensor,
        context_tokens=settings.max_model_len,
    )


def applied(
    settings: EngineSettings, layout: Layout, setting: str, value: str
) -> tuple[EngineSettings, Layout]:
    """A set's settings and layout with one change."""
    match setting:
        case "watermark":
            return replace(settings, watermark_permille=int(value)), layout
        case "maxSequences":
            return replace(settings, max_num_seqs=int(value)), layout
        case "utilization":
            return replace(settings, utilization=int(value) / 100), layout
        case "kvCacheDtype":
            return replace(settings, kv_dtype=None if value == "auto" else Dtype(value)), layout
        case "contextTokens":
            return replace(settings, max_model_len=int(value)), layout
        case "tensor":
            return settings, replace(layout, tensor=int(value))
    raise ValueError(f"{setting!r} is no setting that is retuned; those are {', '.join(FIELDS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What the user allows."""

    mode: Literal["auto", "dryRun", "off"] = "auto"
    allowed: tuple[str, ...] = DEFAULT_ALLOWED
    least_sequences: int = LEAST_SEQUENCES
    least_context: int | None = None
    """None: the context is never shortened."""
    disruption: bool = False

    @classmethod
    def of(cls, tuning: Tuning) -> Consent:
        floors = tuning.floors
        return cls(
            mode=tuning.mode or "auto",
            allowed=tuning.allow or DEFAULT_ALLOWED,
            least_sequences=(floors.max_sequences if floors else None) or LEAST_SEQUENCES,
            least_context=floors.context_tokens if floors else None,
            disruption=tuning.allow_disruption is True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the engine and the memory ledger offer; None and False: it cannot be had."""

    watermark: bool = False
    """The engine's version has the flag."""
    utilization_percent: int | None = None
    """The most that the ledger proves safe on this GPU."""
    kv_dtype: str | None = None
    """A narrower cache that hardware and model support."""
    tensor: int | None = None
    """The next layout inside a node, if GPUs for each token do not rise by more than a tenth."""
    context_tokens: int | None = None
    """p99.9 of the lengths that were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    now: float
    name: str
    """namespace/name."""
    knobs: Knobs
    """Of the set that serves, before the change."""
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
    offer: Offer = Offer()
    restarts: Restarts = field(default_factory=Restarts)
    spec: str = ""
    """Digest of the spec."""
    more_replicas: bool = False
    """There is room for more, within scaling.max and the fleet."""
    free_replicas: int = 0
    """Further replicas of the set that would find GPUs now."""
    start_s: float = 180.0
    """How long a replica takes to start."""
    data: bool = True
    """The data gate is open."""
    busy: str | None = None
    """Something else moves replicas: a rollout, a scale-up on its way."""
    scaled_at: float | None = None
    """When replicas were last added."""
    fleet_gpus: float = 0.0
    fleet_retuning: float = 0.0
    """GPUs of the fleet whose sets are in a retune now, this one's aside."""
    cleared_at: float | None = None
    """When a person last cleared the pause."""

    @property
    def ready(self) -> int:
        return self.serving.ready

    @property
    def gpus(self) -> float:
        return self.serving.gpus * max(1, self.serving.present)
