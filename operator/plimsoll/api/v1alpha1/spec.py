"""The whole of what a user writes. Required is only the model; every group left out is decided by Plimsoll."""

from typing import ClassVar

from pydantic import Field

from plimsoll.api.base import AnnotationMap, ApiModel, Bool, LabelMap, Rule, field, group, listing
from plimsoll.api.v1alpha1.engine import Engine
from plimsoll.api.v1alpha1.features import (
    Adapters,
    ChatTemplate,
    LongContext,
    Multimodal,
    Reasoning,
    Speculative,
    StructuredOutput,
    ToolCalling,
)
from plimsoll.api.v1alpha1.memory import Memory, Quantization
from plimsoll.api.v1alpha1.model import ModelSpec, Storage
from plimsoll.api.v1alpha1.networking import Networking
from plimsoll.api.v1alpha1.pods import PodPatch, Scheduling
from plimsoll.api.v1alpha1.scaling import Cost, Replicas, Rollout, Scaling, Tuning
from plimsoll.api.v1alpha1.topology import Topology
from plimsoll.api.v1alpha1.workload import SLO, Workload


class ServingSpec(ApiModel):
    """All that may be said without naming a model; also the form of presets and of defaults by namespace."""

    storage: Storage = group(Storage, "Where weights and compile caches live.")
    engine: Engine = group(Engine, "The engine that serves it.")
    workload: Workload = group(Workload, "The traffic it is meant for.")
    slo: SLO = group(SLO, "The latency and availability it promises. Absent: the preset's, else none.")
    memory: Memory = group(Memory, "The budget of GPU memory.")
    topology: Topology = group(Topology, "Hardware and parallel layout.")
    quantization: Quantization = group(Quantization, "How weights are quantized.")
    adapters: Adapters | None = field("LoRA adapters served beside the model.")
    speculative: Speculative | None = field("Speculative decoding.")
    multimodal: Multimodal = group(Multimodal, "Limits for images, video and audio.")
    tool_calling: ToolCalling | None = field("Tool calls.")
    reasoning: Reasoning | None = field("Thinking kept apart from the answer.")
    structured_output: StructuredOutput | None = field("Answers constrained to a grammar or schema.")
    chat_template: ChatTemplate | None = field("A chat template other than the model's own.")
    long_context: LongContext | None = field("Context stretched by RoPE scaling.")
    replicas: Replicas | None = field(
        "Number of replicas, obeyed exactly; 0 stops. Absent: Plimsoll decides within scaling. A replica is "
        "one serving instance: a pod, or a group over nodes."
    )
    scaling: Scaling = group(Scaling, "Bounds for the number of replicas that Plimsoll decides.")
    tuning: Tuning = group(Tuning, "What Plimsoll may change by itself while serving.")
    rollout: Rollout = group(Rollout, "How changes reach the replicas.")
    networking: Networking = group(Networking, "How requests reach the replicas.")
    pod_labels: LabelMap = Field(default_factory=dict, description="Further labels of the pods.")
    pod_annotations: AnnotationMap = Field(
        default_factory=dict, description="Further annotations of the pods."
    )
    pod_patches: tuple[PodPatch, ...] = listing(
        "JSON patches on the rendered pods, in order, under the admin's lists.", most=32, atomic=True
    )
    scheduling: Scheduling = group(Scheduling, "Scheduler, priority and queue of the pods.")
    cost: Cost = group(Cost, "Limits of cost.")
    paused: Bool | None = field("Freeze everything but status. Absent: false.")


class LLMDeploymentSpec(ServingSpec):
    """What should be served."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="features-need-generate",
            cel="!has(self.model.task) || self.model.task == 'generate' || (!has(self.speculative) && "
            "!has(self.toolCalling) && !has(self.reasoning) && !has(self.chatTemplate))",
            holds=lambda m: (
                m.model.task in (None, "generate")
                or all(v is None for v in (m.speculative, m.tool_calling, m.reasoning, m.chat_template))
            ),
            message="speculative, toolCalling, reasoning and chatTemplate need model.task generate",
            field="model.task",
        ),
    )

    model: ModelSpec = Field(description="The model to serve.")
