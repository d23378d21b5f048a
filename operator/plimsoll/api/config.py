"""The admin's one file: what the fleet may become, what it costs, what is trusted, who may take how much.

It has the resource's quality and form (typed, unknown fields refused, rules declared once), but lives in the
operator's configuration, so it is never a CRD. An empty file is a valid one; it trusts nobody with anything unusual.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal, Protocol, TypeVar

from pydantic import Field

from plimsoll.api.base import (
    ADDRESS,
    HEADER_NAME,
    HEADER_VALUE,
    METRIC_LABEL,
    ONE_LINE,
    PROXY,
    ApiModel,
    Bool,
    Glob,
    ImageName,
    Int,
    LabelName,
    NamespaceGlob,
    ObjectName,
    Percent,
    Rule,
    Seconds,
    field,
    group,
    listing,
    owned,
)
from plimsoll.api.config_fleet import Budget, NodeClass, NodeTaint, Prices
from plimsoll.api.config_trust import Trust
from plimsoll.api.v1alpha1.engine import Release
from plimsoll.api.v1alpha1.model import Storage
from plimsoll.api.v1alpha1.spec import ServingSpec

Url = Annotated[str, Field(min_length=1, max_length=512, pattern=ADDRESS)]
Proxy = Annotated[str, Field(min_length=1, max_length=512, pattern=PROXY)]

_TAKEN = ("authorization", "content-")
"""How headers begin that are not the admin's to set."""
MetricLabel = Annotated[str, Field(min_length=1, max_length=128, pattern=METRIC_LABEL)]
HeaderName = Annotated[str, Field(min_length=1, max_length=128, pattern=HEADER_NAME)]


class Registry(ApiModel):
    """Where images come from."""

    mirror: (
        Annotated[str, Field(max_length=256, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9._:-]+)*/?$")]
        | None
    ) = field("Registry and path put in place of an image's own registry, as registry.example.com/all.")
    pull_secrets: tuple[ObjectName, ...] = listing(
        "Secrets for pulling, in the deployment's namespace.", most=16
    )
    runtime_image: ImageName | None = field(
        "Image that brings the supervisor into engine pods. Absent: the operator's own, plimsoll and its version."
    )


class Network(ApiModel):
    """How the cluster reaches the outside."""

    http_proxy: Proxy | None = field("Proxy for http, as http://USER:PASSWORD@HOST:PORT.")
    https_proxy: Proxy | None = field("Proxy for https, which is asked over http as well.")
    no_proxy: tuple[Glob, ...] = listing("Hosts reached without the proxy.", most=128)
    hub_endpoint: Url | None = field("Mirror of the model hub, as https://hub.example.com.")
    modelscope_endpoint: Url | None = field("Mirror of ModelScope, as https://modelscope.example.com/path.")
    s3_endpoint: Url | None = field("Where s3:// leads. Absent: AWS.")
    ca_bundle: ObjectName | None = field(
        "ConfigMap with further certificates (key ca.crt), in each namespace."
    )
    offline: Bool | None = field(
        "Never reach for a hub; models come from volumes, images or the store. Absent: false."
    )


class Restarts(ApiModel):
    """How much Plimsoll may disturb by itself. Changes that a person makes are not counted."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="canary-ends-before-its-limit",
            cel="!has(self.canarySeconds) || !has(self.canaryLimitSeconds) || self.canarySeconds < self.canaryLimitSeconds",
            holds=lambda m: m.canary_seconds < m.canary_limit_seconds,
            message="canaryLimitSeconds must be more than canarySeconds (absent: 2700 and 600), or every canary would be given up",
            field="canaryLimitSeconds",
        ),
    )

    retunes_per_day: Annotated[Int, Field(ge=0, le=100)] = owned(2, "Retunes of a deployment in 24 hours.")
    restarts_per_day: Annotated[Int, Field(ge=0, le=1000)] | None = field(
        "Restarts of a deployment for retunes in 24 hours. Absent: 3 for each of its replicas, and at least 6."
    )
    fleet_percent: Annotated[Percent, Field(ge=1)] = owned(
        10, "Share of the fleet's GPUs that deployments in retunes may have at once, but for a single one."
    )
    failures_until_pause: Annotated[Int, Field(ge=1, le=100)] = owned(
        3, "Failed retunes until a person is asked."
    )
    reverse_after_seconds: Seconds = owned(
        21600, "Time before a setting may be turned back, rollbacks aside."
    )
    retry_after_seconds: Seconds = owned(86400, "Time before a failed change is tried again.")
    release_after_seconds: Seconds = owned(
        86400, "Time for which a change must not have been needed before it is taken back, as a retune."
    )
    canary_seconds: Annotated[Seconds, Field(ge=1)] = owned(600, "Least time that a canary is watched.")
    canary_requests: Annotated[Int, Field(ge=1, le=1000000)] = owned(
        200, "Least requests that a canary must finish."
    )
    canary_limit_seconds: Annotated[Seconds, Field(ge=1)] = owned(
        2700, "When a canary is given up as inconclusive."
    )


class Control(ApiModel):
    """How live metrics are read, by which replicas and settings are decided."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="match-labels-leave-the-name",
            cel="!has(self.prometheusMatchLabels) || !('__name__' in self.prometheusMatchLabels)",
            holds=lambda m: "__name__" not in m.prometheus_match_labels,
            message="prometheusMatchLabels must leave out __name__, by which each query selects already",
            field="prometheusMatchLabels",
        ),
        Rule(
            name="headers-leave-those-of-the-client",
            cel="!has(self.prometheusHeaders) || self.prometheusHeaders.all(h, !h.lowerAscii().startsWith('authorization') && "
            "!h.lowerAscii().startsWith('content-'))",
            holds=lambda m: not any(h.lower().startswith(_TAKEN) for h in m.prometheus_headers),
            message="prometheusHeaders must leave Authorization to prometheusTokenFile, and Content-* to the operator",
            field="prometheusHeaders",
        ),
    )

    interval_seconds: Annotated[Seconds, Field(ge=1, le=300)] = owned(15, "Time between two decisions.")
    prometheus_token_file: Annotated[str, Field(min_length=1, max_length=512)] | None = field(
        "File in the operator's pod with a bearer token for prometheusUrl; read at each decision."
    )
    prometheus_ca_file: Annotated[str, Field(min_length=1, max_length=512)] | None = field(
        "File in the operator's pod with the certificates that prometheusUrl is trusted by. Absent: the public ones that its image holds."
    )
    prometheus_match_labels: Annotated[
        dict[MetricLabel, Annotated[str, Field(min_length=1, max_length=256, pattern=ONE_LINE)]],
        Field(max_length=16),
    ] = Field(
        default_factory=dict,
        description="Labels and their values, as cluster: eu-1, that series must have to be this cluster's, where prometheusUrl shows "
        "several. Each of the operator's queries selects by them; queries that users write (scaling.zero.wake.query) are sent as they are.",
    )
    prometheus_headers: Annotated[
        dict[HeaderName, Annotated[str, Field(min_length=1, max_length=1024, pattern=HEADER_VALUE)]],
        Field(max_length=16),
    ] = Field(
        default_factory=dict,
        description="Headers sent to prometheusUrl with each query, as X-Scope-OrgID: team. They are no place for a secret.",
    )


class Runtime(ApiModel):
    """The supervisor that starts engines, in the engine's own container."""

    enabled: Bool = owned(
        True,
        "Whether new sets start their engines through it: failures get a reason, and what a start took is learned from. "
        "Pods then pull registry.runtimeImage as well. Sets that are there stay as they are.",
    )
    close_connections: Bool = owned(
        True,
        "Whether engines of new sets close the connection after each answer, so that a Service chooses a replica for each request and not "
        "for each client: a new replica is asked at once, and a busy one does not keep its clients. Not done without the supervisor, nor "
        "behind an endpointPicker, which chooses for each request anyway.",
    )


class EngineVersion(ApiModel):
    """One engine version that may run, and its images, where they are not those that the engine's project publishes."""

    version: Release = Field(description="Version.")
    image: ImageName | None = field("Image for NVIDIA GPUs. Absent: the published one.")
    rocm_image: ImageName | None = field("Image for AMD GPUs. Absent: the published one.")
    gaudi_image: ImageName | None = field("Image for Gaudi. None is published.")
    xpu_image: ImageName | None = field("Image for Intel GPUs. None is published.")
    cpu_image: ImageName | None = field("Image for CPUs. Absent: the published one.")
    supervisor: Release | None = field(
        "Release of Plimsoll whose supervisor the images named here have in them. Where it is the operator's own, new pods start "
        "that one; else, and absent, registry.runtimeImage brings it."
    )
    facts: Annotated[str, Field(min_length=2, max_length=262144)] | None = field(
        "What the image told of its flags, variables and metrics, for a version that this release does not know: the text "
        "of the file that `plimsoll engine describe` writes."
    )


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

    default_version: Release | None = field("Version of new deployments. Absent: the newest that is known.")
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
    """Values for all deployments of a namespace that do not say otherwise. Of a group that a resource names, such as networking.service, what
    the API server fills in there by the CRD's defaults (type and port) counts as said by the resource."""

    namespace: NamespaceGlob = Field(description="Namespace; * alone is every one. Longer matches win.")
    spec: ServingSpec = Field(
        description="What it sets, in the form of the resource's spec, without the model."
    )


class OperatorConfig(ApiModel):
    """All that an admin says, in one file."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="modelscope-by-https",
            cel="!has(self.network) || !has(self.network.modelscopeEndpoint) || !has(self.runtime) || !has(self.runtime.enabled) || "
            "self.runtime.enabled || self.network.modelscopeEndpoint.startsWith('https://')",
            holds=lambda m: (
                m.runtime.enabled or not (m.network.modelscope_endpoint or "").startswith("http://")
            ),
            message="network.modelscopeEndpoint must be https where runtime.enabled is false: ModelScope's own client speaks nothing else",
            field="network.modelscopeEndpoint",
        ),
    )

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
    control: Control = group(Control, "How live metrics are read.")
    runtime: Runtime = group(Runtime, "The supervisor that starts engines.")
    storage: Storage = group(Storage, "Where weights and caches live when a resource does not say.")
    engines: Engines = group(Engines, "Engine versions, and who moves to the next one.")
    presets: tuple[AdminPreset, ...] = listing("Presets of the admin's own.", most=64, keys=("name",))
    defaults: tuple[NamespaceDefaults, ...] = listing("Values by namespace.", most=256, keys=("namespace",))
    prometheus_url: Url | None = field(
        "Prometheus that scrapes the engines. Absent: pods of resources with scaling.max or tuning are asked themselves."
    )


class _ByNamespace(Protocol):
    @property
    def namespace(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_ByNamespace)


def matching(namespace: str, entries: Iterable[_Entry]) -> list[_Entry]:
    """Entries whose pattern holds for a namespace, the most specific first: the exact name, then the longest pattern."""

    def rank(entry: _Entry) -> tuple[bool, int, str]:
        pattern = entry.namespace
        return pattern != namespace, -len(pattern.replace("*", "")), pattern

    return sorted((entry for entry in entries if fnmatchcase(namespace, entry.namespace)), key=rank)


__all__ = ["Budget", "NodeClass", "NodeTaint", "OperatorConfig", "Prices", "Trust", "matching"]
