"""The resource as a whole: identity, spec and status."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, ValidationError

from plimsoll.api.base import ApiModel, LabelName, Rule, owned
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.names import NAME_MAX

ShortText = Annotated[str, Field(max_length=253)]


AnyText = Annotated[str, Field(max_length=262144)]


class ObjectMeta(ApiModel):
    """The part of Kubernetes' object metadata that Plimsoll reads; the rest is let through unread."""

    model_config = ConfigDict(extra="ignore")
    rules: ClassVar[tuple[Rule, ...]] = ()

    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="Name of the object.")
    namespace: LabelName | None = None
    uid: ShortText | None = None
    generation: int | None = None
    resource_version: ShortText | None = None
    creation_timestamp: ShortText | None = None
    deletion_timestamp: ShortText | None = None
    labels: Annotated[dict[str, AnyText], Field(max_length=256)] = Field(default_factory=dict)
    annotations: Annotated[dict[str, AnyText], Field(max_length=256)] = Field(default_factory=dict)


class LLMDeployment(ApiModel):
    """A large language model, its traffic and its promises; Plimsoll finds GPUs, layout and settings."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="name-length",
            cel=f"size(self.metadata.name) <= {NAME_MAX}",
            holds=lambda m: len(m.metadata.name) <= NAME_MAX,
            message=f"name must have at most {NAME_MAX} characters, so that every name made from it fits in 63",
            field="metadata.name",
        ),
        Rule(
            name="name-is-label",
            cel="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            holds=lambda m: _is_label(m.metadata.name),
            message="name must begin with a letter and hold only small letters, digits and '-'; it names a Service",
            field="metadata.name",
        ),
    )

    api_version: Literal["plimsoll.dev/v1alpha1"] = owned("plimsoll.dev/v1alpha1", "plimsoll.dev/v1alpha1.")
    kind: Literal["LLMDeployment"] = owned("LLMDeployment", "LLMDeployment.")
    metadata: ObjectMeta = Field(description="Kubernetes' object metadata.")
    spec: LLMDeploymentSpec = Field(description="What should be served.")
    status: LLMDeploymentStatus = Field(default_factory=LLMDeploymentStatus, description="What is so.")

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or "default"

    @classmethod
    def observed(cls, body: Mapping[str, Any]) -> Self:
        """Read an object from the API server, which a newer version may have written.

        Fields that are not known here are let through unread. A status that cannot be read counts as none: it is
        recomputable, and must never keep a spec from being served.
        """
        try:
            return cls.model_validate(body, extra="ignore")
        except ValidationError as error:
            if any(detail["loc"][:1] != ("status",) for detail in error.errors(include_url=False)):
                raise
        return cls.model_validate({**body, "status": {}}, extra="ignore")


def _is_label(name: str) -> bool:
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
    return name[0].isascii() and name[0].islower() and name[-1] != "-" and all(c in allowed for c in name)
