"""The part of the admin's config about trust: what resources may name. Judging by it is left to trust.py."""

from pydantic import Field

from plimsoll.api.base import (
    ApiModel,
    Bool,
    Glob,
    NamespaceGlob,
    field,
    group,
    listing,
)
from plimsoll.api.v1alpha1.engine import Release
from plimsoll.api.v1alpha1.source import Revision


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
        "Paths that pod patches may touch. Absent: no patches. What weakens a pod's isolation or gives it an identity "
        "(securityContext, hostNetwork, serviceAccountToken, csi, ...) also needs a pattern that names it."
    )
    secrets: tuple[NamedInNamespace, ...] = listing(
        "Secrets that resources may name. Absent: any of their own namespace.", most=256, keys=("namespace",)
    )
    service_accounts: tuple[NamedInNamespace, ...] = listing(
        "Service accounts that resources may name. Absent: none.", most=256, keys=("namespace",)
    )
    least_engine_version: Release | None = field(
        "Oldest engine version that may run. Absent: 0.18.0; older ones run a model's code even when told not to."
    )
    rdma: Bool | None = field("Pods may take RDMA devices, and lock memory for them. Absent: false.")
