"""Which hardware a replica runs on and how it is cut over GPUs: wishes and bounds, absent where Plimsoll chooses."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.base import (
    ApiModel,
    Bool,
    Int,
    LabelKey,
    LabelMap,
    LabelValue,
    Quantity,
    Rule,
    field,
    listing,
)

GpuProduct = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9_. -]*[A-Za-z0-9])?$")
]


class Toleration(ApiModel):
    """A taint that the pods bear, as Kubernetes spells it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="toleration-exists-no-value",
            cel="!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
            holds=lambda m: m.operator != "Exists" or m.value is None,
            message="value must be absent when operator is Exists",
            field="value",
        ),
        Rule(
            name="toleration-key",
            cel="has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            holds=lambda m: m.key is not None or m.operator == "Exists",
            message="key must be set unless operator is Exists",
            field="key",
        ),
    )

    key: LabelKey | None = field("Key of the taint. Absent, with operator Exists: every taint.")
    operator: Literal["Equal", "Exists"] | None = field(
        "Whether the value must match, or only the key. Absent: Equal."
    )
    value: LabelValue | None = field("Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = field(
        "Effect of the taint. Absent: every effect."
    )
    toleration_seconds: Annotated[Int, Field(ge=0)] | None = field(
        "Seconds for which NoExecute is borne. Absent: for ever."
    )


class CPUTopology(ApiModel):
    """Serve on CPUs. An empty object asks for it and leaves the size to Plimsoll."""

    cores: Annotated[Int, Field(ge=1, le=1024)] | None = field(
        "Cores of a replica. Absent: by the smallest host, at most 32."
    )
    memory: Quantity | None = field("Memory of a replica. Absent: by the model and its load.")
    kv_cache_size: Quantity | None = field("Memory for KV. Absent: what the budget leaves.")


class Topology(ApiModel):
    """Where and how a replica runs."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="cpu-or-gpu",
            cel="!has(self.cpu) || !has(self.gpuProducts) || size(self.gpuProducts) == 0",
            holds=lambda m: m.cpu is None or not m.gpu_products,
            message="only one of cpu and gpuProducts may be set",
            field="cpu",
        ),
        Rule(
            name="manual-says-something",
            cel="!has(self.mode) || self.mode != 'manual' || has(self.tensor) || has(self.pipeline) || has(self.data)",
            holds=lambda m: m.mode != "manual" or any(v is not None for v in (m.tensor, m.pipeline, m.data)),
            message="mode manual needs at least one of tensor, pipeline and data",
            field="mode",
        ),
        Rule(
            name="cpu-no-interconnect",
            cel="!has(self.cpu) || !has(self.interconnect)",
            holds=lambda m: m.cpu is None or m.interconnect is None,
            message="interconnect is between GPUs; it cannot be demanded with cpu",
            field="interconnect",
        ),
    )

    mode: Literal["auto", "manual"] | None = field(
        "auto: Plimsoll chooses, bound by the numbers below. manual: numbers not given are 1. Absent: auto."
    )
    tensor: Annotated[Int, Field(ge=1, le=1024)] | None = field("GPUs over which each layer is cut.")
    pipeline: Annotated[Int, Field(ge=1, le=128)] | None = field("Stages into which the layers are cut.")
    data: Annotated[Int, Field(ge=1, le=1024)] | None = field(
        "Engine ranks inside a replica that share its traffic."
    )
    expert_parallel: Bool | None = field(
        "Spread whole experts over the GPUs. Absent: Plimsoll decides; MoE only."
    )
    expert_balancing: Bool | None = field(
        "Move experts between GPUs by their load. Absent: false; needs experts spread."
    )
    data_mode: Literal["internal", "hybrid", "external"] | None = field(
        "Who balances over data ranks: the engine, the engine within a node, or the Service. Absent: internal."
    )
    gpu_products: tuple[GpuProduct, ...] = listing(
        "GPU products that may be used, by catalogue name or node label. Absent: all that fit.",
        most=16,
    )
    cpu: CPUTopology | None = field("Serve on CPUs instead of GPUs.")
    node_selector: LabelMap = Field(default_factory=dict, description="Labels that nodes must have.")
    tolerations: tuple[Toleration, ...] = listing("Taints that the pods bear.", most=16, atomic=True)
    interconnect: Literal["pcie", "nvlink", "nvlink-domain", "rdma"] | None = field(
        "Least link between the GPUs of a replica: any, NVLink within a node, one NVLink domain over nodes, "
        "or RDMA. Absent: what the layout's speed needs."
    )
    groups: Literal["StatefulSet", "LeaderWorkerSet"] | None = field(
        "What carries a replica that spans nodes. Absent: StatefulSet, which needs nothing installed."
    )
    executor: Literal["mp", "ray"] | None = field("How ranks over nodes are started. Absent: mp.")
