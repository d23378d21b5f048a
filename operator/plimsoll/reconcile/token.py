"""What a turn leaves behind, as one short text: while it is the same and nobody has touched a child, there is nothing to do.

It stands on the pinned plan in the cluster, so that an operator that starts with ten thousand deployments need not plan
each of them again to find that all is as it should be. A new release of the operator makes another text, and looks at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.objects import Manifest, Ref, canonical

LENGTH: Final = 32


def mark_of(release: str, config: OperatorConfig) -> str:
    """Names the release and the admin's config: a change of either makes every turn look at everything again."""
    return f"{release} {canonical(config.to_dict())}"


def token_of(deployment: LLMDeployment, objects: Iterable[Manifest], mark: str) -> str:
    """For the objects of a deployment but its plan. `mark` names the release and the admin's config."""
    hashes = ((one.ref, one.body["metadata"]["annotations"][names.ANNOTATION_HASH]) for one in objects)
    return token(deployment, hashes, mark)


def token(deployment: LLMDeployment, hashes: Iterable[tuple[Ref, str]], mark: str) -> str:
    """The same from what the children in the cluster say."""
    metadata = deployment.metadata
    asked = metadata.annotations.get(names.ANNOTATION_REPLAN, "")
    lines = [
        mark,
        f"{metadata.uid} {metadata.generation} {asked}",
        *sorted(f"{ref.api_version} {ref.kind} {ref.name} {digest}" for ref, digest in hashes),
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:LENGTH]
