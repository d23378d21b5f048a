"""Which model is served, and where its weights and compile caches live.

Reading the model (its config, its tensors) is left to facts/; here is only what a user says about it.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.base import (
    PRINTABLE,
    ApiModel,
    Bool,
    ImageName,
    ObjectName,
    Quantity,
    Rule,
    field,
    listing,
    owned,
)
from plimsoll.api.v1alpha1.source import Revision, Source, climbs, location_of, scheme_of


class SecretKey(ApiModel):
    """One key of a Secret in the deployment's own namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._A-Za-z0-9]+$")] = owned(
        "token", "Key in the Secret."
    )


class InlineArchitecture(ApiModel):
    """The architecture of a model that Plimsoll can read nowhere."""

    config: Annotated[str, Field(min_length=2, max_length=65536)] = Field(
        description="The text of the model's config.json, as its checkpoint carries it."
    )
    weight_bytes: Quantity | None = field(
        "Bytes of all weight tensors, as 15.3Gi. Absent: by the architecture."
    )


class ModelSpec(ApiModel):
    """The model: where it comes from, at which revision, and under which names it answers."""

    rules: ClassVar[tuple[Rule, ...]] = (
        climbs("source"),
        climbs("tokenizer", optional=True),
    )

    source: Source = Field(
        description="Where the model is: hf://ORG/NAME (or just ORG/NAME), modelscope://ORG/NAME, s3://BUCKET/PATH, "
        "oci://REGISTRY/REPOSITORY:TAG, pvc://CLAIM/PATH, or an absolute path in the engine's image."
    )
    revision: Revision | None = field(
        "Branch, tag or commit of the model's repository. Absent: its default branch, resolved once and kept."
    )
    task: Literal["generate", "embed", "rerank", "classify"] | None = field(
        "What the model is served for; ledger and probes follow. Absent: what its architecture says."
    )
    served_names: tuple[Annotated[str, Field(min_length=1, max_length=128, pattern=PRINTABLE)], ...] = (
        listing(
            "Names under which the API answers; the first is reported. Absent: ORG/NAME of the source.",
            most=8,
            atomic=True,
        )
    )
    token_secret: SecretKey | None = field("Secret with the access token of a private or gated repository.")
    trust_remote_code: Bool | None = field(
        "Run code of the model's repository, if the admin's config lists it. Absent: false."
    )
    load_format: (
        Literal[
            "auto",
            "safetensors",
            "fastsafetensors",
            "instanttensor",
            "runai_streamer",
            "runai_streamer_sharded",
            "sharded_state",
            "tensorizer",
            "mistral",
            "npcache",
            "pt",
            "bitsandbytes",
            "gguf",
            "dummy",
        ]
        | None
    ) = field("How the engine reads the weights. Absent: the engine's own choice for the source.")
    tokenizer: Source | None = field("Another source for the tokenizer. Absent: the model's own.")
    architecture: InlineArchitecture | None = field(
        "The architecture, written here, for a model that neither the catalogue nor the hub knows."
    )

    @property
    def scheme(self) -> str:
        """hf, modelscope, s3, oci, pvc, or path."""
        return scheme_of(self.source)

    @property
    def location(self) -> str:
        """The source without its scheme."""
        return location_of(self.source)


class EmptyDirVolume(ApiModel):
    """Node-local scratch space that lives as long as the pod."""

    size_limit: Quantity | None = field("Most it may hold. Absent: by the bytes of the model.")


class ClaimVolume(ApiModel):
    """A PersistentVolumeClaim that exists already."""

    name: ObjectName = Field(description="Name of the claim.")
    sub_path: (
        Annotated[str, Field(max_length=253, pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")] | None
    ) = field("Folder inside the volume.")
    read_only: Bool | None = field("Mount read-only: the model must be there already. Absent: false.")


class ClaimTemplate(ApiModel):
    """A PersistentVolumeClaim that Plimsoll makes and that goes with the deployment."""

    size: Quantity | None = field(
        "Size of the volume; a shared one never shrinks. Absent: by the bytes of the model."
    )
    storage_class: ObjectName | None = field("StorageClass. Absent: the admin's default, else the cluster's.")
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"] = owned(
        "ReadWriteMany",
        "How it is mounted; only ReadWriteMany lets replicas on several nodes share it.",
    )


class ImageVolume(ApiModel):
    """An OCI image that holds the model, mounted read-only by the kubelet."""

    reference: ImageName = Field(description="Image reference, best by digest.")
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = field(
        "When the kubelet pulls it. Absent: as Kubernetes does."
    )


class Volume(ApiModel):
    """One place for files: exactly one of its kinds."""

    whole: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="volume-one-kind",
            cel="[has(self.emptyDir), has(self.claim), has(self.claimTemplate), has(self.image)]"
            ".filter(x, x).size() == 1",
            holds=lambda m: (
                sum(v is not None for v in (m.empty_dir, m.claim, m.claim_template, m.image)) == 1
            ),
            message="exactly one of emptyDir, claim, claimTemplate and image must be set",
        ),
    )

    empty_dir: EmptyDirVolume | None = field(
        "Scratch space, gone with the pod: every replica fetches and compiles again."
    )
    claim: ClaimVolume | None = field("An existing claim.")
    claim_template: ClaimTemplate | None = field("A claim made for this deployment.")
    image: ImageVolume | None = field("An OCI image with the model in it.")

    @property
    def is_read_only(self) -> bool:
        """Whether it is a claim that pods only read, so that what they find there others have put there."""
        return self.claim is not None and bool(self.claim.read_only)


class Storage(ApiModel):
    """Where weights and compile caches live."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="cache-not-image",
            cel="!has(self.cache) || !has(self.cache.image)",
            holds=lambda m: m.cache is None or m.cache.image is None,
            message="cache must be writable; an image volume is not: use emptyDir, claim or claimTemplate",
            field="cache.image",
        ),
    )

    weights: Volume | None = field("Where the weights are kept. Absent: the admin's default, else emptyDir.")
    cache: Volume | None = field(
        "Where compiled kernels and graphs are kept for fast restarts. Absent: beside the weights."
    )
