"""How requests reach the replicas: Service, keys, certificates, gateway or Ingress."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from plimsoll.api.base import (
    AnnotationMap,
    ApiModel,
    Bool,
    Int,
    LabelMap,
    LabelName,
    ObjectName,
    Rule,
    field,
    group,
    listing,
    owned,
)
from plimsoll.api.v1alpha1.model import SecretKey

Hostname = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
UrlPath = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^/[A-Za-z0-9._~/-]*$")]
Origin = Annotated[
    str,
    Field(min_length=1, max_length=260, pattern=r"^https?://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$"),
]

ENGINE_PATHS: Final = frozenset(
    [
        "v1",
        "v2",
        "classify",
        "cohere",
        "detokenize",
        "generative_scoring",
        "inference",
        "invocations",
        "pooling",
        "rerank",
        "score",
        "tokenize",
    ]
)
"""How the paths begin at which an engine takes requests."""


def is_engines(path: str | None) -> bool:
    """Whether requests at a path prefix find the engine as they are, so that nobody has to take the prefix off."""
    first = (path or "").strip("/").split("/")[0]
    return not first or first in ENGINE_PATHS


class Service(ApiModel):
    """The Service in front of the replicas."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = owned("ClusterIP", "Kind of Service.")
    port: Annotated[Int, Field(ge=1, le=65535)] = owned(80, "Port of the Service.")
    name: Annotated[LabelName, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")] | None = field(
        "Name of the Service. Absent: the deployment's name."
    )
    labels: LabelMap = Field(default_factory=dict, description="Further labels of the Service.")
    annotations: AnnotationMap = Field(
        default_factory=dict, description="Further annotations of the Service."
    )


class EndpointPicker(ApiModel):
    """Who chooses a replica for each request: the gateway asks it."""

    service: LabelName = Field(description="Its Service, in the deployment's namespace.")
    port: Annotated[Int, Field(ge=1, le=65535)] = owned(9002, "Port where gateways ask it.")
    failure_mode: Literal["FailClose", "FailOpen"] = owned(
        "FailClose", "Requests while it does not answer: refused, or sent to any replica."
    )


class Gateway(ApiModel):
    """A route on a Gateway that exists already."""

    name: ObjectName = Field(description="Name of the Gateway.")
    namespace: LabelName | None = field("Its namespace. Absent: the deployment's own.")
    listener: ObjectName | None = field("Section of the Gateway. Absent: every one that admits the route.")
    hostnames: tuple[Hostname, ...] = listing("Hosts that the route answers. Absent: the Gateway's.", most=16)
    path: UrlPath | None = field("Path prefix. Absent: /.")
    endpoint_picker: EndpointPicker | None = field(
        "Chooses replicas by load and prefix; makes an InferencePool. Absent: the Service spreads connections."
    )
    inference_pool: Bool | None = field(
        "Route through an InferencePool, which needs endpointPicker. Absent: true where that is named."
    )
    timeout_seconds: Annotated[Int, Field(ge=1, le=86400)] | None = field(
        "Longest answer. Absent: by output lengths and latency."
    )


class Ingress(ApiModel):
    """An Ingress, where there is no Gateway."""

    class_name: ObjectName | None = field("IngressClass. Absent: the cluster's default.")
    hosts: tuple[Hostname, ...] = Field(
        description="Hosts that it answers.",
        min_length=1,
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    path: UrlPath | None = field("Path prefix. Absent: /.")
    annotations: AnnotationMap = Field(default_factory=dict, description="Annotations for its controller.")
    tls_secret: ObjectName | None = field("Secret with the certificate that the Ingress shows.")


class Networking(ApiModel):
    """How requests reach the replicas."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="gateway-or-ingress",
            cel="!has(self.gateway) || !has(self.ingress)",
            holds=lambda m: m.gateway is None or m.ingress is None,
            message="only one of gateway and ingress may be set",
            field="ingress",
        ),
    )

    service: Service = group(Service, "The Service in front of the replicas.")
    api_key_secret: SecretKey | None = field("Secret with the key that requests to the API must carry.")
    tls_secret: ObjectName | None = field(
        "Secret (kubernetes.io/tls) with the certificate that the engine shows. Absent: plain HTTP."
    )
    cors_origins: tuple[Origin, ...] = listing(
        "Origins from which browsers may call the API. Absent: none.", most=32
    )
    gateway: Gateway | None = field("Route on a Gateway.")
    ingress: Ingress | None = field("Ingress.")
    allow_from: tuple[LabelName, ...] = listing(
        "Namespaces whose pods may call the API; makes a NetworkPolicy. Absent: no policy but for groups.",
        most=32,
    )

    @property
    def scheme(self) -> Literal["http", "https"]:
        """What the engine speaks."""
        return "http" if self.tls_secret is None else "https"

    @property
    def picker(self) -> EndpointPicker | None:
        """The endpoint picker of the InferencePool that is to be made; None where none is. A pool without one is not made, as most versions
        of the API refuse it, and gateways may refuse it in any version."""
        gateway = self.gateway
        return None if gateway is None or gateway.inference_pool is False else gateway.endpoint_picker
