"""The Plan: one frozen value that says what should run, where, why, and what was turned down.

It is stored whole in a ConfigMap and printed by the command line, so everything that a user is told is in it as data. `planner`
makes plans, `pinning` keeps or replaces them. Where nothing can run there is a Plan too: its findings name the field, the value
and what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from plimsoll.planning import codec
from plimsoll.planning.interval import Interval
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.load import Load, Performance
from plimsoll.planning.memory.ledger import Ledger, Verdict
from plimsoll.planning.settings import EngineSettings

SCHEMA: Final = 1
"""Part of every set's digest, so that raising it replaces all sets: raise it only when the meaning of a plan changes."""


class Outcome(StrEnum):
    """How planning ended."""

    FITS = "fits"
    TIGHT = "tight"
    """The ledger of a chosen set is tight: it is expected to start, but may fail."""
    SHORT = "short of GPUs"
    """A layout fits, but devices or budget are not enough for all the replicas that are wanted."""
    DOES_NOT_FIT = "does not fit"
    INVALID = "invalid"
    """What the user wrote contradicts itself or the model; nothing was planned."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something the user should know, in the form of a condition: a reason for machines, a message for people."""

    severity: Severity
    reason: str
    message: str
    """Names the field, the value and what would be right, in one or two sentences."""
    field: str | None = None
    """The user's field in question, as they spell it, e.g. topology.tensor."""
    value: str | None = None
    remedy: str | None = None


class Origin(StrEnum):
    """Who decided a value."""

    USER = "user"
    PRESET = "preset"
    NAMESPACE = "namespace default"
    CONFIG = "admin's config"
    DERIVED = "derived"
    MODEL = "model"
    ENGINE = "engine default"
    LEARNED = "learned"

    @property
    def by_hand(self) -> bool:
        """Whether a person has set it, for this deployment or its namespace. A preset is a start that planning may correct."""
        return self in (Origin.USER, Origin.NAMESPACE, Origin.CONFIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One decided value with all that `explain` prints."""

    name: str
    """As EngineSettings and PodResources spell it: max_model_len, memory_bytes, ...; or replicas, layout."""
    field: str | None
    """The field of the resource that sets it, e.g. workload.contextTokens; None where the user cannot set it."""
    value: str
    formula: str
    inputs: Mapping[str, str]
    origin: Origin
    source: str
    """The origin in words: preset chat, namespace default of team-a, vllm 0.33.0, ..."""
    changes: str
    """What would change the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The devices that one set runs on: all that the ledger, the price and a pod's request depend on."""

    gpu: str
    """Catalogue name."""
    card: str | None = None
    """Catalogue name of the card that a partition is a part of: prices and budgets speak of cards."""
    vendor: str
    resource: str
    memory_bytes: int
    sharing: int = 1
    partition: str | None = None
    via_dra: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    """Node labels that pin a pod to these devices, the user's own selector included."""
    claim_selector: str | None = None
    """Where pods get devices by claim (DRA): the expression (CEL) over device attributes that selects these."""
    price_per_hour: str | None = None
    """Price of one device for an hour; None where it is not known."""

    def __str__(self) -> str:
        parts = [self.gpu]
        if self.partition and self.partition not in self.gpu:
            parts.append(f"MIG {self.partition}" if self.vendor == "nvidia" else self.partition)
        if self.sharing > 1:
            parts.append(f"1/{self.sharing} shared")
        return " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """What one pod of a set asks for. A replica has as many pods as it spans nodes."""

    resource: str
    devices: int
    cpu_millis: int
    memory_bytes: int
    """Includes /dev/shm, which counts against it."""
    shm_bytes: int
    disk_bytes: int
    """What is fetched, and compile caches; 0 where volumes of the user's hold what is fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What sets cost: in device-hours always, and in money where prices are known."""

    gpu_hours_per_hour: float
    """Devices in use; a share of a device counts as its part."""
    per_hour: str | None
    """Money, a decimal string in the admin's currency; None where a price is unknown, never zero."""
    per_million_output_tokens: str | None = None
    """None as well where nothing is decoded."""
    per_million_requests: str | None = None
    """Set only where a request is answered at once: embeddings, scores, classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How many replicas of a set are expected in which pool. A forecast: the scheduler may choose any node that the set's selector allows."""

    pool: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSet:
    """Replicas that are all alike: one layout with one group of settings on one kind of hardware."""

    digest: str
    """Digest of hardware, layout, engine and settings, and not of the number of replicas. The set's name ends in it."""
    hardware: Hardware
    layout: Layout
    settings: EngineSettings
    replicas: int
    pods_per_replica: int
    """1 where a replica fits on one node."""
    resources: PodResources
    ledger: Ledger
    load: Load
    """The load that one replica is expected to carry."""
    performance: Performance | None
    """Prediction for that load; None where none is possible for the class of hardware, which a finding then says."""
    max_concurrency: int
    """Requests in flight on one replica up to which the latency target is predicted to hold."""
    meets_slo: bool | None
    """None without a target or without a prediction."""
    cost: Cost
    values: tuple[Value, ...]
    placements: tuple[Placement, ...] = ()
    most_per_second: float | None = None
    """Requests a second of one replica with `max_concurrency` in flight; None without a prediction, and in plans of the release before."""
    steady_per_second: float | None = None
    """Of a declared rate, how much one replica carries when requests come by chance, each of its own length; None without such a rate, and
    in plans of the release before."""

    @property
    def shape(self) -> Shape:
        return Shape(self.pods_per_replica, self.resources.devices)

    @property
    def devices_per_replica(self) -> int:
        return self.resources.devices * self.pods_per_replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A layout that was turned down, with the rule and the figures that decided."""

    layout: Layout
    hardware: tuple[str, ...]
    """All hardware on which the same rule and figures decided; empty where it is turned down on any."""
    rule: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A choice that would have worked, and why it was not taken."""

    sets: tuple[str, ...]
    """Each as replicas x layout on hardware."""
    replicas: int
    gpus: float
    cost: Cost
    verdict: Verdict
    tpot_ms: Interval | None
    ttft_ms: Interval | None
    output_tokens_per_second: float | None
    meets_slo: bool | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something the user could change to fit, or to serve faster or cheaper; never done unasked."""

    topic: str
    """quantization, kv-dtype, context, gpu, prices."""
    message: str
    takes: str
    """What the change needs: another checkpoint, a field, a risk for quality. Empty where the message says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinning:
    """Whether the pinned plan was kept, and why."""

    kept: bool
    reason: str
    """FirstPlan, Pinned, SpecChanged, LostHardware, SetFailed, Requested."""
    message: str
    better: str | None = None
    """For the condition BetterPlanAvailable: which plan would be better, and what it saves."""


def used(sets: Sequence[PlanSet]) -> tuple[PlanSet, ...]:
    """The sets with replicas, or all sets where none has any. A set without replicas beside others says nothing of what serves."""
    return tuple(chosen for chosen in sets if chosen.replicas) or tuple(sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    schema: int
    name: str
    namespace: str
    model: str
    """The source as the user wrote it."""
    model_digest: str
    model_origin: str
    """Which resolver had the facts of the model."""
    engine: str
    engine_version: str
    spec_digest: str
    """Digest of the fields that planning reads, with defaults and presets filled in."""
    outcome: Outcome
    replicas_wanted: int
    replicas_reason: str
    sets: tuple[PlanSet, ...] = ()
    """Cheapest first. Empty where nothing can run."""
    findings: tuple[Finding, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    advice: tuple[Advice, ...] = ()
    nearest: PlanSet | None = None
    """Where nothing fits: the layout that came nearest to fitting, so that its ledger can be shown."""
    choice: str = ""
    """Why these sets were chosen: the objective and the figures that decided."""
    cost: Cost | None = None
    pinning: Pinning | None = None

    @property
    def replicas(self) -> int:
        return sum(chosen.replicas for chosen in self.sets)

    @property
    def used(self) -> tuple[PlanSet, ...]:
        return used(self.sets)

    @property
    def devices(self) -> int:
        return sum(chosen.replicas * chosen.devices_per_replica for chosen in self.sets)

    @property
    def output_tokens_per_second(self) -> float | None:
        """Of all replicas together; None where a set has no prediction."""
        rates = [
            chosen.performance.output_tokens_per_second * chosen.replicas
            for chosen in self.sets
            if chosen.performance
        ]
        return sum(rates) if len(rates) == len(self.sets) and rates else None

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that `explain` prints: those of the first set, or of the nearest layout where nothing fits."""
        leading = self.sets[0] if self.sets else self.nearest
        return leading.values if leading else ()

    @property
    def digest(self) -> str:
        """Digest of what should run and not of how it is explained: two plans that start the same pods have the same digest."""
        running = [(chosen.digest, chosen.replicas) for chosen in self.sets]
        return codec.digest((self.schema, self.namespace, self.name, self.spec_digest, tuple(running)))

    def to_data(self) -> dict[str, object]:
        data: dict[str, object] = codec.encode(self)
        return data

    def to_bytes(self) -> bytes:
        return codec.canonical(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Plan:
        return codec.decode(cls, json.loads(data))

    @classmethod
    def from_data(cls, data: object) -> Plan:
        return codec.decode(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """The plans of many deployments on one inventory, and what they leave of it."""

    plans: tuple[Plan, ...]
    """Sorted by namespace and name."""
    order: tuple[str, ...]
    """namespace/name of each deployment in the order in which GPUs were given out, the most important first."""
    pools: tuple[PoolUse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """How many devices of a pool were free before and after planning."""

    pool: str
    devices: int
    free_before: int
    free_after: int
