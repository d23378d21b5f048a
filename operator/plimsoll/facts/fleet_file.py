"""A fleet in a few lines, for what-ifs and examples: pools as a person would describe them.

Every pool is written out as the nodes that it stands for, with the labels that a real labeller would give them. They are then read
like the nodes of a cluster, so there is no second way of reading that could differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from plimsoll import names
from plimsoll.api.base import (
    ApiModel,
    Bool,
    Int,
    LabelMap,
    LabelName,
    LabelValue,
    Quantity,
    Rule,
    field,
    group,
    listing,
)
from plimsoll.api.base import Decimal as DecimalText
from plimsoll.api.config import NodeClass, NodeTaint, OperatorConfig
from plimsoll.api.problems import Problem, SpecError, problems_of
from plimsoll.api.v1alpha1.topology import GpuProduct
from plimsoll.facts.fleet_claims import claim_of, slice_on
from plimsoll.facts.gpus import Gpu, UnknownGpu, Vendor, gpu_named
from plimsoll.facts.labels import gaudi, intel, nvidia
from plimsoll.facts.labels.amd import PRODUCT as AMD_PRODUCT
from plimsoll.facts.labels.mig import MigProfile, slice_of

KIND = "Fleet"
GpuCount = Annotated[Int, Field(ge=0, le=64)]


class FleetPool(ApiModel):
    """Nodes alike."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="pool-gpus",
            cel="has(self.gpuProduct) == has(self.gpusPerNode)",
            holds=lambda m: (m.gpu_product is None) == (m.gpus_per_node is None),
            message="gpuProduct and gpusPerNode must be set together; leave both out for CPU nodes",
            field="gpusPerNode",
        ),
        Rule(
            name="pool-cpu-size",
            cel="has(self.gpuProduct) || (has(self.cpu) && has(self.memory))",
            holds=lambda m: m.gpu_product is not None or (m.cpu is not None and m.memory is not None),
            message="cpu and memory must be set for a pool without GPUs",
            field="cpu",
        ),
        Rule(
            name="pool-cut",
            cel="!(has(self.mig) || has(self.sharedBy)) || !has(self.maxNodes)",
            holds=lambda m: (m.mig is None and m.shared_by is None) or m.max_nodes is None,
            message="nodes made on demand have whole GPUs; leave maxNodes out of a pool with mig or sharedBy",
            field="maxNodes",
        ),
        Rule(
            name="pool-via",
            cel="!has(self.via) || self.via != 'dra' || (has(self.gpuProduct) && !has(self.sharedBy) && !has(self.maxNodes))",
            holds=lambda m: (
                m.via != "dra" or (m.gpu_product is not None and m.shared_by is None and m.max_nodes is None)
            ),
            message="via: dra is for GPUs that are there and not shared; leave out sharedBy and maxNodes, or via",
            field="via",
        ),
        Rule(
            name="pool-free",
            cel="!has(self.freeGpus) || size(self.freeGpus) == self.nodes",
            holds=lambda m: not m.free_gpus or len(m.free_gpus) == m.nodes,
            message="freeGpus must have one number a node, or be left out where all are free",
            field="freeGpus",
        ),
    )

    name: LabelName = Field(description="Name of the pool.")
    gpu_product: GpuProduct | None = field("GPU, by catalogue name or node label. Absent: CPU nodes.")
    gpus_per_node: Annotated[Int, Field(ge=1, le=64)] | None = field("GPUs of a node.")
    nodes: Annotated[Int, Field(ge=0, le=100000)] = Field(description="Nodes that are there.")
    free_gpus: tuple[GpuCount, ...] = listing(
        "Free GPUs of each node. Absent: all.", most=100000, atomic=True
    )
    max_nodes: Annotated[Int, Field(ge=0, le=100000)] | None = field(
        "Most nodes there can be. Absent: no more."
    )
    mig: Annotated[str, Field(pattern=r"^[0-9]+g\.[0-9]+gb$")] | None = field(
        "MIG profile into which all GPUs are cut; gpusPerNode then counts slices."
    )
    shared_by: Annotated[Int, Field(ge=2, le=64)] | None = field(
        "Pods that share a GPU by time slicing; gpusPerNode still counts GPUs, freeGpus counts shares."
    )
    via: Literal["device-plugin", "dra"] | None = field(
        "How pods get the GPUs: as a resource of the device plugin, or by claims (dra). Absent: device-plugin."
    )
    cpu: Quantity | None = field("Cores of a node. Absent: enough.")
    memory: Quantity | None = field("Host memory of a node. Absent: enough.")
    zone: LabelValue | None = field("Zone of the nodes.")
    labels: LabelMap = Field(default_factory=dict, description="Further labels of the nodes.")
    taints: tuple[NodeTaint, ...] = listing("Taints of the nodes.", most=16, atomic=True)
    price_per_hour: DecimalText | None = field("Price of a node.")
    interconnect: Literal["pcie", "nvlink"] | None = field(
        "Link between a node's GPUs. Absent: by the catalogue."
    )
    nodes_per_nvlink_domain: Annotated[Int, Field(ge=1, le=1024)] | None = field(
        "Nodes that share one NVLink domain."
    )
    rdma: Bool | None = field("Whether nodes reach each other by RDMA.")


class FleetFile(ApiModel):
    """A fleet, written by hand."""

    api_version: Literal["plimsoll.dev/v1alpha1"] = Field(description="plimsoll.dev/v1alpha1.")
    kind: Literal["Fleet"] = Field(description="Fleet.")
    pools: tuple[FleetPool, ...] = listing("Pools.", most=256, keys=("name",))
    config: OperatorConfig = group(OperatorConfig, "The admin's config.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A fleet file as the objects it stands for."""

    nodes: tuple[dict[str, Any], ...]
    pods: tuple[dict[str, Any], ...]
    config: OperatorConfig
    slices: tuple[dict[str, Any], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()


def read_fleet_file(document: Mapping[str, Any]) -> Written:
    """The nodes of a fleet file; raises SpecError with the field, the value and what would be right."""
    try:
        fleet = FleetFile.model_validate(document)
    except ValidationError as error:
        raise SpecError(*problems_of(error, FleetFile)) from None
    written: dict[str, list[dict[str, Any]]] = {"nodes": [], "pods": [], "slices": [], "claims": []}
    for index, pool in enumerate(fleet.pools):
        _write(pool, f"pools[{index}]", written)
    classes = (*fleet.config.node_classes, *(_class(pool) for pool in fleet.pools))
    return Written(
        nodes=tuple(written["nodes"]),
        pods=tuple(written["pods"]),
        config=fleet.config.model_copy(update={"node_classes": classes}),
        slices=tuple(written["slices"]),
        claims=tuple(written["claims"]),
    )


def _write(pool: FleetPool, where: str, written: Mapping[str, list[dict[str, Any]]]) -> None:
    """Adds a pool's nodes, and pods or claims for devices that are taken."""
    labels, resource, count = _device_labels(pool, where)
    most = max(pool.free_gpus, default=0)
    if most > count:
        message = f"a node of this pool has {count}; write at most that"
        raise SpecError(Problem(f"{where}.freeGpus", str(most), message))
    labels |= {names.LABEL_POOL: pool.name, **pool.labels}
    if pool.zone is not None:
        labels["topology.kubernetes.io/zone"] = pool.zone
    by_claim = pool.via == "dra"
    for number in range(pool.nodes):
        node = _node(pool, number, labels, {resource: str(count)} if resource and not by_claim else {})
        written["nodes"].append(node)
        name = node["metadata"]["name"]
        taken = count - (pool.free_gpus[number] if pool.free_gpus else count)
        if by_claim:
            offered = slice_on(name, gpu_named(pool.gpu_product or ""), count, pool.mig)
            written["slices"].append(offered)
            if taken:
                written["claims"].append(claim_of(offered, taken))
        elif resource and taken:
            written["pods"].append(_pod(name, resource, taken))


def _device_labels(pool: FleetPool, where: str) -> tuple[dict[str, str], str | None, int]:
    """Labels as the product's own labeller writes them, the resource, and how many of it a node offers."""
    if pool.gpu_product is None or pool.gpus_per_node is None:
        return {}, None, 0
    try:
        gpu = gpu_named(pool.gpu_product)
    except UnknownGpu as unknown:
        raise SpecError(Problem(f"{where}.gpuProduct", repr(pool.gpu_product), str(unknown))) from None
    if pool.mig or pool.shared_by:
        _check_cut(pool, gpu, where)
    label, count = (gpu.aliases or (gpu.name,))[0], pool.gpus_per_node
    if gpu.vendor is Vendor.NVIDIA:
        labels = {nvidia.PRODUCT: label.replace(" ", "-")}
        if pool.mig:
            return labels, nvidia.RESOURCE_MIG + pool.mig, count
        labels[nvidia.COUNT] = str(count)
        if pool.shared_by:
            return labels | {nvidia.REPLICAS: str(pool.shared_by)}, nvidia.RESOURCE, count * pool.shared_by
        return labels, nvidia.RESOURCE, count
    if gpu.vendor is Vendor.AMD:
        return {AMD_PRODUCT: label.replace(" ", "_")}, "amd.com/gpu", count
    if gpu.vendor is Vendor.INTEL:
        return {intel.PRODUCT: label.replace(" ", "_")}, "gpu.intel.com/xe", count
    if gpu.vendor is Vendor.HABANA:
        return {gaudi.INSTANCE_TYPE: gpu.name.lower()}, gaudi.RESOURCE, count
    raise SpecError(
        Problem(
            f"{where}.gpuProduct",
            repr(pool.gpu_product),
            f"{gpu.name} is no GPU; a fleet file's pool of CPU nodes stands without gpuProduct",
        )
    )


def _check_cut(pool: FleetPool, gpu: Gpu, where: str) -> None:
    if gpu.vendor is not Vendor.NVIDIA or (pool.mig and pool.shared_by):
        which = "mig" if pool.mig else "sharedBy"
        raise SpecError(
            Problem(f"{where}.{which}", "", "is for NVIDIA GPUs, and one of mig and sharedBy only")
        )
    profile = MigProfile.parse(pool.mig) if pool.mig else None
    if profile is not None and slice_of(gpu, profile) is None:
        raise SpecError(Problem(f"{where}.mig", repr(pool.mig), f"{gpu.name} has no such MIG profile"))


def _class(pool: FleetPool) -> NodeClass:
    """What the pool says of its nodes that labels cannot."""
    written = {
        "name": pool.name,
        "gpu_product": pool.gpu_product,
        "gpus_per_node": pool.gpus_per_node,
        "cpu": pool.cpu,
        "memory": pool.memory,
        "max_nodes": pool.max_nodes if pool.max_nodes is not None else pool.nodes,
        "price_per_hour": pool.price_per_hour,
        "zones": (pool.zone,) if pool.zone else (),
        "labels": {names.LABEL_POOL: pool.name, **pool.labels},
        "taints": pool.taints,
        "interconnect": pool.interconnect,
        "nodes_per_nvlink_domain": pool.nodes_per_nvlink_domain,
        "rdma": pool.rdma,
    }
    return NodeClass.model_validate({key: value for key, value in written.items() if value is not None})


def _node(
    pool: FleetPool, number: int, labels: Mapping[str, str], devices: Mapping[str, str]
) -> dict[str, Any]:
    name = f"{pool.name}-{number}"
    own = dict(labels)
    if (pool.nodes_per_nvlink_domain or 1) > 1:
        own[nvidia.CLIQUE] = f"{pool.name}.{number // (pool.nodes_per_nvlink_domain or 1)}"
    host = {"cpu": pool.cpu, "memory": pool.memory}
    return {
        "metadata": {"name": name, "labels": {**own, "kubernetes.io/hostname": name}},
        "spec": {"taints": [taint.to_dict() for taint in pool.taints]},
        "status": {"allocatable": {**{k: v for k, v in host.items() if v is not None}, **devices}},
    }


def _pod(node: str, resource: str, count: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"others-on-{node}", "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {resource: str(count)}}}]},
    }
