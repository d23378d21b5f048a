"""The part of the admin's config about supply: nodes that can be made, what they cost, who may take how many."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from plimsoll.api.base import (
    PRINTABLE,
    Amount,
    ApiModel,
    Bool,
    Int,
    LabelMap,
    LabelName,
    LabelValue,
    NamespaceGlob,
    Quantity,
    Rule,
    Seconds,
    field,
    listing,
    owned,
)
from plimsoll.api.v1alpha1.topology import GpuProduct

Count = Annotated[Int, Field(ge=0, le=1000000)]


class NodeTaint(ApiModel):
    """A taint that nodes of a class carry."""

    key: Annotated[str, Field(min_length=1, max_length=316, pattern=PRINTABLE)] = Field(description="Key.")
    value: LabelValue | None = field("Value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = owned("NoSchedule", "Effect.")


class NodeClass(ApiModel):
    """Nodes that the fleet can make on demand: planned with before they exist."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="class-gpus",
            cel="has(self.gpuProduct) == has(self.gpusPerNode)",
            holds=lambda m: (m.gpu_product is None) == (m.gpus_per_node is None),
            message="gpuProduct and gpusPerNode must be set together; leave both out for CPU nodes",
            field="gpusPerNode",
        ),
        Rule(
            name="class-cpu-size",
            cel="has(self.gpuProduct) || (has(self.cpu) && has(self.memory))",
            holds=lambda m: m.gpu_product is not None or (m.cpu is not None and m.memory is not None),
            message="cpu and memory must be set for a class without GPUs",
            field="cpu",
        ),
        Rule(
            name="class-domain",
            cel="!has(self.nodesPerNvlinkDomain) || has(self.gpuProduct)",
            holds=lambda m: m.nodes_per_nvlink_domain is None or m.gpu_product is not None,
            message="nodesPerNvlinkDomain needs gpuProduct",
            field="nodesPerNvlinkDomain",
        ),
    )
    retired: ClassVar[frozenset[str]] = frozenset({"ephemeralStorage", "spot"})

    name: LabelName = Field(description="Name of the class.")
    gpu_product: GpuProduct | None = field("GPU, by catalogue name or node label. Absent: CPU nodes.")
    gpus_per_node: Annotated[Int, Field(ge=1, le=64)] | None = field("GPUs of a node.")
    cpu: Quantity | None = field("Cores that pods may take. Absent: enough.")
    memory: Quantity | None = field("Host memory that pods may take. Absent: enough.")
    max_nodes: Annotated[Int, Field(ge=0, le=100000)] = Field(
        description="Most nodes there can be, present ones included."
    )
    price_per_hour: Amount | None = field("Price of a node. Absent: its GPUs by prices.gpuHour.")
    zones: tuple[LabelValue, ...] = listing("Zones in which they are made.", most=32)
    labels: LabelMap = Field(
        default_factory=dict, description="Labels of the nodes, by which present ones are known."
    )
    taints: tuple[NodeTaint, ...] = listing("Taints of the nodes.", most=16, atomic=True)
    interconnect: Literal["pcie", "nvlink"] | None = field(
        "Link between a node's GPUs. Absent: by the catalogue."
    )
    nodes_per_nvlink_domain: Annotated[Int, Field(ge=1, le=1024)] | None = field(
        "Nodes that share one NVLink domain."
    )
    rdma: Bool | None = field("Whether nodes reach each other by RDMA. Absent: false.")
    provision_seconds: Seconds | None = field("Time until a wished-for node is there. Absent: 300.")


class GpuPrice(ApiModel):
    """The price of one GPU for an hour."""

    product: GpuProduct = Field(description="GPU, by catalogue name or node label.")
    per_hour: Amount = Field(description='Price, as "2.49".')


class Prices(ApiModel):
    """Prices where no node class says better. Only their proportions matter to a choice."""

    currency: Annotated[str, Field(max_length=8, pattern=r"^[A-Z]{3}$")] | None = field(
        "Shown beside prices."
    )
    gpu_hour: tuple[GpuPrice, ...] = listing("Price of each GPU product.", most=128, keys=("product",))
    cpu_core_hour: Amount | None = field("Price of a core for an hour.")


class GpuLimit(ApiModel):
    """A number of GPUs of one product."""

    product: GpuProduct = Field(description="GPU, by catalogue name or node label.")
    gpus: Count = Field(description="Most of them.")


class Budget(ApiModel):
    """What a namespace may take, and who goes first when there is not enough."""

    namespace: NamespaceGlob = Field(
        description="Namespace; * stands for any characters. The longest match counts."
    )
    gpus: Count | None = field("Most GPUs of all products. Absent: no limit.")
    gpus_by_product: tuple[GpuLimit, ...] = listing("Most GPUs of a product.", most=64, keys=("product",))
    cost_per_hour: Amount | None = field(
        "Most that all its deployments may cost an hour, by prices. Absent: no limit."
    )
    priority: Annotated[Int, Field(ge=-1000000, le=1000000)] | None = field("Higher goes first. Absent: 0.")
    max_replicas: Annotated[Int, Field(ge=0, le=1000)] | None = field(
        "Most replicas of one deployment. Absent: no limit."
    )


PROVISION_S: Final = 300.0
"""Until a node of a class is there, where the admin does not say."""


def provision_of(classes: Iterable[NodeClass]) -> dict[str, float]:
    """Seconds until a node is there, by class."""
    return {
        one.name: PROVISION_S if one.provision_seconds is None else float(one.provision_seconds)
        for one in classes
    }
