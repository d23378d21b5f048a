"""Which conditions there are, which reasons each may give, and how a list of them changes.

A reason is a stable word that alerts and GitOps tools match; the message beside it is one sentence with the remedy
and comes from whoever decided. The tables here are also the source of docs/reference/conditions.md.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from plimsoll import names
from plimsoll.api.v1alpha1.status import Condition

Status = Literal["True", "False", "Unknown"]

TYPES: Final[Mapping[str, str]] = MappingProxyType({
    names.READY: "As many replicas as wanted serve the current plan. The one to wait for.",
    names.RECONCILING: "kstatus: something is still on its way; absent when there is nothing to do.",
    names.STALLED: "kstatus: nothing will change until a person acts; the message says what to do.",
    names.FITS: "The memory ledger says that the model, its context and its load fit the GPUs.",
    names.PLACED: "The fleet, present or declared, has room for the plan.",
    names.PROGRESSING: "A rollout or a start is moving; False says where it stopped.",
    names.DEGRADED: "It serves, but with less than was asked for.",
    names.MODEL_FACTS: "The model's architecture and the bytes of its weights are known.",
    names.BETTER_PLAN: "Another plan would now be better; it is not taken without being asked for.",
    names.METRICS: "Live metrics are there and fresh; without them nothing is scaled down or retuned.",
    names.SCALING: "More replicas are wanted than the bounds or the fleet allow; absent where nothing limits.",
    names.SLO: "The promised latency can be kept with this plan.",
    names.AUTOSCALER_CONFLICT: "Somebody else also writes the number of replicas; absent where nobody does.",
    names.AUTOTUNE_PAUSED: "Retuning failed repeatedly and waits for a person.",
    names.RETUNING: "A changed setting is being tried; False says why none begins though the load asks for one, or what became of the last one; absent where neither is.",
})  # fmt: skip

FAILURES: Final[Mapping[str, str]] = MappingProxyType({
    "BadCheckpoint": "The model's files cannot be loaded.",
    "BadEnvironment": "A variable of the pod stops the engine.",
    "BadFlag": "The engine refuses its command line.",
    "BadSetting": "The engine refuses its configuration.",
    "CudaOutOfMemory": "The GPU's memory ran out while requests were answered.",
    "DiskFull": "A disk of the pod is full.",
    "Download": "The model cannot be fetched.",
    "Driver": "The engine finds no usable GPU driver.",
    "GatedModel": "The hub does not let the token read the model.",
    "GpuFault": "The GPU reports a fault.",
    "GpuMemoryTaken": "Something else uses the GPU's memory.",
    "GpuTooOld": "The GPU is too old for what is asked of it.",
    "GraphCapture": "Capturing graphs, or the warm-up around it, did not fit beside weights and KV cache.",
    "GroupEnded": "Another pod of the group ended, so all of it ends.",
    "Hang": "Requests ran and no token moved.",
    "HostMemoryTaken": "Something else uses the node's memory.",
    "HostOutOfMemory": "A process was killed for host memory.",
    "LeaderLost": "The leader of the group does not answer.",
    "MemberLost": "A pod of the group does not answer.",
    "MissingLibrary": "The image lacks something that the engine needs.",
    "ModelNotFound": "There is no such model or revision.",
    "Nccl": "Ranks of a replica cannot speak with one another.",
    "NoEngine": "The image has no such program.",
    "NoKvRoom": "Weights and working memory leave no room for the KV cache.",
    "NotWritable": "A folder that the engine writes into cannot be written.",
    "PortTaken": "The engine's port is taken within the pod.",
    "ProfileOutOfMemory": "The first run of the model did not fit beside its weights.",
    "RemoteCode": "The model brings code of its own, which is not trusted.",
    "RequestLongerThanPool": "One request of the context's length is longer than the KV cache.",
    "SharedMemory": "The memory that workers share is too small.",
    "StartTimeout": "The engine gave itself up: its workers were not ready in time.",
    "TooFewGpus": "The container sees fewer GPUs than the plan needs.",
    "TooManySequences": "More sequences at once are asked for than there is state for.",
    "UnknownArchitecture": "This release of the engine does not know the model's architecture.",
    "WeightsDoNotFit": "The weights do not fit into the GPU's memory.",
    "WorkerLost": "A worker of the engine was lost.",
    "WrongGpu": "The GPU is not the one that the plan counts on.",
})  # fmt: skip
"""Why engines end, in the words of their supervisor; a word that is not here is told within the sentence."""

REASONS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({
    names.READY: {
        "Serving": "All wanted replicas serve.",
        "Starting": "Replicas load the model.",
        "WaitingForGPUs": "Replicas wait for GPUs.",
        "WaitingForNodes": "A node is being made.",
        "WaitingForQuota": "A queue or quota holds replicas back.",
        "RollingOut": "Replicas move to another set.",
        "ScaledToZero": "Nobody asks; a wake signal brings it back.",
        "Stopped": "spec.replicas is 0.",
        "Paused": "spec.paused is true.",
        "InvalidSpec": "The spec contradicts itself, the model or the admin's config.",
        "ModelUnreadable": "The model cannot be read: source, revision or token is wrong.",
        "DoesNotFit": "No layout fits any GPU of the fleet.",
        "StartFailed": "Replicas fail to start.",
        **FAILURES,
    },
    names.RECONCILING: {
        "Planning": "A plan is being made.",
        "Applying": "Objects are being written.",
        "RollingOut": "Replicas move to another set.",
        "Starting": "Replicas load the model.",
    },
    names.STALLED: {
        "InvalidSpec": "The spec contradicts itself, the model or the admin's config.",
        "NotTrusted": "The admin's config does not allow something that the spec names.",
        "NameConflict": "An object of the same name belongs to somebody else.",
        "StartFailed": "Replicas failed to start; the set before serves, if there was one.",
        "ModelUnreadable": "The model cannot be read: source, revision or token is wrong.",
        "DoesNotFit": "No layout fits any GPU of the fleet.",
        "Refused": "The API server refuses an object: a quota, a policy or a webhook of the cluster.",
        "InternalError": "The operator fails on the resource, which is a mistake of its own; its log has the whole of it.",
        **FAILURES,
        "NotServed": "The cluster does not serve the kind that its pods should be made by; install its CRD.",
    },
    names.FITS: {
        "Fits": "The upper bound of the ledger fits.",
        "Tight": "The estimate fits, its upper bound does not.",
        "DoesNotFit": "Even the lower bound does not fit.",
        "Measured": "The engine's own report says so.",
        "UnknownGPU": "A product is not in the catalogue, or a node label is missing.",
        "NotPlanned": "Nothing was planned; Stalled says why.",
    },
    names.PLACED: {
        "Placed": "There is room.",
        "NoGPUs": "No node has GPUs that this plan could use.",
        "NoFreeGPUs": "The GPUs are there, but used by others.",
        "BudgetExhausted": "The namespace's budget is used up, or cost.maxPerHour.",
        "NodeDeclared": "A declared node class could hold it; a node is being made, or nodes may not be seen.",
        "GroupHalfScheduled": "Some pods of a group have nodes, others have not.",
        "NotPlanned": "Nothing was planned; Stalled says why.",
    },
    names.PROGRESSING: {
        "RollingOut": "Replicas move to another set.",
        "Canary": "A part of the replicas tries a change.",
        "RolledOut": "All replicas are on one set.",
        "Moving": "A replica leaves a node that is drained; one more comes first where there is room.",
        "RolledBack": "The new set failed; the one before serves, or comes back.",
        "Held": "spec.rollout.hold is true.",
        "DeadlineExceeded": "A replica took longer than spec.rollout.deadlineSeconds.",
    },
    names.DEGRADED: {
        "SetUnreadable": "A set that serves can be neither scaled nor removed, as nobody can read its ControllerRevision.",
        "FewerReplicas": "Fewer replicas serve than are wanted.",
        "SafeRetry": "A smaller setting is in use since a start failed for memory.",
        "EngineRestarts": "Engines die and start again; one that serves is told of for an hour or two.",
        "AdapterFailed": "A LoRA adapter cannot be loaded, by the engine or by anybody; status.adapters has each.",
        "NotServed": "A route or pool was asked for whose kind the cluster does not serve, or a pool without endpointPicker.",
        "Healthy": "Nothing is missing.",
    },
    names.MODEL_FACTS: {
        "Catalogue": "From the built-in catalogue.",
        "Hub": "Read from the hub.",
        "Inline": "From spec.model.architecture.",
        "FactsPod": "Read by a pod with the user's own secret or volume.",
        "Reading": "Being read.",
        "Unreadable": "Could not be read.",
        "EngineVersionUnknown": "The engine's version is unknown; the nearest lower one stands in.",
    },
    names.BETTER_PLAN: {
        "Cheaper": "It would cost less.",
        "Faster": "It would be faster.",
        "FewerGPUs": "It would take fewer GPUs.",
        "WorkloadDiffers": "The observed traffic asks for another declaration; the message says where that alone is not enough.",
        "None": "The pinned plan is the best one known.",
    },
    names.METRICS: {
        "Fresh": "Metrics are there.",
        "Missing": "Too few replicas have fresh metrics.",
        "OutOfDate": "Their samples come, and too many are older than a minute or ahead of the operator's clock.",
        "PrometheusUnreachable": "Prometheus does not answer.",
        "Outage": "One of these has been so for half an hour; the message says since when and where to look.",
        "QueryRefused": "Prometheus refuses spec.scaling.zero.wake.query, or takes too long for it.",
        "QueryUnanswered": "spec.scaling.zero.wake.query has found nothing for five minutes.",
        "QueryFailed": "Prometheus has had no answer to spec.scaling.zero.wake.query for five minutes, or none that is whole.",
    },
    names.SCALING: {
        "AtMax": "scaling.max is reached.",
        "GPUsUnavailable": "The fleet has no more GPUs for it.",
        "BudgetExhausted": "The namespace's budget is used up, or cost.maxPerHour.",
        "NotPlanned": "The plan has had fewer for two minutes, and no lack of GPUs says why; Stalled may, or Placed.",
        "StartFailed": "Replicas fail to start, so no more are asked for now.",
        "SetReplicas": "An autoscaler targets the resource, but spec.replicas is absent.",
    },
    names.SLO: {
        "Attainable": "The prediction is within the limits.",
        "PartlyAttainable": "The plan keeps slo.ttftP99Ms for typical requests, but not for 99 of 100 as users send them.",
        "Unattainable": "No layout on this fleet keeps the limits, or what is measured is beyond them and more replicas would not help.",
        "NotDeclared": "No limits were declared.",
    },
    names.AUTOSCALER_CONFLICT: {
        "SeveralWriters": "Two autoscalers write the same number, or one that of an object that Plimsoll makes, where it is put back.",
    },
    names.AUTOTUNE_PAUSED: {
        "RepeatedFailure": "As many retunes failed in a row as restarts.failuresUntilPause allows; clear it by annotation.",
        "Active": "Retuning is on.",
    },
    names.RETUNING: {
        "Planned": "It is written down; nothing was touched yet.",
        "Canary": "One replica is to start with it.",
        "Judging": "That replica is held against the others.",
        "Rolling": "It was found good and goes to the other replicas, one by one.",
        "Verifying": "All run with it, and are held against what was before.",
        "RollingBack": "It is taken back.",
        "Done": "It stays.",
        "RolledBack": "It was taken back; the message says why.",
        "NotTried": "It was given up before it could be judged, as where the spec was edited.",
        "WouldDisrupt": "The load asks for one, but a replica would have to restart that it cannot do without: give it a GPU more, or set tuning.allowDisruption.",
        "BudgetSpent": "The load asks for one, but the day's retunes or restarts are used up.",
        "BudgetTooSmall": "The load asks for one, but all replicas there and back are more restarts than restarts.restartsPerDay allows; the message says how many would do.",
        "FleetBusy": "The load asks for one, but as many GPUs of the fleet as may be are in retunes.",
        "TooLittleTraffic": "The load asks for one, but too few requests come to judge it by.",
        "NothingHelps": "The load asks for one, but no setting helps that may be changed; the message says why not, one by one.",
    },
})  # fmt: skip


def set_condition(
    conditions: Sequence[Condition],
    kind: str,
    *,
    status: Status,
    reason: str,
    message: str,
    now: str,
    generation: int | None = None,
) -> tuple[Condition, ...]:
    """The list with one condition set, sorted by type; the time moves only when the status flips."""
    if reason not in REASONS.get(kind, {}):
        known = ", ".join(REASONS.get(kind, {})) or "none: the type itself is unknown"
        raise ValueError(f"condition {kind} has no reason {reason!r}; known: {known}")
    old = get_condition(conditions, kind)
    since = old.last_transition_time if old is not None and old.status == status else now
    new = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )
    return tuple(sorted((*(c for c in conditions if c.type != kind), new), key=lambda c: c.type))


def drop_condition(conditions: Sequence[Condition], kind: str) -> tuple[Condition, ...]:
    """The list without one condition; kstatus wants Reconciling and Stalled absent rather than False."""
    return tuple(c for c in conditions if c.type != kind)


def get_condition(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """The condition of one type, if it is there."""
    return next((c for c in conditions if c.type == kind), None)
