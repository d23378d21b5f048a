"""Plans made by hand for the tests of what is printed: every part of a plan is there once, with round figures."""

from dataclasses import replace

from plimsoll.facts.model import Certainty
from plimsoll.planning.interval import Interval
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Load, Performance
from plimsoll.planning.memory.ledger import Capacity, Ledger, OomRisk, Term, Verdict
from plimsoll.planning.plan import (
    SCHEMA,
    Advice,
    Alternative,
    Cost,
    Finding,
    FleetPlan,
    Hardware,
    Origin,
    Outcome,
    Pinning,
    Placement,
    Plan,
    PlanSet,
    PodResources,
    PoolUse,
    Rejected,
    Severity,
    Value,
)
from plimsoll.planning.settings import EngineSettings

GIB = 1 << 30


def term(name, gib, formula="", half=0.0, certainty=Certainty.CALIBRATED, **inputs):
    size = Interval.around(gib * GIB, half * GIB)
    return Term(name=name, bytes=size, formula=formula, inputs=inputs, certainty=certainty)


def ledger(**changes):
    terms = (
        term("weights", 30.52, "checkpoint / tp", certainty=Certainty.EXACT, checkpoint="61.03 GiB", tp="2"),
        term("activation", 1.4, "tokens x widest layer", 0.2, tokens="8192"),
        term("graphs", 0.9, "per captured batch size", 0.3, sizes="51"),
        term("context", 0.6, "CUDA context and NCCL", 0.1, certainty=Certainty.ASSUMED),
        term("kv", 39.43, "what the budget leaves", 0.6),
        term("headroom", 6.34, "device - budget", certainty=Certainty.EXACT),
    )
    capacity = Capacity(
        blocks=Interval(19870.0, 20187.0, 20500.0),
        block_size=16,
        tokens=Interval(317_920.0, 322_992.0, 328_000.0),
        concurrency_at_max_len=Interval(77.6, 78.9, 80.1),
        concurrency_at_workload=Interval(248.4, 252.3, 256.3),
        bytes_per_token=131072.0,
    )
    made = Ledger(
        budget_bytes=int(72.85 * GIB),
        device_bytes=int(79.19 * GIB),
        left=Interval.around(39.43 * GIB, 0.6 * GIB),
        terms=terms,
        capacity=capacity,
        verdict=Verdict.FITS,
        risk=OomRisk.LOW,
        reason="38.8 GiB are left for the cache at the unfavourable end, and one request at full length needs 0.5.",
    )
    return replace(made, **changes)


def value(
    name, shown, field=None, *, formula="from the workload's p99", origin=Origin.DERIVED, source="derived"
):
    return Value(
        name=name,
        field=field,
        value=shown,
        formula=formula,
        inputs={"input p99": "3072", "output p99": "1024"},
        origin=origin,
        source=source,
        changes="another workload.inputTokens or workload.outputTokens",
    )


def plan_set(**changes):
    made = PlanSet(
        digest="3f1c9a2b44d0e871",
        hardware=Hardware(
            gpu="H100-SXM-80GB", vendor="nvidia", resource="nvidia.com/gpu", memory_bytes=int(79.19 * GIB)
        ),
        layout=Layout(tensor=2),
        settings=EngineSettings(
            max_model_len=4096, max_num_seqs=256, max_num_batched_tokens=8192, utilization=0.92
        ),
        replicas=2,
        pods_per_replica=1,
        resources=PodResources(
            resource="nvidia.com/gpu",
            devices=2,
            cpu_millis=8000,
            memory_bytes=48 * GIB,
            shm_bytes=16 * GIB,
            disk_bytes=80 * GIB,
        ),
        ledger=ledger(),
        load=Load(input_tokens=1024, output_tokens=256, concurrency=32),
        performance=Performance(
            ttft_ms=Interval(180.0, 240.0, 330.0),
            tpot_ms=Interval(16.1, 17.8, 19.9),
            output_tokens_per_second=1710.4,
            requests_per_second=6.68,
            bound="memory",
            running=32,
        ),
        max_concurrency=120,
        meets_slo=True,
        cost=Cost(gpu_hours_per_hour=4.0, per_hour="11.60", per_million_output_tokens="0.94"),
        values=(
            value("max_model_len", "4096", "workload.contextTokens"),
            value(
                "max_num_seqs",
                "256",
                "engine.maxSequences",
                formula="KV tokens / live tokens, at most the preset's",
                origin=Origin.PRESET,
                source="preset chat",
            ),
            value("memory_bytes", "48Gi", formula="weights of one pod's share read once, plus the engine"),
        ),
        placements=(Placement(pool="h100-8-eu1a-1f2e", replicas=2),),
    )
    return replace(made, **changes)


def plan(**changes):
    made = Plan(
        schema=SCHEMA,
        name="chat",
        namespace="team-a",
        model="hf://Qwen/Qwen3-32B",
        model_digest="aaaa",
        model_origin="catalogue",
        engine="vllm",
        engine_version="0.33.0",
        spec_digest="bbbb",
        outcome=Outcome.FITS,
        replicas_wanted=2,
        replicas_reason="2 replicas carry 12 requests a second",
        sets=(plan_set(),),
        findings=(
            Finding(
                severity=Severity.INFO,
                reason="FreeAssumed",
                message="Pods were not seen, so every allocatable GPU counts as free.",
            ),
            Finding(
                severity=Severity.WARNING,
                reason="ContextInherited",
                message="workload.contextTokens is not set, so the model's ceiling of 40960 counts.",
                field="workload.contextTokens",
                remedy="Set it to what requests need.",
            ),
        ),
        rejected=(
            Rejected(
                layout=Layout(tensor=1),
                hardware=("L4", "L40S-48GB"),
                rule="memory",
                message="61.0 GiB of weights, 44.4 GiB of memory",
            ),
            Rejected(
                layout=Layout(tensor=2),
                hardware=("L4",),
                rule="memory",
                message="30.5 GiB of weights, 22.0 GiB of memory",
            ),
            Rejected(
                layout=Layout(tensor=16),
                hardware=("H100-SXM-80GB",),
                rule="node",
                message="16 GPUs, but a node has 8",
            ),
        ),
        alternatives=(
            Alternative(
                sets=("1 x tp4 on H100-SXM-80GB",),
                replicas=1,
                gpus=4.0,
                cost=Cost(gpu_hours_per_hour=4.0, per_hour="11.60"),
                verdict=Verdict.FITS,
                tpot_ms=Interval(10.0, 11.4, 13.0),
                ttft_ms=Interval(120.0, 160.0, 220.0),
                output_tokens_per_second=2900.0,
                meets_slo=True,
                reason="as dear, and one replica stops all when it restarts",
            ),
        ),
        advice=(
            Advice(
                topic="quantization",
                message="An FP8 checkpoint would leave twice the cache.",
                takes="another model.source; check the answers",
            ),
        ),
        choice="The cheapest that holds 50 ms between tokens",
        cost=Cost(gpu_hours_per_hour=4.0, per_hour="11.60", per_million_output_tokens="0.94"),
        pinning=Pinning(kept=False, reason="FirstPlan", message="First plan"),
    )
    return replace(made, **changes)


def misfit():
    over = ledger(
        terms=(term("weights", 131.4, "checkpoint / tp"), term("activation", 1.4), term("headroom", 0.0)),
        left=Interval.exact(-60.0 * GIB),
        capacity=None,
        verdict=Verdict.DOES_NOT_FIT,
        risk=OomRisk.CERTAIN,
        reason="131.4 GiB of weights are more than the 72.9 GiB the engine may take.",
    )
    return plan(
        name="big",
        model="hf://meta-llama/Llama-3.1-70B-Instruct",
        outcome=Outcome.DOES_NOT_FIT,
        sets=(),
        nearest=plan_set(layout=Layout(), ledger=over, performance=None, values=()),
        alternatives=(),
        findings=(
            Finding(severity=Severity.ERROR, reason="NothingFits", message="No layout fits any pool."),
        ),
        cost=None,
        choice="",
        pinning=None,
    )


def fleet(*plans):
    held = plans or (plan(), misfit())
    return FleetPlan(
        plans=held,
        order=tuple(f"{one.namespace}/{one.name}" for one in held),
        pools=(PoolUse(pool="h100-8-eu1a-1f2e", devices=16, free_before=12, free_after=8),),
    )
