"""How many replicas there may be, what may be retuned, and how a change reaches them."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.base import Amount, ApiModel, Bool, Int, Rule, Seconds, field, listing

Replicas = Annotated[Int, Field(ge=0, le=1000)]


class WakeSignal(ApiModel):
    """What tells that a deployment without replicas is wanted again; it must live outside its pods."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="wake-one-signal",
            cel="has(self.query) != (has(self.annotation) && self.annotation)",
            holds=lambda m: (m.query is not None) != (m.annotation is True),
            message="exactly one of query and annotation (true) must be set",
        ),
    )

    forms: ClassVar[tuple[str, ...]] = ("{annotation: true}", '{query: "sum(gateway_queue)"}')

    query: Annotated[str, Field(min_length=1, max_length=2048)] | None = field(
        "A PromQL query over a gateway's metrics; above 0: somebody waits."
    )
    annotation: Bool | None = field(
        "A change of the annotation plimsoll.dev/wake, written by whoever holds the requests."
    )


class ScaleToZero(ApiModel):
    """Let the last replica go when nobody asks."""

    wake: WakeSignal = Field(description="What brings it back.")
    after_seconds: Annotated[Int, Field(ge=60, le=604800)] | None = field(
        "Idle time before it goes. Absent: 900."
    )


class Scaling(ApiModel):
    """Bounds for the number of replicas that Plimsoll decides while spec.replicas is absent."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="min-not-above-max",
            cel="!has(self.min) || !has(self.max) || self.min <= self.max",
            holds=lambda m: m.min is None or m.max is None or m.min <= m.max,
            message="min must not be above max",
            field="min",
        ),
        Rule(
            name="zero-needs-wake",
            cel="!has(self.min) || self.min > 0 || has(self.zero)",
            holds=lambda m: m.min is None or m.min > 0 or m.zero is not None,
            message="min 0 needs zero.wake: without a signal from outside nothing could bring a replica back",
            field="min",
        ),
        Rule(
            name="zero-needs-min-zero",
            cel="!has(self.zero) || !has(self.min) || self.min == 0",
            holds=lambda m: m.zero is None or m.min is None or m.min == 0,
            message="zero is set, so min must be 0 or absent",
            field="min",
        ),
    )

    min: Replicas | None = field("Fewest replicas. Absent: 1, or 0 with zero.")
    max: Annotated[Int, Field(ge=1, le=1000)] | None = field(
        "Most replicas. Absent: what the declared load needs, else 1, and no autoscaling."
    )
    up_window_seconds: Seconds | None = field(
        "How long more must be wanted for a step up. Absent: 30, or two looks if more."
    )
    down_window_seconds: Seconds | None = field(
        "How long less must be wanted for a step down. Absent: 450, or the start-up time if more; half "
        "where first tokens came in time for hours, more where load wavers."
    )
    zero: ScaleToZero | None = field("Let it go to no replica.")


class TuningFloors(ApiModel):
    """Values below which retuning must not go."""

    max_sequences: Annotated[Int, Field(ge=1, le=65536)] | None = field(
        "Requests that run at once. Absent: 8."
    )
    batched_tokens: Annotated[Int, Field(ge=1, le=1048576)] | None = field(
        "Prompt tokens of a step. Absent: 512."
    )


class Tuning(ApiModel):
    """What Plimsoll may change by itself when live signals ask for it. Each change is reversible and judged."""

    allow: tuple[Literal["watermark", "maxSequences", "maxBatchedTokens"], ...] = listing(
        "Settings that may be retuned. Absent: watermark and maxSequences where spec.engine leaves them "
        "open. maxBatchedTokens shortens gaps that long prompts make, at later first tokens.",
        most=3,
    )
    mode: Literal["auto", "dryRun", "off"] | None = field(
        "auto: act. dryRun: say what would be done. off: look away. Absent: auto."
    )
    floors: TuningFloors | None = field("Values below which retuning must not go.")
    allow_disruption: Bool | None = field(
        "Retune even when no GPU is free and the only or a needed replica must restart. Absent: false."
    )

    @property
    def allows_by_name(self) -> bool:
        """Whether `allow` is written. An empty list allows nothing; an absent one leaves it to what may be retuned anyway."""
        return "allow" in self.model_fields_set


class Canary(ApiModel):
    """Give a change to a part of the replicas first."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="canary-rises",
            cel="self.percents.isSorted()",
            holds=lambda m: list(m.percents) == sorted(m.percents),
            message="percents must not fall from step to step",
            field="percents",
        ),
    )

    percents: Annotated[tuple[Annotated[Int, Field(ge=1, le=100)], ...], Field(min_length=1)] = Field(
        description="Share of replicas on the new set at each step, rising.",
        max_length=10,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    hold_seconds: Seconds | None = field("How long each step is watched. Absent: 600.")


class Rollout(ApiModel):
    """How replicas move from one serving set to the next."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="replace-no-surge",
            cel="!has(self.strategy) || self.strategy != 'replace' || !has(self.maxSurge)",
            holds=lambda m: m.strategy != "replace" or m.max_surge is None,
            message="maxSurge belongs to strategy surge; replace takes no extra GPUs",
            field="maxSurge",
        ),
    )

    strategy: Literal["surge", "replace"] | None = field(
        "surge: the new replica first, then the old one goes. replace: the old one goes first, for full "
        "clusters. Absent: surge where GPUs are free, else replace."
    )
    max_surge: Annotated[Int, Field(ge=1, le=100)] | None = field("Extra replicas during a surge. Absent: 1.")
    canary: Canary | None = field("Steps by which a change reaches the replicas. Absent: one by one.")
    hold: Bool | None = field(
        "Stop moving replicas where the rollout stands; serving goes on. Absent: false."
    )
    rollback: Literal["auto", "manual"] | None = field(
        "What happens when the new set fails or dies. Absent: auto, back to the old set with the reason."
    )
    deadline_seconds: Annotated[Int, Field(ge=60, le=86400)] | None = field(
        "Longest load, or lack of a volume or scheduler. Absent: by the bytes to load."
    )
    drain_seconds: Annotated[Int, Field(ge=0, le=86400)] | None = field(
        "Time for running answers to finish before a replica stops. Absent: from output lengths and latency."
    )


class Cost(ApiModel):
    """Limits in the currency of the admin's prices."""

    max_per_hour: Amount | None = field(
        'Most that all replicas may cost an hour, as "24.50", by the admin\'s prices. Absent: no limit.'
    )
