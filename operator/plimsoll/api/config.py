"""The admin's one file: what the fleet may become, what it costs, what is trusted, who may take how much.

It has the resource's quality and form (typed, unknown fields refused, rules declared once), but lives in the
operator's configuration, so it is never a CRD. An empty file is a valid one; it trusts nobody with anything unusual.
"""

from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.base import (
    PRINTABLE,
    ApiModel,
    Bool,
    Decimal,
    Int,
    LabelMap,
    LabelName,
    LabelValue,
    ObjectName,
    Percent,
    Quantity,
    Rule,
    Seconds,
    field,
    group,
    listing,
    owned,
)
from plimsoll.api.v1alpha1.engine import ImageName
from plimsoll.api.v1alpha1.model import Revision, Storage
from plimsoll.api.v1alpha1.spec import ServingSpec
from plimsoll.api.v1alpha1.topology import GpuProduct

Url = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^https?://[!-~]+$")]
Glob = Annotated[str, Field(min_length=1, max_length=256, pattern=PRINTABLE)]
NamespaceGlob = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$")
]
EngineVersionText = Annotated[str, Field(max_length=32, pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
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

    name: LabelName = Field(description="Name of the class.")
    gpu_product: GpuProduct | None = field("GPU, by catalogue name or node label. Absent: CPU nodes.")
    gpus_per_node: Annotated[Int, Field(ge=1, le=64)] | None = field("GPUs of a node.")
    cpu: Quantity | None = field("Cores that pods may take. Absent: enough.")
    memory: Quantity | None = field("Host memory that pods may take. Absent: enough.")
    ephemeral_storage: Quantity | None = field("Disk that pods may take. Absent: enough.")
    max_nodes: Annotated[Int, Field(ge=0, le=100000)] = Field(
        description="Most nodes there can be, present ones included."
    )
    price_per_hour: Decimal | None = field("Price of a node. Absent: its GPUs by prices.gpuHour.")
    spot: Bool | None = field("Nodes that may be taken away. Absent: false.")
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
    per_hour: Decimal = Field(description='Price, as "2.49".')


class Prices(ApiModel):
    """Prices where no node class says better. Only their proportions matter to a choice."""

    currency: Annotated[str, Field(max_length=8, pattern=r"^[A-Z]{3}$")] | None = field(
        "Shown beside prices."
    )
    gpu_hour: tuple[GpuPrice, ...] = listing("Price of each GPU product.", most=128, keys=("product",))
    cpu_core_hour: Decimal | None = field("Price of a core for an hour.")


class Registry(ApiModel):
    """Where images come from."""

    mirror: Annotated[str, Field(max_length=256, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$")] | None = field(
        "Registry and path put in place of an image's own registry."
    )
    pull_secrets: tuple[ObjectName, ...] = listing(
        "Secrets for pulling, in the deployment's namespace.", most=16
    )
    runtime_image: ImageName | None = field("Image of the supervisor. Absent: the one of this release.")


class Network(ApiModel):
    """How the cluster reaches the outside."""

    http_proxy: Url | None = field("Proxy for http.")
    https_proxy: Url | None = field("Proxy for https.")
    no_proxy: tuple[Glob, ...] = listing("Hosts reached without the proxy.", most=128)
    hub_endpoint: Url | None = field("Mirror of the model hub.")
    modelscope_endpoint: Url | None = field("Mirror of ModelScope.")
    s3_endpoint: Url | None = field("S3-compatible store.")
    ca_bundle: ObjectName | None = field(
        "ConfigMap with further certificates (key ca.crt), in each namespace."
    )
    offline: Bool | None = field(
        "Never reach for a hub; models come from volumes, images or the store. Absent: false."
    )


class TrustedRepository(ApiModel):
    """A repository whose own code may run."""

    source: Glob = Field(description="Source, as hf://ORG/NAME; * stands for any characters.")
    revision: Revision | None = field("Only this commit. Absent: any, which trusts its owners for good.")


class AllowDeny(ApiModel):
    """What passes: what allow names (all, when it is empty) and deny does not. * stands for any characters."""

    allow: tuple[Glob, ...] = listing("Patterns that pass. Absent: all.", most=256)
    deny: tuple[Glob, ...] = listing("Patterns that never pass.", most=256)


class NamedInNamespace(ApiModel):
    """Names that resources of a namespace may mention."""

    namespace: NamespaceGlob = Field(description="Namespace; * stands for any characters.")
    names: tuple[Glob, ...] = listing("Names; * stands for any characters.", most=256)


class Trust(ApiModel):
    """What resources may name. Flags and variables that Plimsoll owns are refused whatever stands here."""

    remote_code: tuple[TrustedRepository, ...] = listing(
        "Repositories whose code may run. Absent: none.", most=256, atomic=True
    )
    images: tuple[Glob, ...] = listing("Engine images of users' own. Absent: none.", most=256)
    extra_args: AllowDeny = group(AllowDeny, "Further engine flags, by their long name.")
    env: AllowDeny = group(AllowDeny, "Further environment variables, by name.")
    pod_patches: AllowDeny | None = field(
        "Paths that pod patches may touch. Absent: no patches. What weakens a pod's isolation (securityContext, "
        "hostNetwork, serviceAccountName, ...) also needs a pattern that names it."
    )
    secrets: tuple[NamedInNamespace, ...] = listing(
        "Secrets that resources may name. Absent: any of their own namespace.", most=256, keys=("namespace",)
    )
    service_accounts: tuple[NamedInNamespace, ...] = listing(
        "Service accounts that resources may name. Absent: none.", most=256, keys=("namespace",)
    )
    least_engine_version: EngineVersionText | None = field(
        "Oldest engine version that may run. Absent: 0.18.0; older ones run a model's code even when told not to."
    )
    rdma: Bool | None = field("Pods may take RDMA devices, and lock memory for them. Absent: false.")


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
    cost_per_hour: Decimal | None = field("Most that all its deployments may cost an hour.")
    priority: Annotated[Int, Field(ge=-1000000, le=1000000)] | None = field("Higher goes first. Absent: 0.")
    max_replicas: Annotated[Int, Field(ge=0, le=1000)] | None = field("Most replicas of one deployment.")


class Restarts(ApiModel):
    """How much Plimsoll may disturb by itself. Changes that a person makes are not counted."""

    retunes_per_day: Annotated[Int, Field(ge=0, le=100)] = owned(2, "Retunes of a deployment in 24 hours.")
    restarts_per_day: Annotated[Int, Field(ge=0, le=1000)] = owned(6, "Restarts of a deployment in 24 hours.")
    fleet_percent: Annotated[Percent, Field(ge=1)] = owned(
        10, "Share of the fleet's GPUs in retunes at once."
    )
    failures_until_pause: Annotated[Int, Field(ge=1, le=100)] = owned(
        3, "Failed retunes until a person is asked."
    )
    reverse_after_seconds: Seconds = owned(
        21600, "Time before a setting may be turned back, rollbacks aside."
    )
    retry_after_seconds: Seconds = owned(86400, "Time before a failed change is tried again.")
    canary_seconds: Annotated[Seconds, Field(ge=1)] = owned(600, "Least time that a canary is watched.")
    canary_requests: Annotated[Int, Field(ge=1, le=1000000)] = owned(
        200, "Least requests that a canary must finish."
    )
    canary_limit_seconds: Annotated[Seconds, Field(ge=1)] = owned(
        2700, "When a canary is given up as inconclusive."
    )


class EngineVersion(ApiModel):
    """One engine version that may run, and its image."""

    version: EngineVersionText = Field(description="Version.")
    image: ImageName | None = field("Image for NVIDIA GPUs. Absent: the project's own.")
    rocm_image: ImageName | None = field("Image for AMD GPUs.")
    gaudi_image: ImageName | None = field("Image for Gaudi.")
    xpu_image: ImageName | None = field("Image for Intel GPUs.")
    cpu_image: ImageName | None = field("Image for CPUs.")


class Engines(ApiModel):
    """Engine versions, and who moves deployments to the next one."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="default-version-listed",
            cel="!has(self.defaultVersion) || !has(self.versions) || size(self.versions) == 0 || "
            "self.versions.exists(v, v.version == self.defaultVersion)",
            holds=lambda m: (
                m.default_version is None
                or not m.versions
                or m.default_version in [v.version for v in m.versions]
            ),
            message="defaultVersion must be one of versions",
            field="defaultVersion",
        ),
    )

    default_version: EngineVersionText | None = field(
        "Version of new deployments. Absent: the newest that is known."
    )
    versions: tuple[EngineVersion, ...] = listing(
        "Versions that may run. Absent: all that are known.", most=64, keys=("version",)
    )
    upgrade: Literal["manual", "operator"] = owned(
        "manual", "Who moves deployments that do not say: nobody but their owners, or the operator by canary."
    )


class AdminPreset(ApiModel):
    """A preset of the admin's own; it may bear a built-in preset's name and then takes its place."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="preset-names-none",
            cel="!has(self.spec.workload) || !has(self.spec.workload.preset)",
            holds=lambda m: m.spec.workload.preset is None,
            message="a preset cannot name another one; write its values here",
            field="spec.workload.preset",
        ),
    )

    name: LabelName = Field(description="Name by which spec.workload.preset asks for it.")
    description: Annotated[str, Field(min_length=1, max_length=1024)] = Field(description="What it is for.")
    spec: ServingSpec = Field(
        description="What it sets, in the form of the resource's spec, without the model."
    )


class NamespaceDefaults(ApiModel):
    """Values for all deployments of a namespace that do not say otherwise."""

    namespace: NamespaceGlob = Field(description="Namespace; * alone is every one. Longer matches win.")
    spec: ServingSpec = Field(
        description="What it sets, in the form of the resource's spec, without the model."
    )


class OperatorConfig(ApiModel):
    """All that an admin says, in one file."""

    api_version: Literal["plimsoll.dev/v1alpha1"] = owned("plimsoll.dev/v1alpha1", "plimsoll.dev/v1alpha1.")
    kind: Literal["OperatorConfig"] = owned("OperatorConfig", "OperatorConfig.")
    node_classes: tuple[NodeClass, ...] = listing(
        "Nodes that can be made on demand.", most=128, keys=("name",)
    )
    prices: Prices = group(Prices, "Prices.")
    registry: Registry = group(Registry, "Where images come from.")
    network: Network = group(Network, "How the cluster reaches the outside.")
    trust: Trust = group(Trust, "What resources may name.")
    budgets: tuple[Budget, ...] = listing("Limits and priority by namespace.", most=1024, keys=("namespace",))
    restarts: Restarts = group(Restarts, "How much Plimsoll may disturb by itself.")
    storage: Storage = group(Storage, "Where weights and caches live when a resource does not say.")
    engines: Engines = group(Engines, "Engine versions, and who moves to the next one.")
    presets: tuple[AdminPreset, ...] = listing("Presets of the admin's own.", most=64, keys=("name",))
    defaults: tuple[NamespaceDefaults, ...] = listing("Values by namespace.", most=256, keys=("namespace",))
    prometheus_url: Url | None = field(
        "Prometheus that scrapes the engines. Absent: pods are scraped directly."
    )

    def budget_of(self, namespace: str) -> Budget | None:
        """What counts for a namespace: its own budget, else the one with the longest pattern that matches."""
        matching = [budget for budget in self.budgets if fnmatchcase(namespace, budget.namespace)]
        return min(matching, key=lambda budget: specificity(budget.namespace, namespace), default=None)


def specificity(pattern: str, namespace: str) -> tuple[bool, int, str]:
    """Sorts patterns that match a namespace: the exact name first, then the longest."""
    return pattern != namespace, -len(pattern.replace("*", "")), pattern
