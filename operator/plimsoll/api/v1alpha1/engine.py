"""Which engine serves the model, in which version and image, and what a user may add to its command line."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.base import (
    PRINTABLE_SPACE,
    ApiModel,
    Bool,
    ImageName,
    Int,
    ObjectName,
    Rule,
    Word,
    field,
    listing,
    owned,
)
from plimsoll.api.v1alpha1.model import SecretKey

Release = Annotated[str, Field(max_length=32, pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]


class EnvVar(ApiModel):
    """One environment variable of the engine."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="env-one-source",
            cel="has(self.value) != has(self.secret)",
            holds=lambda m: (m.value is None) != (m.secret is None),
            message="exactly one of value and secret must be set",
        ),
    )

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = Field(
        description="Name of the variable."
    )
    value: Annotated[str, Field(max_length=4096)] | None = field("Its value.")
    secret: SecretKey | None = field("Secret that holds its value.")


class Engine(ApiModel):
    """The engine and its settings. What is absent follows from the model, the workload and the GPUs."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="batch-below-sequences",
            cel="!has(self.maxBatchedTokens) || !has(self.maxSequences) || self.maxBatchedTokens >= self.maxSequences",
            holds=lambda m: (
                m.max_batched_tokens is None
                or m.max_sequences is None
                or m.max_batched_tokens >= m.max_sequences
            ),
            message="maxBatchedTokens must be at least maxSequences: each running sequence takes a token a step",
            field="maxBatchedTokens",
        ),
    )

    name: Literal["vllm"] = owned("vllm", "The engine.")
    version: (
        Annotated[str, Field(max_length=32, pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?([.-]?[a-z]+[0-9]*)?$")]
        | None
    ) = field(
        "Engine version; flags and use of memory follow from it. Absent: the admin's default. For an image "
        "of your own, the one in it."
    )
    image: ImageName | None = field(
        "An engine image of your own, if the admin's trust.images allows it. Absent: the admin's for the "
        "version, else the published one."
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = field(
        "When the kubelet pulls the image. Absent: as Kubernetes does."
    )
    image_pull_secrets: tuple[ObjectName, ...] = listing(
        "Secrets for pulling the image, beside the admin's.", most=8
    )
    upgrade: Literal["manual", "operator"] | None = field(
        "Who moves to a newer engine: manual (an edit of version) or operator (to the admin's default, by a "
        "canary). Absent: manual where version or image is set, else by the admin's config."
    )
    attention_backend: Word | None = field(
        "Attention backend, as the engine spells it. Absent: the engine chooses."
    )
    scheduling_policy: Literal["fcfs", "priority"] | None = field(
        "Order of waiting requests: by arrival, or by each request's priority. Absent: fcfs."
    )
    max_sequences: Annotated[Int, Field(ge=1, le=65536)] | None = field(
        "Most requests that run at once in one replica. Absent: by KV memory, lengths and latency target."
    )
    max_batched_tokens: Annotated[Int, Field(ge=1, le=1048576)] | None = field(
        "Most tokens that one step processes. Absent: by the workload and the latency target."
    )
    watermark_permille: Annotated[Int, Field(ge=0, le=999)] | None = field(
        "Thousandths of the KV blocks kept free for running requests. Absent: by pool and lengths."
    )
    max_queued_requests: Annotated[Int, Field(ge=1, le=1000000)] | None = field(
        "Waiting requests beyond which new ones are refused (HTTP 503). Absent: by the latency target."
    )
    block_tokens: Annotated[Int, Field(ge=1, le=4096)] | None = field(
        "Tokens of a KV block. Absent: the engine's own."
    )
    prefix_caching: Bool | None = field(
        "Keep the KV of shared prefixes. Absent: on where the model supports it."
    )
    eager: Bool | None = field(
        "No compilation and no CUDA graphs: starts faster, decodes slower. Absent: true on CPUs (no compiler in "
        "their image), else false."
    )
    sleep_mode: Bool | None = field("Let the engine give its GPU memory back while it sleeps. Absent: false.")
    extra_args: tuple[Annotated[str, Field(min_length=1, max_length=2048, pattern=PRINTABLE_SPACE)], ...] = (
        listing(
            "Further arguments, one argv word each. Flags that Plimsoll owns, and those the admin denies, are refused.",
            most=64,
            atomic=True,
        )
    )
    env: tuple[EnvVar, ...] = listing(
        "Further environment variables, under the admin's allow and deny lists.", most=64, keys=("name",)
    )

    def tells(self, *flags: str) -> bool:
        """Whether the user hands the engine one of these flags themselves, by its long name."""
        return any(word.startswith(flags) for word in self.extra_args)
