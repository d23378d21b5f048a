"""What a user reads back: observed, recomputable, and told with reasons. Only the operator writes it."""

from typing import Annotated, Final, Literal

from pydantic import Field

from plimsoll.api.base import ApiModel, Bool, Decimal, Int, Percent, Tokens, field, listing
from plimsoll.api.v1alpha1.features import MOST_ADAPTERS

Timestamp = Annotated[str, Field(max_length=32, json_schema_extra={"format": "date-time"})]
Short = Annotated[str, Field(max_length=63)]
"""A word of the operator's own. What it writes is bounded; patterns guard what users write."""
Text = Annotated[str, Field(max_length=1024)]
Name = Annotated[str, Field(max_length=253)]
Count = Annotated[Int, Field(ge=0)]
MOST_SETS: Final = 32
"""Serving sets that are told."""


class Condition(ApiModel):
    """One condition, in the form that Kubernetes and kstatus agree on."""

    type: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        description="What the condition is about."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: Annotated[str, Field(min_length=1, max_length=63)] = Field(description="Why, in one stable word.")
    message: Annotated[str, Field(max_length=2048)] = Field(
        description="Why, in one sentence, with the remedy."
    )
    last_transition_time: Timestamp = Field(description="When status last changed.")
    observed_generation: Count | None = field("Generation of the spec that was judged.")


class LedgerTerm(ApiModel):
    """One term of the memory ledger, for each GPU."""

    name: Short = Field(
        description="weights, activation, graphs, context, lora, draft, encoder, kv, headroom, ..."
    )
    bytes: Count = Field(description="Bytes of each GPU.")
    source: Short = Field(description="exact, calibrated, learned or assumed.")


class Alternative(ApiModel):
    """A plan that was considered and not chosen."""

    layout: Short = Field(description="Layout, as tp8-pp2.")
    gpu: Name = Field(description="GPU product, or cpu.")
    cost_per_hour: Decimal | None = field("Price of a replica.")
    reason: Text = Field(description="Why it was not chosen.")


class PlanStatus(ApiModel):
    """The pinned plan, in short. The whole of it stands in the ConfigMap."""

    digest: Annotated[str, Field(max_length=71)] = Field(description="Digest of the pinned plan.")
    config_map: Name | None = field("ConfigMap that holds the plan.")
    layout: Short | None = field("Layout, as tp8-pp2.")
    gpu: Name | None = field("GPU product, or cpu; several joined by a comma.")
    gpus_per_replica: Count | None = field("GPUs of a replica.")
    nodes_per_replica: Count | None = field("Nodes of a replica.")
    quantization: Short | None = field("Precision of the weights.")
    context_tokens: Count | None = field("Longest request.")
    max_sequences: Count | None = field("Most running requests of a replica.")
    kv_tokens: Count | None = field("Tokens that the KV pool of a replica holds.")
    utilization_percent: Percent | None = field("Share of each GPU that the engine takes.")
    verdict: Literal["Fits", "Tight", "DoesNotFit"] | None = field("What the ledger says.")
    oom_risk: Short | None = field("Risk of running out of memory, in a word.")
    cost_per_hour: Decimal | None = field("Price of all planned replicas.")
    predicted_ttft_ms: Count | None = field("Predicted p99 of the time to the first token.")
    predicted_itl_ms: Count | None = field("Predicted p99 of the gap between tokens.")
    predicted_running: Count | None = field("Running requests of a replica at which it is.")
    ledger: tuple[LedgerTerm, ...] = listing("Where the memory of each GPU goes.", most=24, keys=("name",))
    alternatives: tuple[Alternative, ...] = listing("Best plans not chosen.", most=3, atomic=True)
    reason: Text | None = field("Why this plan.")
    pinned_at: Timestamp | None = field("When it was pinned.")


class SetStatus(ApiModel):
    """One serving set."""

    name: Name = Field(description="Name of the set.")
    pool: Name | None = field("Pool of GPUs.")
    layout: Short | None = field("Layout.")
    replicas: Count = Field(default=0, description="Replicas wanted.")
    ready: Count = Field(default=0, description="Replicas that serve.")
    state: Literal["Serving", "Starting", "Canary", "Draining", "Failed"] | None = field("What it is doing.")
    reason: Text | None = field("Why.")
    warning: Text | None = field("What its engines find to be other than planned, which costs speed alone.")


class ReplicaStatus(ApiModel):
    """Where the replicas are that should be there."""

    wanted: Count | None = field("Replicas wanted now, by the user or by Plimsoll.")
    ready: Count | None = field("Serving.")
    starting: Count | None = field("Loading.")
    waiting_for_gpus: Count | None = field("No GPU is free.")
    waiting_for_nodes: Count | None = field("A node is being made.")
    waiting_for_quota: Count | None = field("A queue or quota holds them back.")
    reason: Text | None = field("Why this number.")


class TuningStep(ApiModel):
    """One retune, written down before it is made."""

    id: Short = Field(description="Identity of the step.")
    setting: Short = Field(description="What is changed.")
    before: Annotated[str, Field(max_length=63)] = Field(description="Value before.")
    after: Annotated[str, Field(max_length=63)] = Field(description="Value after.")
    state: Literal[
        "Planned", "Canary", "Judging", "Rolling", "Verifying", "Done", "RollingBack", "Failed", "DryRun"
    ] = Field(description="How far it is.")
    reason: Text = Field(description="What asked for it, and how it was judged.")
    started_at: Timestamp | None = field("When it began.")
    finished_at: Timestamp | None = field("When it ended.")
    deadline: Timestamp | None = field("When it is given up.")


class ScalingStep(ApiModel):
    """One change of the number of replicas that live traffic asked for."""

    at: Timestamp = Field(description="When it was decided.")
    before: Count = Field(description="Replicas before.")
    after: Count = Field(description="Replicas after.")
    reason: Short = Field(description="Why, in one stable word.")
    message: Text = Field(description="Why, with the figures that decided.")


class Endpoint(ApiModel):
    """Where the API answers."""

    url: Annotated[str, Field(max_length=512)] | None = field("Inside the cluster.")
    model_names: tuple[Annotated[str, Field(max_length=128)], ...] = listing(
        "Names that requests may ask for.", most=72, atomic=True
    )


class EngineStatus(ApiModel):
    """The engine in use."""

    name: Short | None = field("Engine.")
    version: Short | None = field("Its version.")
    image: Annotated[str, Field(max_length=640)] | None = field("Its image, by digest when known.")


class Progress(ApiModel):
    """How far the slowest starting replica is."""

    step: Annotated[str, Field(max_length=200)] | None = field(
        "What it does: fetching the model, loading weights, compiling, ..."
    )
    bytes_done: Count | None = field("Bytes so far.")
    bytes_total: Count | None = field("Bytes in all.")
    bytes_per_second: Count | None = field("How fast they come.")
    seconds_left: Count | None = field("Estimate.")


class AdapterStatus(ApiModel):
    """One LoRA adapter, over all replicas that serve."""

    name: Short = Field(description="Name of the adapter.")
    state: Literal["Loaded", "Loading", "Failed"] = Field(
        description="Loaded where all replicas that serve have it, Failed where one cannot load it."
    )
    loaded: Count | None = field("Replicas that have it as it is declared.")
    replicas: Count | None = field("Replicas that serve, and should have it.")
    reason: Short | None = field("Why not, in one stable word.")
    message: Text | None = field("Why not, in one sentence, with the remedy.")


class Lengths(ApiModel):
    """Percentiles of a length in tokens. The operator writes them, so no rule of spec.workload guards them again."""

    p50: Tokens | None = field("Half are at most this long.")
    p95: Tokens | None = field("95 of 100 are at most this long.")
    p99: Tokens | None = field("99 of 100 are at most this long.")


class DeclaredWorkload(ApiModel):
    """What spec.workload says of traffic, presets and the admin's defaults merged in. What nobody says is left out."""

    input_tokens: Lengths | None = field("Lengths of prompts.")
    output_tokens: Lengths | None = field("Lengths of answers.")
    shared_prefix_percent: Percent | None = field("Share of prompt tokens found in the prefix cache.")
    concurrency: Count | None = field("Requests in flight at the peak.")
    requests_per_second: Decimal | None = field("Arrival rate at the peak.")


class ObservedWorkload(DeclaredWorkload):
    """Traffic as measured, in the fields in which it is declared."""

    declared: DeclaredWorkload | None = field("The same as declared, presets and defaults merged in.")
    burstiness: Decimal | None = field("Variance of arrivals, over that of independent ones.")
    advice: Text | None = field("What plans do not reckon with, and what helps.")
    since: Timestamp | None = field("Begin, moved on by each time that nobody watched.")


class Accuracy(ApiModel):
    """Predicted against measured, from the engines' own reports."""

    kv_tokens_predicted: Count | None = field("KV tokens of a replica, predicted.")
    kv_tokens_measured: Count | None = field("KV tokens of a replica, as the engine reports.")
    error_percent: Annotated[str, Field(max_length=16)] | None = field('Difference, as "-1.4".')


class RampStatus(ApiModel):
    """What became of the last ramp that was handed in."""

    record: Short = Field(description="Digest of the record.")
    taken: Bool = Field(description="Whether plans learn from it.")
    message: Text = Field(description="What it taught, or why it was refused.")
    at: Timestamp | None = field("When that was decided.")


class LLMDeploymentStatus(ApiModel):
    """What is so."""

    observed_generation: Count | None = field("Generation of the spec that this status speaks of.")
    conditions: tuple[Condition, ...] = listing("Conditions.", most=24, keys=("type",))
    plan: PlanStatus | None = field("The pinned plan.")
    sets: tuple[SetStatus, ...] = listing("Serving sets.", most=MOST_SETS, keys=("name",))
    replicas: Count | None = field("Replicas that exist, for the scale subresource.")
    ready: Annotated[str, Field(max_length=16)] | None = field("Ready of wanted replicas, as 2/3.")
    selector: Annotated[str, Field(max_length=512)] | None = field(
        "Label selector of the leaders, for the scale subresource."
    )
    replica_status: ReplicaStatus | None = field("Where the replicas are.")
    tuning: TuningStep | None = field("The retune in flight.")
    tuning_history: tuple[TuningStep, ...] = listing("Past retunes, newest first.", most=20, keys=("id",))
    endpoint: Endpoint | None = field("Where the API answers.")
    engine: EngineStatus | None = field("The engine in use.")
    progress: Progress | None = field("Start-up of the slowest replica.")
    adapters: tuple[AdapterStatus, ...] = listing("LoRA adapters.", most=MOST_ADAPTERS, keys=("name",))
    observed: ObservedWorkload | None = field("Traffic as measured.")
    accuracy: Accuracy | None = field("Predicted against measured.")
    ramp: RampStatus | None = field("The last ramp that was handed in.")
    scaling_history: tuple[ScalingStep, ...] = listing(
        "Last changes of the number of replicas by live traffic, newest first.", most=5, atomic=True
    )
    last_scale_time: Timestamp | None = field("When the number of replicas last changed.")
    safe_retry: Bool | None = field("A smaller setting is in use since a start failed for memory.")
